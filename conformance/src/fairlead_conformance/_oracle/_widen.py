"""A graph with every floating-point type made as wide as it gets, so that running it tells what is exact."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import torch

from fairlead.ir import Argument, DType, Graph, Node, Output, TensorType, Token, Type, Value

__all__ = ["rounds", "widened", "widened_inputs"]


def widened(graph: Graph) -> Graph:
    """The graph in float64 and complex128, whatever it says; integers and booleans stay as they are."""
    return msgspec.structs.replace(
        graph,
        inputs=tuple(msgspec.structs.replace(i, value=_value(i.value)) for i in graph.inputs),
        nodes=tuple(map(_node, graph.nodes)),
        outputs=tuple(_output(o) for o in graph.outputs),
    )


def widened_inputs(graph: Graph, inputs: Sequence[Any]) -> list[Any]:
    """The inputs for the widened graph, with the strides that they have."""
    return [_wide_tensor(x) if isinstance(x, torch.Tensor) else x for x in inputs]


def rounds(dtype: DType) -> bool:
    """Whether arithmetic in this type rounds, as that of integers does not."""
    return bool(dtype.is_floating or dtype.is_complex)


def _wide_dtype(dtype: DType) -> DType:
    if dtype.is_complex:
        return DType.c128
    return DType.f64 if dtype.is_floating else dtype


def _wide_tensor(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_complex():
        return tensor.to(torch.complex128)
    return tensor.to(torch.float64) if tensor.is_floating_point() else tensor


def _type(type_: Type) -> Type:
    return msgspec.structs.replace(type_, dtype=_wide_dtype(type_.dtype)) if isinstance(type_, TensorType) else type_


def _value(value: Value) -> Value:
    return Value(value.id, _type(value.type))


def _output(output: Output) -> Output:
    return msgspec.structs.replace(output, value=_value(output.value)) if isinstance(output.value, Value) else output


def _node(node: Node) -> Node:
    return msgspec.structs.replace(
        node,
        args=tuple(map(_argument, node.args)),
        results=tuple(r and _value(r) for r in node.results),
        regions=tuple(map(widened, node.regions)),
    )


def _argument(argument: Argument) -> Argument:
    match argument:
        case Value():
            return _value(argument)
        case Token(kind="dtype", name=name):
            return Token("dtype", _wide_dtype(DType(name)).value)
        case tuple():
            return tuple(map(_argument, argument))
    return argument
