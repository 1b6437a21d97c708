"""How large 64-bit integers may be, so that the CPU plugin, which keeps them in 32 bits, computes with them rightly."""

from __future__ import annotations

import torch

from fairlead.ir import DType, Graph, Node, ScalarType, Type, Value

__all__ = ["largest", "largest_that_fits"]

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
    bounds: dict[int, tuple[int, int]] = {i.value.id: (1, 0) for i in graph.inputs if _is_wide(i.value.type)}
    for node in graph.nodes:
        bound = _bound(node, bounds)
        bounds |= {r.id: bound for r in node.results if r is not None and _is_wide(r.type)}
    return min((-1 if more > _END else (_END - more) // max(times, 1) for times, more in bounds.values()), default=_END)


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
