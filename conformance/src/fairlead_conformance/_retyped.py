"""A graph with other types of its tensors, everywhere that a type is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from fairlead.ir import Argument, Graph, Input, Node, Output, TensorType, Token, Type, Value

__all__ = ["Change", "retyped"]


class Change(NamedTuple):
    """What becomes of each tensor's type, and of each token among arguments."""

    type_: Callable[[TensorType], TensorType]
    token: Callable[[Token], Token]


def retyped(graph: Graph, change: Change) -> Graph:
    """The graph with its inputs, values, tokens, regions and outputs changed alike."""
    return msgspec.structs.replace(
        graph,
        inputs=tuple(_input(i, change) for i in graph.inputs),
        nodes=tuple(_node(n, change) for n in graph.nodes),
        outputs=tuple(_output(o, change) for o in graph.outputs),
    )


def _type(type_: Type, change: Change) -> Type:
    return change.type_(type_) if isinstance(type_, TensorType) else type_


def _value(value: Value, change: Change) -> Value:
    return Value(value.id, _type(value.type, change))


def _input(item: Input, change: Change) -> Input:
    return msgspec.structs.replace(item, value=_value(item.value, change))


def _output(output: Output, change: Change) -> Output:
    if not isinstance(output.value, Value):
        return output
    return msgspec.structs.replace(output, value=_value(output.value, change))


def _node(node: Node, change: Change) -> Node:
    return msgspec.structs.replace(
        node,
        args=tuple(_argument(a, change) for a in node.args),
        results=tuple(r and _value(r, change) for r in node.results),
        regions=tuple(retyped(r, change) for r in node.regions),
    )


def _argument(argument: Argument, change: Change) -> Argument:
    match argument:
        case Value():
            return _value(argument, change)
        case Token():
            return change.token(argument)
        case tuple():
            return tuple(_argument(a, change) for a in argument)
    return argument
