"""How large 64-bit integers may be, so that the CPU plugin, which keeps them in 32 bits, computes with them rightly."""

from __future__ import annotations

import torch

from fairlead.ir import DType, Graph, Node, ScalarType, Type, Value
from fairlead.passes import is_view

__all__ = ["can_be_cut", "largest", "largest_that_fits", "near", "too_high"]

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

_READING = frozenset({"aten.embedding.default", "aten.index.Tensor", "aten.index_select.default"})
"""Ops that fail for indices out of range; their first operand is what is read."""

_NEAR = 2**24
_MOST_TIMES = 8
"""So many numbers within ``_NEAR`` bring no number that is cut to what fits back among the indices below ``_NEAR``."""


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


def can_be_cut(graph: Graph, wide: frozenset[int]) -> bool:
    """Whether the inputs at the places ``wide`` may be cut to what fits, if others are `near` and they not `too_high`.

    So it is where nothing but indices is made of them, by a choice among values and by adding what is near: what is far
    out of range stays so, and is not chosen, or is an error in torch. Where a sum may have gone round the end of 64
    bits its sign is not known, and nothing is chosen by it.
    """
    if any(times > _MOST_TIMES or more > _NEAR for times, more in _bounds(graph).values()):
        return False
    far = {graph.inputs[i].value.id for i in wide}
    unsigned: set[int] = set()
    for node in graph.nodes:
        read = far & {v.id for v in node.operands()}
        if not read:
            continue
        if node.op in _READING:
            if not _reads_by(node, far):
                return False
            continue
        if node.regions or not _stays_far(node, far, unsigned):
            return False
        made = {r.id for r in node.results if r is not None}
        far |= made
        if read & unsigned or (node.op in _SUMS and not _adds_up(node)):
            unsigned |= made
    return far.isdisjoint(v.id for v in graph.output_values())


def near(given: torch.Tensor | int) -> bool:
    """Whether it may be added to an input that is cut."""
    return largest(given) <= _NEAR


def too_high(given: torch.Tensor) -> bool:
    """Whether adding what is near to a number could go round the upper end of 64 bits."""
    return int(given.max()) > 2**62


def _reads_by(node: Node, far: set[int]) -> bool:
    """Whether the op reads values that are far out of range as indices alone, in what has not too many rows."""
    source = node.args[0]
    assert isinstance(source, Value), "what is read"
    return source.id not in far and all(isinstance(n, int) and n < _NEAR for n in source.tensor.shape)


def _stays_far(node: Node, far: set[int], unsigned: set[int]) -> bool:
    """Whether results are as far out of range as the operands that are, or are other operands."""
    of_it = [isinstance(arg, Value) and arg.id in far for arg in node.args]
    match node.op:
        case "aten.add.Tensor" | "aten.sub.Tensor":
            return sum(of_it) == 1 and node.args[2:] in ((), (1,))
        case "aten.where.self":
            return not of_it[0]
        case "aten.maximum.default" | "aten.minimum.default":
            return unsigned.isdisjoint(v.id for v in node.operands())
    return is_view(node.op)


def _adds_up(node: Node) -> bool:
    """Whether a sum adds a number that is not negative, which the lower end of 64 bits is as far out of range with."""
    x, y, *_ = node.args
    return node.op == "aten.add.Tensor" and isinstance(x, Value) and type(y) is int and y >= 0


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
