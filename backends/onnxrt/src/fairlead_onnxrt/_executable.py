"""Runs a session: binds torch's memory for inputs and fresh outputs, from any thread."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnxruntime
import torch
from onnxruntime.capi import _pybind_state as ort

from fairlead.ir import DType, Graph, ScalarType
from fairlead.ir.dims import evaluator
from fairlead_onnx import ModelFile
from fairlead_onnxrt._options import OnnxRuntimeOptions
from fairlead_onnxrt._session import Session, model_file, open_session, optimized_text

__all__ = ["SessionExecutable"]

TORCH_DTYPES = {
    DType.bool: torch.bool,
    DType.u8: torch.uint8,
    DType.i8: torch.int8,
    DType.i16: torch.int16,
    DType.i32: torch.int32,
    DType.i64: torch.int64,
    DType.f16: torch.float16,
    DType.bf16: torch.bfloat16,
    DType.f32: torch.float32,
    DType.f64: torch.float64,
}
_ELEMENT_TYPES = {
    DType.f32: 1,
    DType.u8: 2,
    DType.i8: 3,
    DType.i16: 5,
    DType.i32: 6,
    DType.i64: 7,
    DType.bool: 9,
    DType.f16: 10,
    DType.f64: 11,
    DType.bf16: 16,
}
_CPU = ort.OrtDevice(ort.OrtDevice.cpu(), ort.OrtDevice.default_memory(), 0)
_NOWHERE = torch.zeros(1, dtype=torch.int64, device="cpu")
_NOWHERE_ADDRESS = _NOWHERE.data_ptr()
"""An address for tensors of no elements, whose own is null, which binding refuses."""
_LARGE = 1 << 20
"""From so many bytes on, ONNX Runtime allocates a result. The system takes such memory back from torch's allocator each
time it is freed, and hands it out a page at a time: a tenth of a small model's call. The runtime's arena keeps it."""


@dataclass(frozen=True, slots=True)
class _Input:
    """One passed input: element type and, where static, its shape.

    ``name`` is its name in the session, None where nothing reads it.
    """

    name: str | None
    element: int
    shape: tuple[int, ...] | None
    is_scalar: bool


@dataclass(frozen=True, slots=True)
class _Output:
    name: str
    element: int
    dtype: torch.dtype
    shape: tuple[int, ...] | None
    sizes: tuple[Callable[[Mapping[str, int]], int], ...]


@dataclass(frozen=True, slots=True)
class _Signature:
    """What a call needs to know of the graph, worked out once."""

    inputs: tuple[_Input, ...]
    outputs: tuple[_Output, ...]
    symbols: tuple[tuple[str, int, int | None], ...]


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
        self.file = model_file(graph, constants) if file is None else file
        self._graph = graph
        self._options = options
        self.refit(constants)

    def readable(self) -> Mapping[str, str]:
        """The model as it was lowered, and as ONNX Runtime rewrote it, in ONNX's text form."""
        optimized = optimized_text(self._graph, self.file, self._options, self._constants)
        return {"onnx.txt": self.file.text(), "optimized.onnx.txt": optimized}

    def refit(self, constants: Mapping[int, torch.Tensor], /) -> None:
        """Load the session again: ONNX Runtime packs weights, so that new values in place are not enough."""
        self._constants = constants
        session = open_session(self._graph, self.file, self._options, constants)
        self._runs = _Runs(session, _signature(self._graph, self.file, self.baked))

    def __call__(self, inputs: Sequence[Any], /) -> list[torch.Tensor]:
        return self._runs(inputs)


class _Runs:
    """A session and its idle bindings. A binding serves one call at a time; a call that finds none makes one."""

    def __init__(self, session: Session, signature: _Signature) -> None:
        self._session = session
        self._signature = signature
        self._idle: list[_Binding] = []

    def __call__(self, inputs: Sequence[Any]) -> list[torch.Tensor]:
        try:
            binding = self._idle.pop()
        except IndexError:
            binding = _Binding(self._session.session, self._signature)
        try:
            return binding.run(inputs)
        finally:
            self._idle.append(binding)


class _Binding:
    """One set of bound addresses. What stays where it was is not bound again; every output is."""

    def __init__(self, session: onnxruntime.InferenceSession, signature: _Signature) -> None:
        self._run = session._sess.run_with_iobinding
        self._binding = ort.SessionIOBinding(session._sess)
        self._options = ort.RunOptions()
        self._signature = signature
        self._addresses: list[int] = [0] * len(signature.inputs)

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
        env = {name: inputs[i] if dim is None else inputs[i].shape[dim] for name, i, dim in signature.symbols}
        outputs: list[Any] = []
        large = []
        for at, out in enumerate(signature.outputs):
            shape = out.shape
            if shape is None:
                shape = tuple(size(env) for size in out.sizes)
            if out.dtype is not torch.bool and math.prod(shape) * out.dtype.itemsize >= _LARGE:
                binding.bind_output(out.name, _CPU)
                outputs.append(None)
                large.append(at)
                continue
            tensor = torch.empty(shape, dtype=out.dtype, device="cpu")
            binding.bind_output(out.name, _CPU, out.element, shape, tensor.data_ptr() or _NOWHERE_ADDRESS)
            outputs.append(tensor)
        self._run(binding, self._options)
        if large:
            values = binding.get_outputs()
            for at in large:
                outputs[at] = torch.utils.dlpack.from_dlpack(values[at].to_dlpack())
            binding.clear_binding_outputs()
        return outputs


def _signature(graph: Graph, file: ModelFile, baked: frozenset[int]) -> _Signature:
    passed = [i for i in range(len(graph.inputs)) if i not in baked]
    position = {index: at for at, index in enumerate(passed)}
    specs = tuple(_input(graph, i, file.inputs[i]) for i in passed)
    results = tuple(
        _output(name, value.tensor.dtype, value.tensor.shape)
        for name, value in zip(file.outputs, graph.output_values(), strict=True)
    )
    dynamic = any(o.shape is None for o in results)
    symbols = tuple((s.name, position[s.source[0]], s.source[1]) for s in graph.symbols) if dynamic else ()
    return _Signature(specs, results, symbols)


def _input(graph: Graph, index: int, name: str | None) -> _Input:
    type_ = graph.inputs[index].value.type
    if isinstance(type_, ScalarType):
        return _Input(name, _ELEMENT_TYPES[DType.i64], (), True)
    shape = tuple(d for d in type_.shape if isinstance(d, int))
    return _Input(name, _ELEMENT_TYPES[type_.dtype], shape if type_.is_static else None, False)


def _output(name: str, dtype: DType, shape: tuple[int | str, ...]) -> _Output:
    static = tuple(d for d in shape if isinstance(d, int))
    is_static = len(static) == len(shape)
    sizes = () if is_static else tuple(map(evaluator, shape))
    return _Output(name, _ELEMENT_TYPES[dtype], TORCH_DTYPES[dtype], static if is_static else None, sizes)
