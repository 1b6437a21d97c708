"""Losses over classes as choices and sums, forward and backward. Halves are computed in float32."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from fairlead.ir import DimExpr, DType, Node, Value, dims
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


def _multi_margin_loss(node: Node, b: Ops) -> Replacement:
    x = b.float32(operand(node))
    m = _margins(b, x, operand(node, 1), number(node, 2), number(node, 3), node.args[4])
    loss = b.reduce("sum", m.loss, (m.loss.tensor.rank - 1,))
    return (_reduced(node, b, b.binary("div", loss, _count(x)), node.args[5]),)


def _multi_margin_loss_backward(node: Node, b: Ops) -> Replacement:
    grad, x = b.float32(operand(node)), b.float32(operand(node, 1))
    m = _margins(b, x, operand(node, 2), number(node, 3), number(node, 4), node.args[5])
    others = m.slope.tensor.rank - 1
    slope = b.pick(m.hit, b.unary("neg", b.reduce("sum", m.slope, (others,))), m.slope)
    grad = _spread(node, b, grad, m.slope, node.args[6])
    out = b.binary("mul", b.binary("div", slope, _count(x)), grad)
    return (b.view(b.cast(out, node.result.tensor.dtype), node.result.tensor.shape),)


class _Margins(NamedTuple):
    """By item and class: which class is the target, what the others lose to it, and how steeply."""

    hit: Value
    loss: Value
    slope: Value


def _margins(b: Ops, x: Value, target: Value, power: float, margin: float, weight: object) -> _Margins:
    rows = b.view(x, _by_item(x))
    classes = b.view(target, (*rows.tensor.shape[:-1], 1))
    hit = b.compare("eq", classes, b.arange(x, rows.tensor.shape[-1]))
    behind = b.binary("add", b.binary("sub", rows, b.gather(rows, 1, classes)), margin)
    loses = b.both(b.compare("gt", behind, 0.0), b.negated(hit))
    loss = behind if power == 1 else b.binary("mul", behind, behind)
    slope = b.full(behind, (), 1.0) if power == 1 else b.binary("mul", behind, 2.0)
    if isinstance(weight, Value):
        weights = b.select(b.cast(weight, x.tensor.dtype), classes)
        loss, slope = b.binary("mul", loss, weights), b.binary("mul", slope, weights)
    return _Margins(hit, b.pick(loses, loss, 0.0), b.pick(loses, slope, 0.0))


def _multilabel_margin_loss(node: Node, b: Ops) -> Replacement:
    x = b.float32(operand(node))
    m = _labels(b, x, operand(node, 1))
    loss = b.reduce("sum", b.reduce("sum", m.loss, (2,)), (1,))
    loss = b.binary("div", b.view(loss, loss.tensor.shape[:-1]), _count(x))
    result = node.results[1]
    shown = None if result is None else b.view(b.cast(m.is_target, result.tensor.dtype), result.tensor.shape)
    return None if node.results[0] is None else _reduced(node, b, loss, node.args[2]), shown


def _multilabel_margin_loss_backward(node: Node, b: Ops) -> Replacement:
    grad, x = b.float32(operand(node)), b.float32(operand(node, 1))
    m = _labels(b, x, operand(node, 2))
    steep = b.cast(b.compare("gt", m.loss, 0.0), x.tensor.dtype)
    # Each target gains what all others lose to it; a class that is named twice is a target twice.
    up = b.binary("mul", b.cast(m.names, x.tensor.dtype), b.reduce("sum", steep, (2,)))
    slope = b.binary("sub", b.reduce("sum", steep, (1,)), b.reduce("sum", up, (1,)))
    slope = b.view(slope, _by_item(x))
    grad = _spread(node, b, grad, slope, node.args[3])
    out = b.binary("mul", b.binary("div", slope, _count(x)), grad)
    return (b.view(b.cast(out, node.result.tensor.dtype), node.result.tensor.shape),)


class _Labels(NamedTuple):
    """By item: which class each entry names, what each class loses to it, and which classes are named."""

    names: Value
    loss: Value
    is_target: Value


def _labels(b: Ops, x: Value, target: Value) -> _Labels:
    """Entries count up to the first that is negative."""
    items, count = _by_item(x)
    rows, entries = b.view(x, (items, count)), b.view(target, (items, count))
    ended = b.emit("aten.cumsum.default", (b.cast(b.compare("lt", entries, 0), DType.i64), 1, None), entries.type)
    counts = b.compare("eq", ended, 0)
    classes = b.pick(counts, entries, 0)
    hit = b.compare("eq", b.view(classes, (items, count, 1)), b.arange(x, count))
    names = b.both(hit, b.view(counts, (items, count, 1)))
    is_target = b.compare("gt", b.reduce("sum", b.cast(names, x.tensor.dtype), (1,)), 0)
    ahead = b.view(b.gather(rows, 1, classes), (items, count, 1))
    behind = b.binary("add", b.unary("neg", b.binary("sub", ahead, b.view(rows, (items, 1, count)))), 1.0)
    loses = b.both(b.compare("gt", behind, 0.0), b.negated(is_target))
    loses = b.both(loses, b.view(counts, (items, count, 1)))
    return _Labels(names, b.pick(loses, behind, 0.0), is_target)


def _by_item(x: Value) -> tuple[dims.Dim, dims.Dim]:
    return (x.tensor.shape[0], x.tensor.shape[1]) if x.tensor.rank > 1 else (1, dims.product(x.tensor.shape))


def _count(x: Value) -> DimExpr | float:
    classes = _by_item(x)[1]
    return DimExpr(classes) if isinstance(classes, str) else float(classes)


def _reduced(node: Node, b: Ops, loss: Value, reduction: object) -> Value:
    """The losses of the items as the op's first result has them."""
    result = node.results[0]
    assert result is not None, "the loss is used"
    if reduction == _MEAN:
        loss = b.reduce("mean", loss, tuple(range(loss.tensor.rank)))
    elif reduction == _SUM:
        loss = b.reduce("sum", loss, tuple(range(loss.tensor.rank)))
    return b.view(b.cast(loss, result.tensor.dtype), result.tensor.shape)


def _spread(node: Node, b: Ops, grad: Value, rows: Value, reduction: object) -> Value:
    """The gradient of the loss of each item, out of that of the result."""
    items = rows.tensor.shape[0]
    grad = b.view(grad, (items, 1) if grad.tensor.rank else (1, 1))
    if reduction != _MEAN:
        return grad
    return b.binary("div", grad, DimExpr(items) if isinstance(items, str) else float(items))


LOSSES: Mapping[str, Callable[[Node, Ops], Replacement | None]] = {
    "aten.nll_loss_forward.default": _nll_loss,
    "aten.nll_loss2d_forward.default": _nll_loss,
    "aten.nll_loss_backward.default": _nll_loss_backward,
    "aten.nll_loss2d_backward.default": _nll_loss_backward,
    "aten.multi_margin_loss.default": _multi_margin_loss,
    "aten.multi_margin_loss_backward.default": _multi_margin_loss_backward,
    "aten.multilabel_margin_loss_forward.default": _multilabel_margin_loss,
    "aten.multilabel_margin_loss_backward.default": _multilabel_margin_loss_backward,
}
