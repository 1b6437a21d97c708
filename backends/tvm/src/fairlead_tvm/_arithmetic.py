"""Rules of arithmetic and rounding, element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairlead.ir import DType, Node
from fairlead_tvm import _tvm as t
from fairlead_tvm._arrays import Array
from fairlead_tvm._call import Call
from fairlead_tvm._functions import is_negative_zero, rounded
from fairlead_tvm._kernel import Kernel
from fairlead_tvm._numbers import cast, operand, wide, wider
from fairlead_tvm._reduce import larger, smaller
from fairlead_tvm._rules import Rule, rule
from fairlead_tvm._tvm import Expr

__all__: list[str] = []


def _of_floats(function: Callable[[Expr, DType], Expr]) -> Rule:
    """Rounding leaves integers as they are."""

    def write(c: Call, x: Array) -> Array:
        x = operand(x, c.dtype)
        return c.map(lambda v: function(v, x.dtype), x) if x.dtype.is_floating else x

    return write


for _name in ("ceil", "floor", "trunc"):
    rule(_name)(_of_floats(lambda v, _, name=_name: t.call(name, v)))  # type: ignore[misc]
rule("round")(_of_floats(rounded))


@rule("round.decimals")
def round_decimals(c: Call, x: Array, decimals: int) -> Array:
    x = operand(x, c.dtype)
    if not x.dtype.is_floating:
        return x
    dtype, scale = x.dtype, t.const(10.0 ** abs(decimals), x.dtype)
    if decimals >= 0:
        return c.map(lambda v: rounded(v * scale, dtype) / scale, x)
    return c.map(lambda v: rounded(v / scale, dtype) * scale, x)


@rule("abs")
def abs_(c: Call, x: Array) -> Array:
    if x.dtype.value[0] in "ub" and x.dtype is not DType.bf16:
        return x
    if x.dtype.is_integer:
        zero = t.const(0, x.dtype)
        return c.map(lambda v: t.select(v < zero, t.subtracted(zero, v, x.dtype), v), x)
    return c.map(t.abs_, wide(x))


@rule("neg")
def neg(c: Call, x: Array) -> Array:
    """The sign turned around, of zero too."""
    x = operand(x, c.dtype)
    by = t.const(-1, x.dtype)
    return c.map(lambda v: t.multiplied(v, by, x.dtype), x)


@rule("sign")
def sign(c: Call, x: Array) -> Array:
    """0 of a NaN, and of a -0."""
    if x.dtype is DType.bool:
        return x
    x = wide(x)
    zero, one = t.const(0, x.dtype), t.const(1, x.dtype)
    below = t.const(-1, x.dtype)
    return c.map(lambda v: t.select(v > zero, one, t.select(v < zero, below, zero)), x)


@rule("relu")
def relu(c: Call, x: Array) -> Array:
    zero = t.const(0, x.dtype)
    return c.map(lambda v: t.select(v <= zero, zero, v), x)


@rule("reciprocal")
def reciprocal(c: Call, x: Array) -> Array:
    x = operand(x, c.dtype)
    return c.map(lambda v: t.const(1, x.dtype) / v, x, cost=3)


def _two(function: Callable[[Expr, Expr, DType], Expr], cost: int = 1) -> Rule:
    def write(c: Call, x: Array, y: Array) -> Array:
        x, y = operand(x, c.dtype), operand(y, c.dtype)
        dtype = x.dtype
        return c.map(lambda a, b: function(a, b, dtype), x, y, cost=cost)

    return write


def _scaled(c: Call, y: Array, alpha: Any) -> Array:
    return y if alpha == 1 else c.map(lambda a, b: t.multiplied(a, b, y.dtype), y, operand(alpha, c.dtype))


@rule("add.Tensor")
def add(c: Call, x: Array, y: Array, alpha: Any = 1) -> Array:
    x, y = operand(x, c.dtype), operand(y, c.dtype)
    if x.dtype is DType.bool:
        return c.map(t.any_of if alpha else lambda a, _: a, x, y)
    return c.map(lambda a, b: t.added(a, b, x.dtype), x, _scaled(c, y, alpha))


@rule("sub.Tensor")
def sub(c: Call, x: Array, y: Array, alpha: Any = 1) -> Array:
    x, y = operand(x, c.dtype), operand(y, c.dtype)
    return c.map(lambda a, b: t.subtracted(a, b, x.dtype), x, _scaled(c, y, alpha))


@rule("mul.Tensor")
def mul(c: Call, x: Array, y: Array) -> Array:
    x, y = operand(x, c.dtype), operand(y, c.dtype)
    return c.map(t.all_of if x.dtype is DType.bool else lambda a, b: t.multiplied(a, b, x.dtype), x, y)


@rule("div.Tensor")
def div(c: Call, x: Array, y: Array) -> Array:
    return c.map(lambda a, b: a / b, operand(x, c.dtype), operand(y, c.dtype), cost=3)


def _unknown_mode(node: Node) -> str | None:
    return None if node.args[2] in (None, "floor", "trunc") else f"a division that is rounded by {node.args[2]!r}"


@rule("div.Tensor_mode", unless=_unknown_mode)
def div_mode(c: Call, x: Array, y: Array, mode: str | None) -> Array:
    x, y = operand(x, c.dtype), operand(y, c.dtype)
    dtype = x.dtype
    if mode is None:
        return c.map(lambda a, b: a / b, x, y, cost=3)
    if not dtype.is_floating:
        _refuse_zero(c, y)
        return c.map(lambda a, b: _divided(a, b, dtype, floor=mode == "floor"), x, y, cost=8)
    if mode == "floor":
        return c.kernel_map(lambda k, a, b: _floor_divided(k, a, b, dtype), x, y, cost=20)
    # a half is rounded before it is made whole
    quotient = cast(cast(c.map(lambda a, b: a / b, x, y, cost=3), c.dtype), dtype)
    return c.map(lambda v: t.call("trunc", v), quotient)


def _refuse_zero(c: Call, y: Array) -> None:
    c.require(c.map(lambda v: t.ne(v, t.const(0, y.dtype)), y, dtype=DType.bool), "an integer is divided by zero",
              ZeroDivisionError)  # fmt: skip


def _divided(x: Expr, y: Expr, dtype: DType, *, floor: bool, rest: bool = False) -> Expr:
    """A quotient of integers, or what it leaves. Of 0 and -1, which processors stop at, by other ways."""
    zero, one = t.const(0, dtype), t.const(1, dtype)
    signed = dtype.value[0] == "i"
    stops = t.any_of(t.eq(y, zero), t.eq(y, t.const(-1, dtype))) if signed else t.eq(y, zero)
    safe = t.select(stops, one, y)
    quotient, left = t.truncated(x, safe), t.truncated(x, safe, rest=True)
    if floor and signed:
        differs = t.all_of(t.ne(left, zero), t.differ(left < zero, safe < zero))
        quotient = t.select(differs, quotient - one, quotient)
        left = t.select(differs, left + safe, left)
    if rest:
        return t.select(stops, zero, left)
    return t.select(stops, t.subtracted(zero, x, dtype), quotient)


def _floor_divided(k: Kernel, x: Expr, y: Expr, dtype: DType) -> Expr:
    """The quotient of what is left divisible when the remainder is taken away. Source: div_floor_floating in ATen."""
    zero, one = t.const(0.0, dtype), t.const(1.0, dtype)
    rest = k.named(k.extern("fmod", dtype, x, y), dtype)
    quotient = (x - rest) / y
    differs = t.all_of(t.ne(rest, zero), t.differ(y < zero, rest < zero))
    quotient = k.named(t.select(differs, quotient - one, quotient), dtype)
    whole = k.named(t.call("floor", quotient), dtype)
    whole = t.select(quotient - whole > t.const(0.5, dtype), whole + one, whole)
    signed = t.select(is_negative_zero(x / y, dtype), t.const(-0.0, dtype), zero)
    whole = t.select(t.eq(quotient, zero), signed, whole)
    return t.select(t.eq(y, zero), x / y, whole)


@rule("fmod.Tensor")
def fmod(c: Call, x: Array, y: Array) -> Array:
    """The remainder with the dividend's sign."""
    x, y = operand(x, c.dtype), operand(y, c.dtype)
    dtype = x.dtype
    if not dtype.is_floating:
        _refuse_zero(c, y)
        return c.map(lambda a, b: _divided(a, b, dtype, floor=False, rest=True), x, y, cost=8)
    return c.kernel_map(lambda k, a, b: k.extern("fmod", dtype, a, b), x, y, cost=20)


