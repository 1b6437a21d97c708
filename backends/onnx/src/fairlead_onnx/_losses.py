"""Rules of the negative log-likelihood, forward and backward."""

from __future__ import annotations

from fairlead.ir import DType
from fairlead_onnx._call import Call
from fairlead_onnx._creation import filled
from fairlead_onnx._ranges import within
from fairlead_onnx._rules import rule
from fairlead_onnx._writer import Declined, Ref

__all__: list[str] = []


@rule("aten.nll_loss_forward.default", "aten.nll_loss2d_forward.default")
def nll_loss(c: Call) -> tuple[Ref | None, ...]:
    """Arguments: input, target, weight, reduction, ignored class. Results: loss, total weight."""
    w, x = c.writer, c.tensor(0)
    if c.rank(0) not in (2, 4) or 0 in c.type(0).shape:
        raise Declined("nll_loss of other than a full batch of rows")
    kept, safe, weight = _classes(c, 0, 1, 2, c.number(4))
    picked = w.op("GatherElements", x, w.op("Unsqueeze", safe, w.ints(1)), axis=1)
    losses = w.same("Neg", w.op("Squeeze", picked, w.ints(1)))
    zero = w.number(0.0, x.dtype)
    losses = w.select(kept, w.same("Mul", losses, weight), zero)
    reduction = c.number(3)
    if reduction == 0:
        return losses, (zero if c.wants(1) else None)
    axes = tuple(range(c.rank(0) - 1))
    total, summed = (w.same_axes("ReduceSum", part, axes, False) for part in (weight, losses))
    return (w.same("Div", summed, total) if reduction == 1 else summed), total


@rule("aten.nll_loss_backward.default", "aten.nll_loss2d_backward.default")
def nll_loss_backward(c: Call) -> Ref:
    """Arguments: grad, input, target, weight, reduction, ignored class, total weight."""
    w = c.writer
    if c.rank(1) not in (2, 4) or 0 in c.type(1).shape:
        raise Declined("nll_loss of other than a full batch of rows")
    grad = c.tensor(0)
    kept, safe, weight = _classes(c, 1, 2, 3, c.number(5))
    scale = w.same("Neg", w.same("Mul", weight, grad))
    if c.number(4) == 1:
        scale = w.same("Div", scale, c.tensor(6, scale.dtype))
    scale = w.select(kept, scale, w.number(0.0, scale.dtype))
    column = w.op("Unsqueeze", scale, w.ints(1))
    zeros = filled(w, w.number(0.0, column.dtype), c.type(1).shape)
    return w.op("ScatterElements", zeros, w.op("Unsqueeze", safe, w.ints(1)), column, axis=1)


def _classes(c: Call, x: int, target: int, weight: int, ignored: float) -> tuple[Ref, Ref, Ref]:
    """Which rows count, their classes (0 where they do not), and the weight of each row."""
    w, dtype = c.writer, c.tensor(x).dtype
    classes = c.tensor(target, DType.i64)
    kept = w.op("Not", w.same("Equal", classes, w.number(int(ignored), DType.i64), result=DType.bool))
    safe = w.select(kept, classes, w.number(0, DType.i64))
    safe = within(w, safe, c.type(x).shape[1], is_static=c.type(target).is_static, guard=True)
    if c.args[weight] is None:
        return kept, safe, w.cast(kept, dtype)
    rows = w.op("Gather", c.tensor(weight, dtype), safe, axis=0)
    return kept, safe, w.select(kept, rows, w.number(0.0, dtype))
