"""Rules of angles and of signs, of which ONNX has neither an arc tangent of two numbers nor the sign of a zero."""

from __future__ import annotations

import math

from fairlead.ir import DType
from fairlead_onnx._call import Call
from fairlead_onnx._logic import is_nan, select
from fairlead_onnx._rules import rule
from fairlead_onnx._writer import Ref, Writer

__all__: list[str] = []


@rule("aten.copysign.Tensor")
def copysign(c: Call) -> Ref:
    return _with_sign(c.writer, c.writer.abs(c.tensor(0, c.dtype)), c.tensor(1, c.dtype))


@rule("aten.atan2.default")
def atan2(c: Call) -> Ref:
    """The arc tangent of the smaller operand over the larger one, and what is left of a half turn."""
    w, given = c.writer, (c.tensor(0, c.dtype), c.tensor(1, c.dtype))
    y, x = map(w.abs, given)
    steep = w.same("Less", x, y, result=DType.bool)
    small, large = w.select(steep, x, y), w.select(steep, y, x)
    equal = w.same("Equal", small, large, result=DType.bool)
    angle = w.same(
        "Atan", w.select(equal, w.same("Sign", large), w.same("Div", small, large))
    )  # of 0 and of infinities
    angle = w.select(steep, w.same("Sub", w.number(math.pi / 2, c.dtype), angle), angle)
    left = _is_negative(w, given[1])
    return _with_sign(w, w.select(left, w.same("Sub", w.number(math.pi, c.dtype), angle), angle), given[0])


@rule("aten.angle.default")
def angle(c: Call) -> Ref:
    """Of a real number: half a turn where it is negative, which -0 is not; NaN stays."""
    w, x = c.writer, c.tensor(0, c.dtype)
    zero, turn = w.number(0.0, c.dtype), w.number(math.pi, c.dtype)
    found = w.select(w.same("Less", x, zero, result=DType.bool), turn, zero)
    return w.select(is_nan(w, x), x, found)


def _is_negative(w: Writer, x: Ref) -> Ref:
    """Whether a number has a sign, which of zeros shows in their inverse."""
    inverse = w.same("Div", w.number(1.0, x.dtype), x)
    return w.op("Or", *(w.same("Less", y, w.number(0.0, x.dtype), result=DType.bool) for y in (x, inverse)))


def _with_sign(w: Writer, size: Ref, sign: Ref) -> Ref:
    """A number that is not negative, with the sign of another one."""
    return select(w, _is_negative(w, sign), w.same("Neg", size), size)
