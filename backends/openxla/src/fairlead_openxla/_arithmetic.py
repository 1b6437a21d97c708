"""Rules of arithmetic and rounding, element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax

from fairlead.ir import Node
from fairlead_openxla._call import Call
from fairlead_openxla._numbers import Array, cast, operand, wide
from fairlead_openxla._rules import Rule, rule
from fairlead_openxla._target import on_cpu

__all__ = ["divided", "multiplied"]


def _is_float(x: Array) -> bool:
    return bool(jnp.issubdtype(x.dtype, jnp.floating))


def _of_floats(function: Callable[[Array], Array]) -> Rule:
    """Rounding leaves integers as they are."""

    def write(c: Call, x: Array) -> Array:
        x = operand(x, c.dtype)
        return function(x) if _is_float(x) else x

    return write


rule("ceil")(_of_floats(jnp.ceil))
rule("floor")(_of_floats(jnp.floor))
rule("trunc")(_of_floats(jnp.trunc))
rule("round")(_of_floats(lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)))


@rule("round.decimals")
def round_decimals(c: Call, x: Array, decimals: int) -> Array:
    x = operand(x, c.dtype)
    if not _is_float(x):
        return x
    scale = operand(10.0 ** abs(decimals), c.dtype)
    even = lax.RoundingMethod.TO_NEAREST_EVEN
    if decimals >= 0:
        return divided(lax.round(x * scale, even), scale)
    return lax.round(divided(x, scale), even) * scale


@rule("abs", takes_complex=True)
def abs_(c: Call, x: Array) -> Array:
    x = wide(x)
    if not jnp.iscomplexobj(x):
        return jnp.abs(x)
    if x.dtype == jnp.complex64:  # XLA's own is off by several units in the last place
        x = x.astype(jnp.complex128)
    infinite = jnp.isinf(x.real) | jnp.isinf(x.imag)  # of which XLA makes NaN beside a NaN
    return jnp.where(infinite, jnp.inf, jnp.abs(x))


@rule("neg", takes_complex=True)
def neg(c: Call, x: Array) -> Array:
    return jnp.negative(operand(x, c.dtype))


@rule("sign")
def sign(c: Call, x: Array) -> Array:
    """0 of a NaN, and of a -0."""
    if x.dtype == jnp.bool_:
        return x
    return (x > 0).astype(jnp.int8) - (x < 0).astype(jnp.int8)


@rule("relu")
def relu(c: Call, x: Array) -> Array:
    return jnp.where(x <= 0, jnp.zeros((), x.dtype), x)


@rule("reciprocal")
def reciprocal(c: Call, x: Array) -> Array:
    return 1 / operand(x, c.dtype)


@rule("add.Tensor", takes_complex=True)
def add(c: Call, x: Array, y: Array, alpha: Any = 1) -> Array:
    x, y = operand(x, c.dtype), operand(y, c.dtype)
    if x.dtype == jnp.bool_:
        return x | y if alpha else jnp.broadcast_to(x, c.shape())
    return x + (y if alpha == 1 else y * operand(alpha, c.dtype))


@rule("sub.Tensor", takes_complex=True)
def sub(c: Call, x: Array, y: Array, alpha: Any = 1) -> Array:
    x, y = operand(x, c.dtype), operand(y, c.dtype)
    return x - (y if alpha == 1 else y * operand(alpha, c.dtype))


@rule("mul.Tensor", takes_complex=True)
def mul(c: Call, x: Array, y: Array) -> Array:
    x, y = operand(x, c.dtype), operand(y, c.dtype)
    if x.dtype == jnp.bool_:
        return x & y
    return multiplied(x, y) if _is_float(x) else x * y


def multiplied(x: Array, y: Array) -> Array:
    """A product that is rounded: XLA has the processor multiply and add at once, so that ``a * b - b * a`` is not 0."""
    return _apart(x * y, x if x.ndim else y)


def _apart(result: Array, tensor: Array) -> Array:
    """The result, by a choice that XLA does not look through; it is a NaN where the operand ``tensor`` is one."""
    return jnp.where(tensor != tensor, tensor, result)


def divided(x: Array, y: Array) -> Array:
    """``x / y``, rounded once: XLA would multiply by the reciprocals of a divisor that is spread over ``x``.

    A barrier hides that it is spread, which on CUDA lasts until kernels are made and has a copy written. There any
    quotient of float32 may be a unit in the last place off.
    """
    shape = jnp.broadcast_shapes(x.shape, y.shape)
    if not on_cpu() and x.dtype == y.dtype == jnp.float32:
        return _divided_again(x, y)
    if y.shape == shape:
        return x / y
    if on_cpu():
        return x / lax.optimization_barrier(jnp.broadcast_to(y, shape))
    whole = jnp.broadcast_to(x, shape)
    return x / jnp.where(whole == whole, jnp.broadcast_to(y, shape), whole)


def _divided_again(x: Array, y: Array) -> Array:
    """A quotient of float32 with what it leaves of ``x`` divided as well, in float64, which is then rounded once.

    A product of two numbers of 24 bits is exact there. A quotient in float64 alone had the bits of one in float32 on an
    H200, as a compiler may make of it. Source: Figueroa 1995, "When is double rounding innocuous?".
    """
    quotient = x / y
    near, divisor = quotient.astype(jnp.float64), y.astype(jnp.float64)
    exact = near + (x.astype(jnp.float64) - near * divisor) / divisor
    return jnp.where(jnp.isfinite(exact) & (exact != 0), exact.astype(jnp.float32), quotient)


@rule("div.Tensor")
def div(c: Call, x: Array, y: Array) -> Array:
    """Apart from the next: XLA would divide ``(x / y) / z`` once, by a product."""
    x = operand(x, c.dtype)
    return _apart(divided(x, operand(y, c.dtype)), x)


def _unknown_mode(node: Node) -> str | None:
    return None if node.args[2] in (None, "floor", "trunc") else f"a division that is rounded by {node.args[2]!r}"


@rule("div.Tensor_mode", unless=_unknown_mode)
def div_mode(c: Call, x: Array, y: Array, mode: str | None) -> Array:
    x, y = operand(x, c.dtype), operand(y, c.dtype)
    if mode is None:
        return divided(x, y)
    if not _is_float(x):
        _refuse_zero(c, y)
        return _floored(x, y) if mode == "floor" else lax.div(*jnp.broadcast_arrays(x, y))
    if mode == "floor":
        return _floor_divided(x, y)
    # a half is rounded before it is made whole
    return jnp.trunc(cast(cast(divided(x, y), c.dtype), c.dtype))


def _refuse_zero(c: Call, y: Array) -> None:
    c.require(y != 0, "an integer is divided by zero", ZeroDivisionError)


def _floored(x: Array, y: Array) -> Array:
    x, y = jnp.broadcast_arrays(x, y)
    quotient = lax.div(x, y)
    return jnp.where((quotient * y != x) & ((x < 0) != (y < 0)), quotient - 1, quotient)


def _floor_divided(x: Array, y: Array) -> Array:
    """The quotient of what is left divisible when the remainder is taken away. Source: div_floor_floating in ATen."""
    x, y = jnp.broadcast_arrays(x, y)
    rest = lax.rem(x, y)
    quotient = divided(x - rest, y)
    quotient = jnp.where((rest != 0) & ((y < 0) != (rest < 0)), quotient - 1, quotient)
    whole = jnp.floor(quotient)
    whole = jnp.where(quotient - whole > 0.5, whole + 1, whole)
    whole = jnp.where(quotient == 0, jnp.copysign(jnp.zeros((), x.dtype), divided(x, y)), whole)
    return jnp.where(y == 0, x / y, whole)


@rule("fmod.Tensor")
def fmod(c: Call, x: Array, y: Array) -> Array:
    """The remainder with the dividend's sign."""
    x, y = jnp.broadcast_arrays(operand(x, c.dtype), operand(y, c.dtype))
    if not _is_float(x):
        _refuse_zero(c, y)
    return lax.rem(x, y)