@rule("remainder.Tensor")
def remainder(c: Call, x: Array, y: Array) -> Array:
    """The remainder with the divisor's sign."""
    x, y = operand(x, c.dtype), operand(y, c.dtype)
    dtype = x.dtype
    if not dtype.is_floating:
        _refuse_zero(c, y)
        return c.map(lambda a, b: _divided(a, b, dtype, floor=True, rest=True), x, y, cost=8)

    def left(k: Kernel, a: Expr, b: Expr) -> Expr:
        zero = t.const(0.0, dtype)
        rest = k.named(k.extern("fmod", dtype, a, b), dtype)
        return t.select(t.all_of(t.ne(rest, zero), t.differ(b < zero, rest < zero)), rest + b, rest)

    return c.kernel_map(left, x, y, cost=20)


rule("maximum")(_two(larger))
rule("minimum")(_two(smaller))


def _but_nan(function: Callable[[Expr, Expr, DType], Expr]) -> Callable[[Expr, Expr, DType], Expr]:
    def write(x: Expr, y: Expr, dtype: DType) -> Expr:
        found = function(x, y, dtype)
        return t.select(t.ne(x, x), y, t.select(t.ne(y, y), x, found)) if dtype.is_floating else found

    return write


rule("fmax")(_two(_but_nan(larger)))
rule("fmin")(_two(_but_nan(smaller)))


