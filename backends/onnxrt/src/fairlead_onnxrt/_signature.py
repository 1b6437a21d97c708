"""What a call needs to know of a graph, worked out once: names, element types and shapes of what it binds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from fairlead.interpret import torch_dtype
from fairlead.ir import DType, Graph, ScalarType
from fairlead.ir.dims import evaluator
from fairlead_onnx import ModelFile

__all__ = ["BOOL", "BoundInput", "Signature", "bound_input", "signature_of"]

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
BOOL = _ELEMENT_TYPES[DType.bool]


@dataclass(frozen=True, slots=True)
class BoundInput:
    """One input: element type and, where static, its shape.

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
class Signature:
    """What a call needs to know of the graph, worked out once.

    ``check`` names the result that says whether every index was in range, where the session does not ask.
    """

    inputs: tuple[BoundInput, ...]
    outputs: tuple[_Output, ...]
    symbols: tuple[tuple[str, int, int | None], ...]
    check: str | None
    graph: str

    def shapes(self, inputs: Sequence[Any]) -> list[tuple[int, ...]]:
        """The shape of each output of a call."""
        env = {name: inputs[i] if dim is None else inputs[i].shape[dim] for name, i, dim in self.symbols}
        return [tuple(size(env) for size in o.sizes) if o.shape is None else o.shape for o in self.outputs]


def signature_of(graph: Graph, file: ModelFile, baked: frozenset[int]) -> Signature:
    """What a call needs to know, for inputs that are not ``baked``."""
    passed = [i for i in range(len(graph.inputs)) if i not in baked]
    position = {index: at for at, index in enumerate(passed)}
    specs = tuple(bound_input(graph, i, file.inputs[i]) for i in passed)
    results = tuple(
        _output(name, value.tensor.dtype, value.tensor.shape)
        for name, value in zip(file.outputs, graph.output_values(), strict=True)
    )
    dynamic = any(o.shape is None for o in results)
    symbols = tuple((s.name, position[s.source[0]], s.source[1]) for s in graph.symbols) if dynamic else ()
    return Signature(specs, results, symbols, file.check, graph.name)


def bound_input(graph: Graph, index: int, name: str | None) -> BoundInput:
    """What binding an input of the graph needs, by the name that it has in the session."""
    type_ = graph.inputs[index].value.type
    if isinstance(type_, ScalarType):
        return BoundInput(name, _ELEMENT_TYPES[DType.i64], (), True)
    shape = tuple(d for d in type_.shape if isinstance(d, int))
    return BoundInput(name, _ELEMENT_TYPES[type_.dtype], shape if type_.is_static else None, False)


def _output(name: str, dtype: DType, shape: tuple[int | str, ...]) -> _Output:
    static = tuple(d for d in shape if isinstance(d, int))
    is_static = len(static) == len(shape)
    sizes = () if is_static else tuple(map(evaluator, shape))
    return _Output(name, _ELEMENT_TYPES[dtype], torch_dtype(dtype), static if is_static else None, sizes)