@rule("remainder.Tensor")
def remainder(c: Call, x: Array, y: Array) -> Array:
    """The remainder with the divisor's sign."""
    y = jnp.broadcast_to(operand(y, c.dtype), c.shape())
    rest = fmod(c, x, y)
    return jnp.where((rest != 0) & ((y < 0) != (rest < 0)), rest + y, rest)


@rule("maximum")
def maximum(c: Call, x: Array, y: Array) -> Array:
    return jnp.maximum(operand(x, c.dtype), operand(y, c.dtype))


@rule("minimum")
def minimum(c: Call, x: Array, y: Array) -> Array:
    return jnp.minimum(operand(x, c.dtype), operand(y, c.dtype))


@rule("fmax")
def fmax(c: Call, x: Array, y: Array) -> Array:
    return jnp.fmax(operand(x, c.dtype), operand(y, c.dtype))


@rule("fmin")
def fmin(c: Call, x: Array, y: Array) -> Array:
    return jnp.fmin(operand(x, c.dtype), operand(y, c.dtype))


@rule("clamp", "clamp.Tensor")
def clamp(c: Call, x: Array, low: Any = None, high: Any = None) -> Array:
    """A NaN of any operand stays; the upper bound wins where the bounds cross."""
    x = operand(x, c.dtype)
    if low is not None:
        x = jnp.maximum(x, operand(low, c.dtype))
    return x if high is None else jnp.minimum(x, operand(high, c.dtype))


@rule("copysign.Tensor")
def copysign(c: Call, x: Array, y: Array) -> Array:
    return jnp.copysign(*jnp.broadcast_arrays(operand(x, c.dtype), operand(y, c.dtype)))


@rule("hypot")
def hypot(c: Call, x: Array, y: Array) -> Array:
    return jnp.hypot(operand(x, c.dtype), operand(y, c.dtype))


@rule("nextafter")
def nextafter(c: Call, x: Array, y: Array) -> Array:
    return lax.nextafter(*jnp.broadcast_arrays(cast(x, c.dtype), cast(y, c.dtype)))


def _gcd(x: Array, y: Array) -> Array:
    """Euclid's algorithm, which for the least integer, whose absolute value it is, gives what ATen's calc_gcd gives."""

    def is_left(pair: tuple[Array, Array]) -> Array:
        return jnp.any(pair[0] != 0)

    def step(pair: tuple[Array, Array]) -> tuple[Array, Array]:
        x, y = pair
        left = x != 0
        return jnp.where(left, lax.rem(y, jnp.where(left, x, 1)), 0), jnp.where(left, x, y)

    return lax.while_loop(is_left, step, tuple(jnp.broadcast_arrays(jnp.abs(x), jnp.abs(y))))[1]


@rule("gcd")
def gcd(c: Call, x: Array, y: Array) -> Array:
    return _gcd(operand(x, c.dtype), operand(y, c.dtype))


@rule("lcm")
def lcm(c: Call, x: Array, y: Array) -> Array:
    x, y = operand(x, c.dtype), operand(y, c.dtype)
    shared = _gcd(x, y)
    return jnp.abs(lax.div(jnp.broadcast_to(x, shared.shape), jnp.where(shared == 0, 1, shared)) * y)
