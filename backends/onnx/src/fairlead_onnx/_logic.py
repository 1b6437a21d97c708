"""Rules of comparisons, selection, logic and conversions, element by element."""

from __future__ import annotations

import math

from fairlead.ir import DType, Value
from fairlead_onnx._call import Call, Rule, promoted
from fairlead_onnx._rules import rule
from fairlead_onnx._writer import Ref, Writer, computed

__all__ = ["extremum", "is_infinite", "is_nan", "is_nonzero", "select"]


def _comparison(op: str) -> Rule:
    def write(c: Call) -> Ref:
        dtype = computed(promoted(c.args[:2]))
        return c.writer.same(op, c.exact(0, dtype), c.exact(1, dtype), result=DType.bool)

    return write


def _flipped(op: str) -> Rule:
    """``a > b`` as ``b < a``: OpenVINO takes the first for ``not a <= b``, which a NaN makes true."""

    def write(c: Call) -> Ref:
        dtype = computed(promoted(c.args[:2]))
        return c.writer.same(op, c.exact(1, dtype), c.exact(0, dtype), result=DType.bool)

    return write


rule("aten.eq.Tensor")(_comparison("Equal"))
rule("aten.lt.Tensor")(_comparison("Less"))
rule("aten.le.Tensor")(_comparison("LessOrEqual"))
rule("aten.gt.Tensor")(_flipped("Less"))
rule("aten.ge.Tensor")(_flipped("LessOrEqual"))


@rule("aten.ne.Tensor")
def not_equal(c: Call) -> Ref:
    equal = _comparison("Equal")(c)
    assert isinstance(equal, Ref)
    return c.writer.op("Not", equal)


@rule("aten.isnan.default")
def isnan(c: Call) -> Ref:
    x = c.exact(0)
    return is_nan(c.writer, x) if x.dtype.is_floating else _never(c.writer, x)


@rule("aten.isinf.default")
def isinf(c: Call) -> Ref:
    x = c.exact(0)
    return is_infinite(c.writer, x) if x.dtype.is_floating else _never(c.writer, x)


def _never(w: Writer, x: Ref) -> Ref:
    return w.op("Not", w.same("Equal", x, x, result=DType.bool))


def is_nan(w: Writer, x: Ref) -> Ref:
    """Where a floating tensor is not a number."""
    return w.op("IsNaN", x, dtype=DType.bool)


def is_infinite(w: Writer, x: Ref) -> Ref:
    """Where a floating tensor is infinite."""
    return w.op("IsInf", x, dtype=DType.bool)


def is_nonzero(w: Writer, x: Ref) -> Ref:
    """Where a floating tensor is neither 0 nor NaN: not as a Not, which ONNX Runtime undoes in front of a Where."""
    return w.same("Less", w.number(0.0, x.dtype), w.abs(x), result=DType.bool)


@rule("aten.maximum.default")
def maximum(c: Call) -> Ref:
    return extremum(c, "Max", c.tensor(0, c.dtype), c.tensor(1, c.dtype))


@rule("aten.minimum.default")
def minimum(c: Call) -> Ref:
    return extremum(c, "Min", c.tensor(0, c.dtype), c.tensor(1, c.dtype))


def extremum(c: Call, op: str, a: Ref, b: Ref) -> Ref:
    """The larger or smaller of two; a NaN in either is the result, as torch has it."""
    if a.dtype is DType.bool:
        return c.writer.op("Or" if op == "Max" else "And", a, b)
    return c.writer.extremum(op, a, b)


@rule("aten.clamp.Tensor", "aten.clamp.default")
def clamp(c: Call) -> Ref:
    x, low, high = c.tensor(0, c.dtype), c.args[1], c.args[2]
    plain = all(b is None or isinstance(b, (int, float)) for b in (low, high))
    if plain and c.dtype is DType.f32 and _ordered(low, high):
        # an absent bound is the largest finite number to runtimes
        bounds = [
            c.operand(b, c.dtype) for b in (-math.inf if low is None else low, math.inf if high is None else high)
        ]
        return c.writer.with_nan("Clip", c.writer.op("Clip", x, *bounds), x)
    if low is not None:
        x = extremum(c, "Max", x, c.tensor(1, c.dtype))
    return x if high is None else extremum(c, "Min", x, c.tensor(2, c.dtype))


def _ordered(low: object, high: object) -> bool:
    return not (isinstance(low, (int, float)) and isinstance(high, (int, float))) or low <= high


@rule("aten.where.self")
def where(c: Call) -> Ref:
    return select(c.writer, c.tensor(0, DType.bool), c.tensor(1, c.dtype), c.tensor(2, c.dtype))


@rule("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def masked_fill(c: Call) -> Ref:
    return select(c.writer, c.tensor(1, DType.bool), c.tensor(2, c.dtype), c.tensor(0, c.dtype))


def select(w: Writer, condition: Ref, yes: Ref, no: Ref) -> Ref:
    """As `Writer.select`, and with the sign of every zero.

    Of two tensors, where the runtime loses it in ``yes``, the product of each with ones in the places of the other.
    """
    if not w.target.where_drops_sign or not w.may_be_negative_zero(yes):
        return w.select(condition, yes, no)
    otherwise = w.op("Xor", condition, w.number(True, DType.bool))  # ONNX Runtime undoes a Not in front of a Where
    if not w.may_be_negative_zero(no):
        return w.select(otherwise, no, yes)
    one = w.number(1.0, yes.dtype)
    return w.same("Mul", w.select(otherwise, one, yes), w.select(condition, one, no))


def _logical(op: str) -> Rule:
    def write(c: Call) -> Ref:
        return c.writer.op(op, c.tensor(0, DType.bool), c.tensor(1, DType.bool))

    return write


def _bitwise(op: str) -> Rule:
    def write(c: Call) -> Ref:
        a, b = c.tensor(0, c.dtype), c.tensor(1, c.dtype)
        return c.writer.op(op, a, b) if c.dtype is DType.bool else c.writer.same(f"Bitwise{op}", a, b)

    return write


for _name in ("and", "or", "xor"):
    rule(f"aten.logical_{_name}.default")(_logical(_name.capitalize()))
    rule(f"aten.bitwise_{_name}.Tensor")(_bitwise(_name.capitalize()))


@rule("aten.logical_not.default")
def logical_not(c: Call) -> Ref:
    return c.writer.op("Not", c.tensor(0, DType.bool))


@rule("aten.bitwise_not.default")
def bitwise_not(c: Call) -> Ref:
    return c.writer.op("Not", c.tensor(0)) if c.dtype is DType.bool else c.writer.same("BitwiseNot", c.tensor(0))


@rule("aten._to_copy.default", "prims.convert_element_type.default")
def to_copy(c: Call) -> Ref:
    source = c.args[0]
    assert isinstance(source, Value)
    if c.out.dtype in c.writer.target.cuts and not source.tensor.dtype.is_floating:
        return c.writer.widen(c.writer.cast(c.tensor(0), c.out.dtype))
    out = c.exact(0, c.dtype) if not c.dtype.is_floating else c.tensor(0, c.dtype)
    return c.writer.rounded(out, c.out.dtype)


@rule("aten.clone.default", "aten.alias.default")
def identity(c: Call) -> Ref:
    return c.tensor(0)
