"""How large 64-bit integers may be, so that the CPU plugin, which keeps them in 32 bits, computes with them rightly."""

from __future__ import annotations

import torch

from fairlead.ir import DType, Graph, Node, ScalarType, TensorType, Type, Value
from fairlead.passes import is_view

__all__ = ["NEAR", "largest", "largest_that_fits", "only_indices"]

_END = 2**31 - 1
_SUMS = frozenset({"aten.add.Tensor", "aten.sub.Tensor"})
_FILLING = frozenset(
    {
        "aten.arange.default",
        "aten.arange.start_step",
        "aten.clamp.Tensor",
        "aten.clamp.default",
        "aten.constant_pad_nd.default",
        "aten.full.default",
        "aten.full_like.default",
        "aten.hardtanh.default",
        "aten.masked_fill.Scalar",
        "aten.maximum.default",
        "aten.scatter.value",
        "aten.scalar_tensor.default",
        "aten.where.self",
    }
)
"""Ops whose numbers become elements of the result; those of others are dimensions and bounds."""


_INDICES: dict[str, tuple[int, int]] = {
    "aten.embedding.default": (0, 1),
    "aten.index.Tensor": (0, 1),
    "aten.index_select.default": (0, 2),
}
"""Where ops that fail for indices out of range have what is read, and the indices."""

_CHOOSING = frozenset({"aten.maximum.default", "aten.minimum.default", "aten.where.self"})
_KEEPING = frozenset({"aten.abs.default", "aten.neg.default"})
NEAR = 2**24
_MOST_TIMES = 8
"""So many numbers near 0, each within ``NEAR``, do not bring what is cut to the largest that fits back into range."""


def largest(given: torch.Tensor | int) -> int:
    """The largest magnitude."""
    if isinstance(given, int):
        return abs(given)
    if given.numel() == 0:
        return 0
    array = given.numpy()
    return max(-int(array.min()), int(array.max()))


def largest_that_fits(graph: Graph) -> int:
    """Up to which magnitude of the inputs no integer of the graph leaves 32 bits; -1 where a number of its own does.

    Sums add the bounds of their operands, and everything else that is not declined keeps within those of its own. A
    bound is a multiple of the largest input, and what is added to it.
    """
    bounds = _bounds(graph).values()
    return min((-1 if more > _END else (_END - more) // max(times, 1) for times, more in bounds), default=_END)


def _bounds(graph: Graph) -> dict[int, tuple[int, int]]:
    """Of each 64-bit integer, by its id: of what multiple of the largest input, and of what besides, it is within."""
    bounds: dict[int, tuple[int, int]] = {i.value.id: (1, 0) for i in graph.inputs if _is_wide(i.value.type)}
    for node in graph.nodes:
        bound = _bound(node, bounds)
        bounds |= {r.id: bound for r in node.results if r is not None and _is_wide(r.type)}
    return bounds


def only_indices(graph: Graph) -> frozenset[int]:
    """The inputs, by their places, that may be cut to what fits, since where that matters they are no right index.

    Nothing but indices is made of them, and of each by a choice among values, a sign, and what is added that is near 0:
    what is far out of range stays so, and is not chosen, or is an error in torch. ``NEAR`` is what all other inputs
    have to be within for that.
    """
    bounds = _bounds(graph).values()
    if any(times > _MOST_TIMES or more > NEAR for times, more in bounds):
        return frozenset()
    tensors = [(i, item.value) for i, item in enumerate(graph.inputs) if isinstance(item.value.type, TensorType)]
    return frozenset(i for i, value in tensors if value.tensor.dtype is DType.i64 and _only_indexes(graph, value))


def _only_indexes(graph: Graph, value: Value) -> bool:
    made = {value.id}
    for node in graph.nodes:
        if not any(v.id in made for v in node.operands()):
            continue
        if node.op in _INDICES:
            if not _is_index(node, made):
                return False
        elif not node.regions and _stays_far(node, made):
            made.update(r.id for r in node.results if r is not None)
        else:
            return False
    return made.isdisjoint(v.id for v in graph.output_values())


def _is_index(node: Node, made: set[int]) -> bool:
    """Whether the op reads values that were made of it as indices alone, in what has not too many rows."""
    source, _ = (node.args[k] for k in _INDICES[node.op])
    assert isinstance(source, Value), "what is read"
    sizes = source.tensor.shape
    return source.id not in made and all(isinstance(n, int) and n < NEAR for n in sizes)


def _stays_far(node: Node, made: set[int]) -> bool:
    """Whether results are as far out of range as the operand that is, or are other operands."""
    if node.op in _SUMS:
        of_it = [isinstance(a, Value) and a.id in made for a in node.args[:2]]
        return sum(of_it) == 1 and node.args[2:] in ((), (1,))
    if node.op == "aten.where.self":
        return not (isinstance(node.args[0], Value) and node.args[0].id in made)
    return node.op in _CHOOSING or node.op in _KEEPING or is_view(node.op)


def _bound(node: Node, bounds: dict[int, tuple[int, int]]) -> tuple[int, int]:
    if node.op in _SUMS:
        (a, b), (c, d) = (_of(arg, bounds) for arg in node.args[:2])
        alpha = node.args[2] if len(node.args) > 2 else 1
        times = max(1, abs(int(alpha))) if isinstance(alpha, (int, float)) else 1
        return a + times * c, b + times * d
    args = _flat(node.args) if node.op in _FILLING else node.operands()
    each = [_of(arg, bounds) for arg in args]
    return max((times for times, _ in each), default=0), max((more for _, more in each), default=0)


def _of(arg: object, bounds: dict[int, tuple[int, int]]) -> tuple[int, int]:
    match arg:
        case Value():
            return bounds.get(arg.id, (0, 0))
        case bool() | int():
            return 0, abs(arg)
    return 0, 0


def _flat(args: tuple[object, ...]) -> list[object]:
    return [a for arg in args for a in (_flat(arg) if isinstance(arg, tuple) else [arg])]


def _is_wide(type_: Type) -> bool:
    return isinstance(type_, ScalarType) or type_.dtype is DType.i64
