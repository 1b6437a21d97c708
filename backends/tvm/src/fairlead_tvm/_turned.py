"""Weights that are read in another order of their dimensions alone, which come in that order."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from fairlead.ir import Graph, Node, TensorType, Value
from fairlead.passes import Emitter, Replacement, rewrite

__all__ = ["turned"]

_PERMUTE = "aten.permute.default"


def turned(graph: Graph, baked: Collection[int]) -> tuple[Graph, Mapping[int, tuple[int, ...]]]:
    """The graph without the turns of baked inputs that nothing reads as they are; by input, how it has to be turned.

    A rule that wants a weight in a layout of its own asks for that of an input, and a turned one is none.
    """
    orders = {i: order for i in baked if (order := _order(graph, graph.inputs[i].value)) is not None}
    if not orders:
        return graph, {}
    values = {graph.inputs[i].value.id: _in_order(graph.inputs[i].value, order) for i, order in orders.items()}

    def rule(node: Node, emit: Emitter) -> Replacement | None:
        given = node.args[0] if node.op == _PERMUTE else None
        return (values[given.id],) if isinstance(given, Value) and given.id in values else None

    inputs = tuple(msgspec.structs.replace(i, value=values.get(i.value.id, i.value)) for i in graph.inputs)
    return msgspec.structs.replace(rewrite(graph, rule), inputs=inputs), orders


def _order(graph: Graph, value: Value) -> tuple[int, ...] | None:
    """The one order in which all that read a tensor read it."""
    if not isinstance(value.type, TensorType) or any(o == value for o in graph.output_values()):
        return None
    readers = [node for node in graph.walk() if any(v.id == value.id for v in node.operands())]
    orders = {_dims(node, value.tensor.rank) for node in readers}
    return orders.pop() if len(orders) == 1 else None


def _dims(node: Node, rank: int) -> tuple[int, ...] | None:
    if node.op != _PERMUTE or not isinstance(node.args[1], tuple):
        return None
    return tuple(d % rank for d in node.args[1] if isinstance(d, int))


def _in_order(value: Value, order: tuple[int, ...]) -> Value:
    shape = tuple(value.tensor.shape[d] for d in order)
    return msgspec.structs.replace(value, type=TensorType(value.tensor.dtype, shape, device=value.tensor.device))
