"""Softmax and its logarithm as exponentials and sums, forward and backward."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fairlead.ir import Node
from fairlead.passes._nodes import number, operand
from fairlead.passes._ops import Ops
from fairlead.passes._rewrite import Replacement


def _softmax(node: Node, b: Ops) -> Replacement:
    x, axis = b.float32(operand(node)), _axis(node, 1)
    if 0 in x.tensor.shape:
        return (b.cast(x, node.result.tensor.dtype),)
    e = b.unary("exp", b.binary("sub", x, b.reduce("amax", x, axis)))
    return (b.cast(b.binary("div", e, b.reduce("sum", e, axis)), node.result.tensor.dtype),)


def _log_softmax(node: Node, b: Ops) -> Replacement:
    x, axis = b.float32(operand(node)), _axis(node, 1)
    if 0 in x.tensor.shape:
        return (b.cast(x, node.result.tensor.dtype),)
    shifted = b.binary("sub", x, b.reduce("amax", x, axis))
    total = b.reduce("sum", b.unary("exp", shifted), axis)
    return (b.cast(b.binary("sub", shifted, b.unary("log", total)), node.result.tensor.dtype),)


def _softmax_backward(node: Node, b: Ops) -> Replacement:
    grad, y, axis = b.float32(operand(node)), b.float32(operand(node, 1)), _axis(node, 2)
    product = b.binary("mul", grad, y)
    out = b.binary("sub", product, b.binary("mul", y, b.reduce("sum", product, axis)))
    return (b.cast(out, node.result.tensor.dtype),)


def _log_softmax_backward(node: Node, b: Ops) -> Replacement:
    grad, y, axis = b.float32(operand(node)), b.float32(operand(node, 1)), _axis(node, 2)
    out = b.binary("sub", grad, b.binary("mul", b.unary("exp", y), b.reduce("sum", grad, axis)))
    return (b.cast(out, node.result.tensor.dtype),)


def _axis(node: Node, index: int) -> tuple[int, ...]:
    """The dimension that a softmax goes over; none of a number."""
    rank = operand(node).tensor.rank
    return (int(number(node, index)) % rank,) if rank else ()


SOFTMAXES: Mapping[str, Callable[[Node, Ops], Replacement | None]] = {
    "aten._softmax.default": _softmax,
    "aten._log_softmax.default": _log_softmax,
    "aten._softmax_backward_data.default": _softmax_backward,
    "aten._log_softmax_backward_data.default": _log_softmax_backward,
}
