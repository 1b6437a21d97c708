"""Rules of comparisons, selection, logic, bits and conversions, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from fairlead.ir import DType
from fairlead_tvm import _tvm as t
from fairlead_tvm._arrays import Array
from fairlead_tvm._call import Call
from fairlead_tvm._functions import is_negative_zero
from fairlead_tvm._numbers import cast, operand, promoted, wide
from fairlead_tvm._rules import Rule, rule
from fairlead_tvm._tvm import Expr

__all__: list[str] = []

_COMPARISONS: dict[str, Callable[[Expr, Expr], Expr]] = {
    "eq": t.eq, "ne": t.ne, "lt": lambda x, y: x < y, "le": lambda x, y: x <= y, "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
}  # fmt: skip


def _comparison(function: Callable[[Expr, Expr], Expr]) -> Rule:
    def write(c: Call, x: Array, y: Array) -> Array:
        dtype = promoted(c.node.args[:2])
        if dtype is DType.bool:
            dtype = DType.u8
        return c.map(function, operand(x, dtype), operand(y, dtype), dtype=DType.bool)

    return write


for _name, _function in _COMPARISONS.items():
    rule(f"{_name}.Tensor")(_comparison(_function))


@rule("isnan")
def isnan(c: Call, x: Array) -> Array:
    x = wide(x)
    return c.map(lambda v: t.ne(v, v) if x.dtype.is_floating else t.const(False, DType.bool), x, dtype=DType.bool)


@rule("isinf")
def isinf(c: Call, x: Array) -> Array:
    x = wide(x)

    def holds(v: Expr) -> Expr:
        return t.eq(t.abs_(v), t.const(math.inf, x.dtype)) if x.dtype.is_floating else t.const(False, DType.bool)

    return c.map(holds, x, dtype=DType.bool)


@rule("signbit")
def signbit(c: Call, x: Array) -> Array:
    x = cast(wide(x), DType.u8) if x.dtype is DType.bool else wide(x)
    dtype = x.dtype
    if dtype.is_floating:
        return c.map(lambda v: is_negative_zero(v, dtype), x, dtype=DType.bool)
    return c.map(lambda v: v < t.const(0, dtype), x, dtype=DType.bool)


@rule("where.self")
def where(c: Call, condition: Array, x: Array, y: Array) -> Array:
    return c.map(t.select, cast(condition, DType.bool), cast(x, c.dtype), cast(y, c.dtype), dtype=c.dtype)


@rule("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(c: Call, x: Array, mask: Array, value: Any) -> Array:
    return c.map(t.select, mask, cast(value, c.dtype), x, dtype=c.dtype)


def _logical(function: Callable[..., Expr]) -> Rule:
    def write(c: Call, *operands: Array) -> Array:
        return c.map(function, *(cast(x, DType.bool) for x in operands), dtype=DType.bool)

    return write


rule("logical_and")(_logical(t.all_of))
rule("logical_or")(_logical(t.any_of))
rule("logical_xor")(_logical(t.differ))
rule("logical_not")(_logical(t.negate))


def _bitwise(of_bools: Callable[[Expr, Expr], Expr], of_integers: Callable[[Expr, Expr], Expr]) -> Rule:
    def write(c: Call, x: Array, y: Array) -> Array:
        function = of_bools if c.dtype is DType.bool else of_integers
        return c.map(function, operand(x, c.dtype), operand(y, c.dtype), dtype=c.dtype)

    return write


rule("bitwise_and.Tensor")(_bitwise(t.all_of, lambda x, y: x & y))
rule("bitwise_or.Tensor")(_bitwise(t.any_of, lambda x, y: x | y))
rule("bitwise_xor.Tensor")(_bitwise(t.differ, lambda x, y: x ^ y))


@rule("bitwise_not")
def bitwise_not(c: Call, x: Array) -> Array:
    return c.map(t.negate if c.dtype is DType.bool else t.invert, x)


@rule("bitwise_left_shift.Tensor")
def left_shift(c: Call, x: Array, y: Array) -> Array:
    x, y = operand(x, c.dtype), operand(y, c.dtype)
    zero, bits = t.const(0, c.dtype), t.const(8 * c.dtype.itemsize, c.dtype)

    def shifted(a: Expr, b: Expr) -> Expr:
        inside = t.all_of(b >= zero, b < bits)
        return t.select(inside, a << t.select(inside, b, zero), zero)

    return c.map(shifted, x, y)


@rule("bitwise_right_shift.Tensor")
def right_shift(c: Call, x: Array, y: Array) -> Array:
    """What is shifted out of range leaves the sign."""
    x, y = operand(x, c.dtype), operand(y, c.dtype)
    zero, last = t.const(0, c.dtype), t.const(8 * c.dtype.itemsize - 1, c.dtype)
    signed = c.dtype.value[0] == "i"

    def shifted(a: Expr, b: Expr) -> Expr:
        inside = t.all_of(b >= zero, b <= last)
        found = a >> t.select(inside, b, last)
        return found if signed else t.select(inside, found, zero)

    return c.map(shifted, x, y)


@rule("_to_copy", "prims.convert_element_type.default")
def to_copy(c: Call, x: Array, *rest: Any) -> Array:
    return x


@rule("clone", "alias")
def identity(c: Call, x: Array, *rest: Any) -> Array:
    return x
