"""Losses over classes as choices and sums, forward and backward. Halves are computed in float32."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from fairlead.ir import Node, Value
from fairlead.passes._nodes import number, operand
from fairlead.passes._ops import Ops
from fairlead.passes._rewrite import Replacement

_MEAN, _SUM = 1, 2


class _Targets(NamedTuple):
    """The class of each item: in range, whether it counts, and its weight (None is one)."""

    classes: Value
    counts: Value
    weight: Value | None


def _targets(b: Ops, x: Value, target: Value, weight: object, ignored: float) -> _Targets:
    """With a dimension of one where x has its classes."""
    axis = _class_axis(x)
    shape = (*x.tensor.shape[:axis], 1, *x.tensor.shape[axis + 1 :])
    target = b.view(target, shape)
    counts = b.compare("ne", target, ignored)
    classes = b.pick(counts, target, 0)
    weights = b.select(b.cast(weight, x.tensor.dtype), classes) if isinstance(weight, Value) else None
    return _Targets(classes, counts, weights)


def _class_axis(x: Value) -> int:
    return 1 if x.tensor.rank > 1 else 0


def _nll_loss(node: Node, b: Ops) -> Replacement:
    x = b.float32(operand(node))
    t = _targets(b, x, operand(node, 1), node.args[2], number(node, 4))
    loss = b.unary("neg", b.gather(x, _class_axis(x), t.classes))
    loss = b.pick(t.counts, loss if t.weight is None else b.binary("mul", loss, t.weight), 0.0)
    axes = tuple(range(x.tensor.rank))
    ones = b.full(loss, (), 1.0) if t.weight is None else t.weight
    total = b.reduce("sum", b.pick(t.counts, ones, 0.0), axes)
    if node.args[3] == _MEAN:
        loss = b.binary("div", b.reduce("sum", loss, axes), total)
    elif node.args[3] == _SUM:
        loss = b.reduce("sum", loss, axes)
    elif x.tensor.rank > 1:
        total = b.full(total, (), 0.0)
    return tuple(
        None if r is None else b.view(b.cast(v, r.tensor.dtype), r.tensor.shape)
        for r, v in zip(node.results, (loss, total), strict=True)
    )


def _nll_loss_backward(node: Node, b: Ops) -> Replacement:
    grad, x = b.float32(operand(node)), b.float32(operand(node, 1))
    t = _targets(b, x, operand(node, 2), node.args[3], number(node, 5))
    axis, rank = _class_axis(x), x.tensor.rank
    grad = b.view(grad, t.classes.tensor.shape if grad.tensor.rank else (1,) * rank)
    if node.args[4] == _MEAN:
        grad = b.binary("div", grad, b.view(b.float32(operand(node, 6)), (1,) * rank))
    if t.weight is not None:
        grad = b.binary("mul", grad, t.weight)
    column = (1,) * axis + (x.tensor.shape[axis],) + (1,) * (rank - 1 - axis)
    hit = b.compare("eq", t.classes, b.view(b.arange(x, x.tensor.shape[axis]), column))
    out = b.pick(b.both(hit, t.counts), b.unary("neg", grad), 0.0)
    return (b.cast(out, node.result.tensor.dtype),)


LOSSES: Mapping[str, Callable[[Node, Ops], Replacement | None]] = {
    "aten.nll_loss_forward.default": _nll_loss,
    "aten.nll_loss2d_forward.default": _nll_loss,
    "aten.nll_loss_backward.default": _nll_loss_backward,
    "aten.nll_loss2d_backward.default": _nll_loss_backward,
}
