"""Views in one form: few ops, with complete arguments that count from the front."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from fairlead.ir import Argument, DimExpr, Graph, Node, Value, dims
from fairlead.passes._nodes import logical_same, operand, shape_argument, unless_equal
from fairlead.passes._rewrite import Emitter, Replacement, Rule, rewrite


def _view(node: Node, emit: Emitter) -> Replacement | None:
    if logical_same(node):
        return (operand(node),)
    return unless_equal(node, emit, "aten.view.default", (node.args[0], shape_argument(node.result.tensor.shape)))


def _expand(node: Node, emit: Emitter) -> Replacement | None:
    if logical_same(node):
        return (operand(node),)
    args = (node.args[0], shape_argument(node.result.tensor.shape), False)
    return unless_equal(node, emit, "aten.expand.default", args)


def _permute(node: Node, emit: Emitter) -> Replacement | None:
    rank = operand(node).tensor.rank
    match node.op, node.args[1:]:
        case "aten.t.default", _:
            order = tuple(reversed(range(rank)))
        case "aten.transpose.int", (int(a), int(b)):
            swapped = list(range(rank))
            if rank:
                swapped[a], swapped[b] = swapped[b], swapped[a]
            order = tuple(swapped)
        case _, (tuple(given),):
            order = tuple(d % rank for d in given if isinstance(d, int))
        case _:
            return None
    if order == tuple(range(rank)):
        return (operand(node),)
    return unless_equal(node, emit, "aten.permute.default", (node.args[0], order))


def _squeeze(node: Node, emit: Emitter) -> Replacement | None:
    old = operand(node).tensor
    match node.args[1:]:
        case ():
            wanted = set(range(old.rank))
        case (int(d),):
            wanted = {d % old.rank} if old.rank else set()
        case (tuple(given),):
            wanted = {d % old.rank for d in given if isinstance(d, int)} if old.rank else set()
        case _:
            return None
    gone = tuple(d for d in sorted(wanted) if old.shape[d] == 1)
    if not gone:
        return (operand(node),)
    return unless_equal(node, emit, "aten.squeeze.dims", (node.args[0], gone))


def _unsqueeze(node: Node, emit: Emitter) -> Replacement | None:
    (dim,) = node.args[1:]
    if not isinstance(dim, int) or dim >= 0:
        return None
    return (emit(node.op, (node.args[0], dim + node.result.tensor.rank), node.result.type),)


def _slice(node: Node, emit: Emitter) -> Replacement | None:
    source = operand(node).tensor
    dim, start, end, step = node.args[1:]
    if not isinstance(dim, int) or not isinstance(step, int):
        return None
    dim %= source.rank
    size = source.shape[dim]
    start = _slice_bound(start, size, 0)
    end = _slice_bound(end, size, size)
    if step == 1 and start == 0 and logical_same(node):
        return (operand(node),)
    return unless_equal(node, emit, node.op, (node.args[0], dim, start, end, step))


def _slice_bound(bound: Argument, size: dims.Dim, default: dims.Dim) -> Argument:
    """A bound of a slice, not negative and at most the size, where that can be known before the graph runs."""
    if bound is None:
        return default if isinstance(default, int) else DimExpr(default)
    if not isinstance(bound, int):
        return bound
    if isinstance(size, int):
        return min(max(bound + size if bound < 0 else bound, 0), size)
    if bound >= 2**62:
        return DimExpr(size)
    return bound


def _select(node: Node, emit: Emitter) -> Replacement | None:
    source = operand(node).tensor
    _, dim, index = node.args
    if not isinstance(dim, int):
        return None
    dim %= source.rank
    if isinstance(index, int) and index < 0:
        (index,) = shape_argument((dims.add(source.shape[dim], index),))
    return unless_equal(node, emit, node.op, (node.args[0], dim, index))


def _divide(node: Node, emit: Emitter) -> Replacement | None:
    """``split_with_sizes`` and ``unbind``, whose last argument is the dimension; a result that is not used is None."""
    dim = node.args[-1]
    if not isinstance(dim, int) or dim >= 0:
        return None
    emit.nodes.append(msgspec.structs.replace(node, args=(*node.args[:-1], dim % operand(node).tensor.rank)))
    return node.results


def merge_permutations(graph: Graph) -> Graph:
    """With one permutation where two follow each other, and none where they undo each other.

    Before: every permutation is an ``aten.permute.default``. After: none reads another. What is read no longer stays
    until dead nodes are removed.
    """
    source: dict[int, tuple[Value, tuple[int, ...]]] = {}

    def rule(node: Node, emit: Emitter) -> Replacement | None:
        if node.op != "aten.permute.default":
            return None
        value, order = operand(node), tuple(_dimensions(node.args[1]))
        inner = source.get(value.id)
        if inner is not None:
            value, order = inner[0], tuple(inner[1][d] for d in order)
        if order == tuple(range(len(order))):
            return (value,)
        source[node.result.id] = value, order
        if inner is None:
            return None
        merged = emit(node.op, (value, order), node.result.type)
        source[merged.id] = value, order
        return (merged,)

    return rewrite(graph, rule)


def _dimensions(arg: Argument) -> Iterator[int]:
    assert isinstance(arg, tuple), "the dimensions of a permutation are a list"
    yield from (d for d in arg if isinstance(d, int))


VIEW_RULES: Mapping[str, Rule] = {
    "aten.view.default": _view,
    "aten._unsafe_view.default": _view,
    "aten.reshape.default": _view,
    "aten.flatten.using_ints": _view,
    "aten.expand.default": _expand,
    "aten.permute.default": _permute,
    "aten.t.default": _permute,
    "aten.transpose.int": _permute,
    "aten.squeeze.default": _squeeze,
    "aten.squeeze.dim": _squeeze,
    "aten.squeeze.dims": _squeeze,
    "aten.unsqueeze.default": _unsqueeze,
    "aten.slice.Tensor": _slice,
    "aten.select.int": _select,
    "aten.split_with_sizes.default": _divide,
    "aten.unbind.int": _divide,
}
