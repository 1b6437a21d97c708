"""Bags of equally many rows of a table, for backends that have no op for bags of any size."""

from __future__ import annotations

from collections.abc import Callable

from fairlead.ir import DimExpr, Graph, Node, Value, dims
from fairlead.passes._dead import remove_dead_nodes
from fairlead.passes._nodes import operand, shape_argument
from fairlead.passes._ops import plain
from fairlead.passes._regions import in_regions
from fairlead.passes._rewrite import Emitter, Replacement, rewrite

_REDUCTIONS = {0: "aten.sum.dim_IntList", 1: "aten.mean.dim"}
"""By ``mode``, as torch/nn/functional.py numbers them. Maxima of bags pass over NaN, which others do not."""

_WHOLE = 4
"""Bytes of a number that is not a half."""

_BAGS = ("aten._embedding_bag.default", "aten._embedding_bag_forward_only.default")


def even_bags(graph: Graph, unless: Callable[[Node], bool]) -> Graph:
    """The graph with bags of equally many rows as those rows, looked up, and their sum or mean.

    Before: a canonical graph. After: but for nodes of which ``unless`` is true, no embedding bag whose offsets are an
    arange of the graph's that begins at 0 and divides the indices evenly, and of which nobody wants more than the rows.
    """
    graph = in_regions(graph, lambda region: even_bags(region, unless))
    made = {r.id: node for node in graph.nodes if node.op == "aten.arange.start_step" for r in node.results if r}
    if not made or not any(node.op in _BAGS for node in graph.nodes):
        return graph

    def rule(node: Node, emit: Emitter) -> Replacement | None:
        if node.op not in _BAGS or node.results[0] is None or any(node.results[1:]) or unless(node):
            return None
        each = _rows_of_each(node, made.get(operand(node, 2).id))
        return None if each is None else _spread(node, each, emit)

    return remove_dead_nodes(rewrite(graph, rule))


def _rows_of_each(node: Node, offsets: Node | None) -> int | None:
    """How many rows each bag has, or None where that is not the same number or not to be told."""
    *_, mode, _, scales, last_offset, padding = node.args
    if offsets is None or mode not in _REDUCTIONS or last_offset or (isinstance(padding, int) and padding >= 0):
        return None
    if scales is not None and operand(node).tensor.dtype.itemsize < _WHOLE:  # products would be rounded
        return None
    start, end, step = offsets.args[:3]
    count = operand(node, 1).tensor.shape[0]
    whole = end.expr if isinstance(end, DimExpr) else end
    if start != 0 or not isinstance(step, int) or step < 1 or whole != count:
        return None
    (bags,) = operand(node, 2).tensor.shape
    return step if dims.product((bags, step)) == count else None


def _spread(node: Node, each: int, emit: Emitter) -> Replacement:
    table, indices, scales, mode = operand(node), operand(node, 1), node.args[6], node.args[4]
    assert isinstance(mode, int), "a mode is a number"
    (found, *_) = node.results
    assert found is not None, "somebody wants the rows"
    bags, width = found.tensor.shape

    def view(value: Value, shape: tuple[dims.Dim, ...]) -> Value:
        return emit("aten.view.default", (value, shape_argument(shape)), plain(value.tensor, shape))

    type_ = plain(table.tensor, (bags, each, width))
    rows = emit("aten.embedding.default", (table, view(indices, (bags, each)), -1, False, False), type_)
    if isinstance(scales, Value):
        rows = emit("aten.mul.Tensor", (rows, view(scales, (bags, each, 1))), type_)
    return (emit(_REDUCTIONS[mode], (rows, (1,), False, None), plain(table.tensor, (bags, width))), None, None, None)
