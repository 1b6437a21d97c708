"""Rules of powers, exponentials, logarithms, and trigonometric and hyperbolic functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax

from fairlead_openxla._call import Call
from fairlead_openxla._numbers import Array, operand
from fairlead_openxla._rules import Rule, rule
from fairlead_openxla._target import on_cpu

__all__ = ["exp", "expm1", "in_double", "log", "log1p", "sigmoid"]


def in_double(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A function of f32 computed in f64, where XLA's own is off by more than a few units in the last place."""

    def exact(x: Array) -> Array:
        return function(x.astype(jnp.float64)).astype(x.dtype)

    return exact


def _unary(function: Callable[[Array], Array]) -> Rule:
    def write(c: Call, x: Array) -> Array:
        return function(operand(x, c.dtype))

    return write


exp = in_double(jnp.exp)
sigmoid = lax.logistic


def log(x: Array) -> Array:
    """XLA's CPU runtime reads a number below the smallest normal one as 0, and takes the logarithm of its bits."""
    if not on_cpu():
        return jnp.log(x)
    return jnp.log(jnp.where(jnp.abs(x) < jnp.finfo(x.dtype).tiny, 0, x))


def log1p(x: Array) -> Array:
    """``log(u) * x / (u - 1)`` with ``u = 1 + x``, which cancels the rounding of u; XLA's own of f64 loses 7 bits.

    Source: Higham, Accuracy and Stability of Numerical Algorithms, 1.14.1, after Kahan.
    """
    u = 1 + x
    more = u - lax.optimization_barrier(jnp.ones((), x.dtype))
    exact = jnp.log(u) * (x / jnp.where(more == 0, 1, more))
    return jnp.where(more == 0, x, jnp.where((u <= 0) | jnp.isinf(u), jnp.log(u), exact))


def expm1(x: Array) -> Array:
    return in_double(jnp.expm1)(x)


def _sinh(x: Array) -> Array:
    """By the exponential of a half beyond 1, where XLA rounds what it adds to a large exponent."""
    half = jnp.exp(jnp.abs(x) / 2)
    grown = jnp.copysign(0.5 * half * half, x)
    less = jnp.expm1(jnp.minimum(jnp.abs(x), 30.0))
    small = jnp.copysign(0.5 * (less + less / (less + 1)), x)
    return jnp.where(jnp.abs(x) > 30, grown, small)


def _cosh(x: Array) -> Array:
    half = jnp.exp(jnp.abs(x) / 2)
    return 0.5 * half * half + 0.5 / (half * half)


def _atanh(x: Array) -> Array:
    size = jnp.abs(x)
    return jnp.copysign(0.5 * log1p(2 * size / (1 - size)), x)


def _exp2(x: Array) -> Array:
    return lax.pow(jnp.full(x.shape, 2, x.dtype), x)


_FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "acos": lax.acos, "acosh": lax.acosh, "asin": lax.asin, "asinh": lax.asinh, "atan": lax.atan,
    "atanh": in_double(_atanh), "cos": jnp.cos, "cosh": in_double(_cosh), "erf": in_double(lax.erf),
    "exp": exp, "exp2": in_double(_exp2), "expm1": expm1, "log": log, "log10": in_double(jnp.log10),
    "log1p": log1p, "log2": in_double(jnp.log2), "rsqrt": lax.rsqrt, "sigmoid": sigmoid, "sin": jnp.sin,
    "sinh": in_double(_sinh), "sqrt": jnp.sqrt, "tan": jnp.tan, "tanh": in_double(jnp.tanh),
}  # fmt: skip

for _name, _function in _FUNCTIONS.items():
    rule(_name)(_unary(_function))


@rule("erfc")
def erfc(c: Call, x: Array) -> Array:
    return in_double(lax.erfc)(operand(x, c.dtype))


@rule("atan2")
def atan2(c: Call, y: Array, x: Array) -> Array:
    return lax.atan2(*jnp.broadcast_arrays(operand(y, c.dtype), operand(x, c.dtype)))


@rule("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar")
def power(c: Call, x: Array, y: Any) -> Array:
    if c.dtype.is_integer:
        return _integer_power(*jnp.broadcast_arrays(operand(x, c.dtype), operand(y, c.dtype)))
    if not hasattr(y, "dtype") and (known := _known_power(operand(x, c.dtype), float(y))) is not None:
        return known
    return lax.pow(*jnp.broadcast_arrays(operand(x, c.dtype), operand(y, c.dtype)))


def _known_power(x: Array, exponent: float) -> Array | None:
    """The powers that torch's kernels write otherwise. Source: pow_tensor_scalar_optimized_kernel in ATen."""
    match exponent:
        case 0.5:
            return jnp.sqrt(x)
        case 2.0:
            return x * x
        case 3.0:
            return x * x * x
        case -0.5:
            return 1 / jnp.sqrt(x)
        case -1.0:
            return 1 / x
        case -2.0:
            return 1 / (x * x)
    return None


def _integer_power(x: Array, y: Array) -> Array:
    """Wraps around; of a negative exponent only the powers of 1 and -1 are not 0."""
    grown = jnp.power(x, jnp.where(y < 0, jnp.zeros((), y.dtype), y))
    below = jnp.where(x == 1, 1, jnp.where(x == -1, jnp.where(y % 2 == 0, 1, -1), 0))
    return jnp.where(y < 0, below.astype(x.dtype), grown)


@rule("ldexp.Tensor")
def ldexp(c: Call, x: Array, exponent: Array) -> Array:
    found, e = operand(x, c.dtype), operand(exponent, c.dtype)
    is_scaled = jnp.issubdtype(x.dtype, jnp.floating) and jnp.issubdtype(exponent.dtype, jnp.integer)
    for power in _factors(e) if is_scaled else [e]:
        found = found * lax.pow(jnp.full(power.shape, 2, power.dtype), power)
    return found


def _factors(power: Array) -> list[Array]:
    """Powers that add up to one of an integer, which alone may be out of range, in the order that rounds once."""
    most = -jnp.finfo(power.dtype).minexp
    last = jnp.clip(power, -most, most)
    middle = jnp.clip(power - last, -most, most)
    return [jnp.clip(power - last - middle, -most, most), middle, last]


@rule("logsumexp")
def logsumexp(c: Call, x: Array, dims: tuple[int, ...], keepdim: bool = False) -> Array:
    x = operand(x, c.dtype)
    over = tuple(d % x.ndim for d in dims) if x.ndim else ()
    if not over:
        over = tuple(range(x.ndim))
    peak = jnp.max(x, over, keepdims=True, initial=-math.inf)
    peak = jnp.where(jnp.isinf(peak), 0, peak)
    total = jnp.log(jnp.sum(jnp.exp(x - peak), over, keepdims=True)) + peak
    return total if keepdim else jnp.squeeze(total, over)
