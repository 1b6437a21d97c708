"""Runs a session: binds torch's memory for inputs and fresh outputs, from any thread."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from onnxruntime.capi import _pybind_state as ort

from fairlead.ir import Graph
from fairlead.passes import row_major_inputs
from fairlead_onnx import ModelFile, RealForm
from fairlead_onnxrt._denormals import flushed
from fairlead_onnxrt._options import OnnxRuntimeOptions
from fairlead_onnxrt._session import Session, model_file, open_session, optimized_text
from fairlead_onnxrt._signature import BOOL, Signature, signature_of

__all__ = ["SessionExecutable"]

_CPU = ort.OrtDevice(ort.OrtDevice.cpu(), ort.OrtDevice.default_memory(), 0)
_NOWHERE = torch.zeros(1, dtype=torch.int64, device="cpu")
_NOWHERE_ADDRESS = _NOWHERE.data_ptr()
"""An address for tensors of no elements, whose own is null, which binding refuses."""
_LARGE = 1 << 20
"""From so many bytes on, ONNX Runtime allocates a result. The system takes such memory back from torch's allocator each
time it is freed, and hands it out a page at a time: a tenth of a small model's call. The runtime's arena keeps it."""


class SessionExecutable:
    """A graph as a session. ``baked`` are the inputs whose tensors the session holds, ``file`` what it was loaded from.

    Lowers the graph where it is not given the ``file``.
    """

    fresh_outputs = True

    def __init__(
        self,
        graph: Graph,
        options: OnnxRuntimeOptions,
        constants: Mapping[int, torch.Tensor],
        file: ModelFile | None = None,
    ) -> None:
        self.baked = frozenset(constants)
        self._rows = row_major_inputs(graph, self.baked)
        self._form = RealForm(self._rows.graph)
        self._graph = self._form.graph
        self.file = model_file(self._graph, constants) if file is None else file
        self._options = options
        self.refit(constants)

    def readable(self) -> Mapping[str, str]:
        """The model as it was lowered, and as ONNX Runtime rewrote it, in ONNX's text form."""
        optimized = optimized_text(self._graph, self.file, self._options, self._constants)
        return {"onnx.txt": self.file.text(), "optimized.onnx.txt": optimized}

    def refit(self, constants: Mapping[int, torch.Tensor], /) -> None:
        """Load the session again: ONNX Runtime packs weights, so that new values in place are not enough."""
        self._constants = self._form.constants(constants)
        session = open_session(self._graph, self.file, self._options, self._constants)
        self._runs = _Runs(session, signature_of(self._graph, self.file, self.baked))
        self._run = self._rows.around(self._form.around(self._runs, self.baked), self.baked)

    def __call__(self, inputs: Sequence[Any], /) -> list[torch.Tensor]:
        return self._run(inputs)


class _Runs:
    """A session and its idle bindings. A binding serves one call at a time; a call that finds none makes one."""

    def __init__(self, session: Session, signature: Signature) -> None:
        self._session = session
        self._signature = signature
        self._idle: list[_Binding] = []

    def __call__(self, inputs: Sequence[Any]) -> list[torch.Tensor]:
        try:
            binding = self._idle.pop()
        except IndexError:
            binding = _Binding(self._session, self._signature)
        try:
            return binding.run(inputs)
        finally:
            self._idle.append(binding)


class _Binding:
    """One set of bound addresses. What stays where it was is not bound again; every output is."""

    def __init__(self, session: Session, signature: Signature) -> None:
        self._run = session.session._sess.run_with_iobinding
        self._flushes = session.flushes
        self._binding = ort.SessionIOBinding(session.session._sess)
        self._options = ort.RunOptions()
        self._signature = signature
        self._addresses: list[int] = [0] * len(signature.inputs)
        self._held = ctypes.c_bool(True)

    def run(self, inputs: Sequence[Any]) -> list[torch.Tensor]:
        """The results, in memory of their own: torch's, or, where large, the runtime's, given up to torch."""
        signature, binding, addresses = self._signature, self._binding, self._addresses
        held = []  # tensors that only this call keeps alive
        for i, spec in enumerate(signature.inputs):
            if spec.name is None:
                continue
            given = inputs[i]
            if spec.is_scalar:
                given = torch.tensor(given, device="cpu")
                held.append(given)
            elif not given.is_contiguous():
                given = given.contiguous()
                held.append(given)
            address = given.data_ptr() or _NOWHERE_ADDRESS
            if spec.shape is None:
                binding.bind_input(spec.name, _CPU, spec.element, tuple(given.shape), address)
            elif address != addresses[i]:
                binding.bind_input(spec.name, _CPU, spec.element, spec.shape, address)
                addresses[i] = address
        outputs: list[Any] = []
        large = []
        for at, (out, shape) in enumerate(zip(signature.outputs, signature.shapes(inputs), strict=True)):
            if out.dtype is not torch.bool and math.prod(shape) * out.dtype.itemsize >= _LARGE:
                binding.bind_output(out.name, _CPU)
                outputs.append(None)
                large.append(at)
                continue
            tensor = torch.empty(shape, dtype=out.dtype, device="cpu")
            binding.bind_output(out.name, _CPU, out.element, shape, tensor.data_ptr() or _NOWHERE_ADDRESS)
            outputs.append(tensor)
        if signature.check is not None:
            binding.bind_output(signature.check, _CPU, BOOL, (), ctypes.addressof(self._held))
        if self._flushes:
            with flushed():
                self._run(binding, self._options)
        else:
            self._run(binding, self._options)
        if large:
            values = binding.get_outputs()
            for at in large:
                outputs[at] = torch.utils.dlpack.from_dlpack(values[at].to_dlpack())
            binding.clear_binding_outputs()
        if not self._held.value:
            raise IndexError(f"an index is out of range in graph @{signature.graph}")
        return outputs
