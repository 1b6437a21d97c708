"""Runs a compiled model: torch's memory for inputs and fresh outputs, from any thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from openvino._pyopenvino import InferRequest

from fairlead.ir import DType, Graph, ScalarType
from fairlead.ir.dims import evaluator
from fairlead_openvino._compiled import Compiled, compile_graph, ov_tensor
from fairlead_openvino._options import OpenVINOOptions

__all__ = ["ModelExecutable"]

_TORCH_DTYPES = {
    DType.bool: torch.bool,
    DType.u8: torch.uint8,
    DType.i8: torch.int8,
    DType.i16: torch.int16,
    DType.i32: torch.int32,
    DType.i64: torch.int64,
    DType.f16: torch.float16,
    DType.bf16: torch.bfloat16,
    DType.f32: torch.float32,
}

_LARGEST = 2**30
_NOTHING: dict[int, object] = {}
"""No inputs beside the tensors that are set: the public wrapper would spend forty microseconds on them."""


@dataclass(frozen=True, slots=True)
class _Output:
    port: int
    dtype: torch.dtype
    shape: tuple[int, ...] | None
    sizes: tuple[Callable[[Mapping[str, int]], int], ...]


@dataclass(frozen=True, slots=True)
class _Signature:
    """What a call needs to know of the graph: (position, port, is a number) of each input that is read, outputs,
    symbols."""

    inputs: tuple[tuple[int, int, bool], ...]
    outputs: tuple[_Output, ...]
    symbols: tuple[tuple[str, int, int | None], ...]


class ModelExecutable:
    """A graph as a compiled model. ``baked`` are the inputs whose tensors the model holds."""

    fresh_outputs = True

    def __init__(self, graph: Graph, options: OpenVINOOptions, constants: Mapping[int, torch.Tensor]) -> None:
        self.baked = frozenset(constants)
        self._graph = graph
        self._options = options
        self.refit(constants)

    def refit(self, constants: Mapping[int, torch.Tensor], /) -> None:
        """Compile again: OpenVINO packs weights, so that new values in place are not enough."""
        compiled = compile_graph(self._graph, self._options, constants)
        self._runs = _Runs(compiled, _signature(self._graph, compiled, self.baked))

    def __call__(self, inputs: Sequence[Any], /) -> list[torch.Tensor]:
        return self._runs(inputs)


class _Runs:
    """A compiled model and its idle requests. A request serves one call at a time; a call that finds none makes one."""

    def __init__(self, compiled: Compiled, signature: _Signature) -> None:
        self._compiled = compiled
        self._signature = signature
        self._idle: list[Any] = []

    def __call__(self, inputs: Sequence[Any]) -> list[torch.Tensor]:
        try:
            request = self._idle.pop()
        except IndexError:
            request = self._compiled.model.create_infer_request()
        try:
            return _run(request, self._signature, inputs)
        finally:
            self._idle.append(request)


def _run(request: Any, signature: _Signature, inputs: Sequence[Any]) -> list[torch.Tensor]:
    held = []  # memory that only this call keeps alive
    for position, port, is_number in signature.inputs:
        given = inputs[position]
        given = torch.tensor(given, device="cpu") if is_number else given.contiguous()
        held.append(given)
        if given.dtype is torch.int64:
            _check_range(given)
        request.set_input_tensor(port, ov_tensor(given))
    env = {name: inputs[i] if dim is None else inputs[i].shape[dim] for name, i, dim in signature.symbols}
    outputs = []
    for out in signature.outputs:
        shape = out.shape
        if shape is None:
            shape = tuple(size(env) for size in out.sizes)
        tensor = torch.empty(shape, dtype=out.dtype, device="cpu")
        if 0 not in shape:
            request.set_output_tensor(out.port, ov_tensor(tensor))
        outputs.append(tensor)
    InferRequest.infer(request, _NOTHING, True, False)
    return outputs


def _check_range(tensor: torch.Tensor) -> None:
    """Refuse integers that the CPU plugin, which keeps them in 32 bits, would cut. Sums of two of them still fit."""
    if tensor.numel() == 0:
        return
    low, high = tensor.aminmax()
    if low.item() < -_LARGEST or high.item() > _LARGEST:
        raise OverflowError(f"OpenVINO computes 64-bit integers in 32 bits, and an input has one beyond {_LARGEST}")


def _signature(graph: Graph, compiled: Compiled, baked: frozenset[int]) -> _Signature:
    passed = [i for i in range(len(graph.inputs)) if i not in baked]
    place = {index: at for at, index in enumerate(passed)}
    inputs = tuple(
        (place[i], port, isinstance(graph.inputs[i].value.type, ScalarType))
        for i in passed
        if (port := compiled.inputs[i]) is not None
    )
    outputs = tuple(
        _output(port, value.tensor.dtype, value.tensor.shape)
        for port, value in zip(compiled.outputs, graph.output_values(), strict=True)
    )
    dynamic = any(o.shape is None for o in outputs)
    symbols = tuple((s.name, place[s.source[0]], s.source[1]) for s in graph.symbols) if dynamic else ()
    return _Signature(inputs, outputs, symbols)


def _output(port: int, dtype: DType, shape: tuple[int | str, ...]) -> _Output:
    static = tuple(d for d in shape if isinstance(d, int))
    if len(static) == len(shape):
        return _Output(port, _TORCH_DTYPES[dtype], static, ())
    return _Output(port, _TORCH_DTYPES[dtype], None, tuple(map(evaluator, shape)))
