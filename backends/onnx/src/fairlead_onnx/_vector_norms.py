"""The rule of vector norms, of any order and along any dimensions."""

from __future__ import annotations

import math

from fairlead.ir import DType
from fairlead_onnx._call import Call
from fairlead_onnx._creation import filled
from fairlead_onnx._exponentials import root
from fairlead_onnx._reductions import extreme, reduced_long
from fairlead_onnx._rules import rule
from fairlead_onnx._writer import Declined, Ref

__all__: list[str] = []


@rule("aten.linalg_vector_norm.default")
def vector_norm(c: Call) -> Ref:
    """Of order 0 the number of elements that are not 0, of an infinite one the extremum of the magnitudes."""
    w, order, axes, keep = c.writer, float(c.number(1)), c.axes(2), bool(c.args[3])
    if 0 in c.type(0).shape:
        if not 0 <= order < math.inf:
            raise Declined(f"a norm of order {order:g} of no elements")
        return filled(w, w.number(0.0, c.dtype), c.out.shape)
    x = w.abs(c.tensor(0, c.dtype))
    if math.isinf(order):
        return extreme(c, "ReduceMax" if order > 0 else "ReduceMin", x, axes, keep=keep)
    total = reduced_long(c, "ReduceSum", _terms(c, x, order), axes, keep=keep)
    if order in (0, 1):
        return total
    return root(w, total) if order == 2 else w.same("Pow", total, w.number(1 / order, c.dtype))


def _terms(c: Call, x: Ref, order: float) -> Ref:
    """What the magnitudes contribute to the sum."""
    w = c.writer
    if order == 1:
        return x
    if order == 2:
        return w.same("Mul", x, x)
    is_zero = w.same("Equal", x, w.number(0.0, c.dtype), result=DType.bool)
    if order == 0:
        return w.select(is_zero, w.number(0.0, c.dtype), w.number(1.0, c.dtype))
    powers = w.same("Pow", x, w.number(order, c.dtype))
    return powers if order > 0 else w.select(is_zero, w.number(math.inf, c.dtype), powers)  # a -0 has another power