@rule("clamp", "clamp.Tensor")
def clamp(c: Call, x: Array, low: Any = None, high: Any = None) -> Array:
    """A NaN of any operand stays; the upper bound wins where the bounds cross."""
    x = operand(x, c.dtype)
    dtype = x.dtype
    if low is not None:
        x = c.map(lambda a, b: larger(a, b, dtype), x, operand(low, c.dtype))
    return x if high is None else c.map(lambda a, b: smaller(a, b, dtype), x, operand(high, c.dtype))


@rule("copysign.Tensor")
def copysign(c: Call, x: Array, y: Array) -> Array:
    x, y = operand(x, c.dtype), operand(y, c.dtype)
    dtype = x.dtype

    def signed(a: Expr, b: Expr) -> Expr:
        size = t.abs_(a)
        return t.select(is_negative_zero(b, dtype), t.const(-1.0, dtype) * size, size)

    return c.map(signed, x, y)


def _library(name: str) -> Rule:
    def write(c: Call, x: Array, y: Array) -> Array:
        x, y = operand(x, c.dtype), operand(y, c.dtype)
        dtype = x.dtype
        return c.kernel_map(lambda k, a, b: k.extern(name, dtype, a, b), x, y, cost=20)

    return write


def _of_a_half(node: Node) -> str | None:
    result = next(r for r in node.results if r is not None)
    return "the next half" if wider(result.tensor.dtype) is not result.tensor.dtype else None


rule("hypot")(_library("hypot"))
rule("nextafter", unless=_of_a_half)(_library("nextafter"))
rule("atan2")(_library("atan2"))
