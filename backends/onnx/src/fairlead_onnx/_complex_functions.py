"""Absolute values, angles, powers and elementary functions of complex numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

from fairlead.ir import DType, Value
from fairlead_onnx._complex_arithmetic import quotient, times
from fairlead_onnx._complex_call import ComplexCall, Rule, rule
from fairlead_onnx._complex_ops import Ops, Pair, Part

__all__ = ["modulus"]

_SCALES = {DType.f32: (60, 70), DType.f64: (500, 600)}
"""Beyond 2 to the first power, and below 2 to its negative, squares may leave the range of the type; scaled by 2 to the
second, or to its negative, they do not."""

_LARGE = {DType.f32: 10.0, DType.f64: 20.0}
"""From here on a hyperbolic tangent is 1, to the last bit."""


def modulus(b: Ops, z: Pair) -> Value:
    """The root of the sum of squares, which are scaled by a power of two where they would leave the range."""
    x, y = b.unary("abs", z.re), b.unary("abs", z.im)
    largest, (limit, shift) = b("aten.maximum.default", x, y), _SCALES[b.dtype]
    large, small = b.compare("gt", largest, 2.0**limit), b.compare("lt", largest, 2.0**-limit)
    step = 2.0**shift
    scale = b.where(large, 1 / step, b.where(small, step, 1.0))
    back = b.where(large, step, b.where(small, 1 / step, 1.0))
    scaled = b.mul(x, scale), b.mul(y, scale)
    root = b.unary("sqrt", b.add(*(b.mul(part, part) for part in scaled)))
    return b.where(_is_infinite(b, x, y), math.inf, b.mul(root, back))


def _is_infinite(b: Ops, x: Part, y: Part) -> Value:
    return b.either(b.unary("isinf", x), b.unary("isinf", y))


def _signed(b: Ops, size: Part, sign: Part) -> Value:
    """A size with the sign of another number."""
    return b("aten.copysign.Tensor", b.tensor(size), b.tensor(sign))


def _angle(b: Ops, z: Pair) -> Value:
    return b("aten.atan2.default", b.tensor(z.im), b.tensor(z.re))


def _exp(b: Ops, z: Pair) -> Pair:
    size = b.unary("exp", z.re)
    return Pair(b.mul(size, b.unary("cos", z.im)), b.mul(size, b.unary("sin", z.im)))


def _log(b: Ops, z: Pair) -> Pair:
    """The logarithm of the larger part, and of the modulus as a multiple of it; nothing leaves the range."""
    x, y = b.unary("abs", z.re), b.unary("abs", z.im)
    turned = b.compare("gt", y, x)
    small, large = b.where(turned, x, y), b.where(turned, y, x)
    ratio = b.div(small, large)
    size = b.add(b.unary("log", large), b.mul(0.5, b.unary("log1p", b.mul(ratio, ratio))))
    finite = b.where(b.compare("eq", large, 0.0), -math.inf, size)
    return Pair(b.where(_is_infinite(b, x, y), math.inf, finite), _angle(b, z))


def _sqrt(b: Ops, z: Pair) -> Pair:
    """The root whose real part is not negative, by Kahan's formula; the larger part first, the other by a quotient.

    Source: Kahan, Branch Cuts for Complex Elementary Functions, 1987.
    """
    x, y = b.unary("abs", z.re), b.unary("abs", z.im)
    large = b.compare("gt", b("aten.maximum.default", x, y), 2.0**100)  # the sum below may leave the range
    half = Pair(*(b.mul(b.mul(part, 0.5), b.where(large, 1 / 16, 1.0)) for part in (x, y)))
    first = b.unary("sqrt", b.add(half.re, modulus(b, half)))
    second = b.where(b.compare("eq", first, 0.0), 0.0, b.div(half.im, first))
    left, back = b.compare("lt", z.re, 0.0), b.where(large, 4.0, 1.0)
    re, im = (b.mul(b.where(left, *parts), back) for parts in ((second, first), (first, second)))
    endless = b.unary("isinf", z.im)
    return Pair(b.where(endless, math.inf, re), _signed(b, b.where(endless, math.inf, im), z.im))


def _sinh(b: Ops, z: Pair) -> Pair:
    re = b.mul(b.unary("sinh", z.re), b.unary("cos", z.im))
    return Pair(re, b.mul(b.unary("cosh", z.re), b.unary("sin", z.im)))


def _cosh(b: Ops, z: Pair) -> Pair:
    re = b.mul(b.unary("cosh", z.re), b.unary("cos", z.im))
    return Pair(re, b.mul(b.unary("sinh", z.re), b.unary("sin", z.im)))


def _tanh(b: Ops, z: Pair) -> Pair:
    """Over the square of the modulus of the cosine; where that leaves the range, the real part is 1 already.

    Source: Kahan, Branch Cuts for Complex Elementary Functions, 1987, as C libraries have it.
    """
    sin, cos = b.unary("sin", z.im), b.unary("cos", z.im)
    size = b.unary("abs", z.re)
    large = b.compare("gt", size, _LARGE[b.dtype])
    x = b.where(large, 0.0, z.re)
    sinh, cosh = b.unary("sinh", x), b.unary("cosh", x)
    below = b.add(b.mul(sinh, sinh), b.mul(cos, cos))
    both, tiny = b.mul(sin, cos), b.unary("exp", b.mul(size, -2.0))
    re = b.where(large, _signed(b, 1.0, z.re), b.div(b.mul(sinh, cosh), below))
    return Pair(re, b.where(large, b.mul(b.mul(both, 4.0), tiny), b.div(both, below)))


def _sigmoid(b: Ops, z: Pair) -> Pair:
    e = _exp(b, Pair(b.neg(z.re), b.neg(z.im)))
    return quotient(b, Pair(1.0, 0.0), Pair(b.add(1.0, e.re), e.im))


def _times_i(b: Ops, z: Pair) -> Pair:
    return Pair(b.neg(z.im), z.re)


def _over_i(b: Ops, z: Pair) -> Pair:
    return Pair(z.im, b.neg(z.re))


_FUNCTIONS: dict[str, Callable[[Ops, Pair], Pair | Value]] = {
    "abs": modulus,
    "angle": _angle,
    "exp": _exp,
    "log": _log,
    "sqrt": _sqrt,
    "sinh": _sinh,
    "cosh": _cosh,
    "tanh": _tanh,
    "sigmoid": _sigmoid,
    "sin": lambda b, z: _over_i(b, _sinh(b, _times_i(b, z))),
    "cos": lambda b, z: _cosh(b, _times_i(b, z)),
    "tan": lambda b, z: _over_i(b, _tanh(b, _times_i(b, z))),
}


def _of_one(function: Callable[[Ops, Pair], Pair | Value]) -> Rule:
    return lambda c: function(c.ops, c.pair(0))


for _name, _function in _FUNCTIONS.items():
    rule(f"aten.{_name}.default")(_of_one(_function))


@rule("aten.log2.default", "aten.log10.default")
def log_of_base(c: ComplexCall) -> Pair:
    base = math.log(2.0 if c.node.op == "aten.log2.default" else 10.0)
    return Pair(*(c.ops.div(part, base) for part in _log(c.ops, c.pair(0))))


@rule("aten.rsqrt.default")
def rsqrt(c: ComplexCall) -> Pair:
    return quotient(c.ops, Pair(1.0, 0.0), _sqrt(c.ops, c.pair(0)))


@rule("aten.silu.default")
def silu(c: ComplexCall) -> Pair:
    return times(c.ops, c.pair(0), _sigmoid(c.ops, c.pair(0)))


@rule("aten.pow.Tensor_Tensor", "aten.pow.Tensor_Scalar", "aten.pow.Scalar")
def power(c: ComplexCall) -> Pair:
    b, z, exponent = c.ops, c.pair(0), c.pair(1)
    if exponent.im == 0.0 and isinstance(exponent.re, float):
        if exponent.re == 0.5:
            return _sqrt(b, z)
        if exponent.re in range(-_MOST_FACTORS, _MOST_FACTORS + 1):
            found = _product(b, z, abs(int(exponent.re)))
            return quotient(b, Pair(1.0, 0.0), found) if exponent.re < 0 else found
    return _exp(b, times(b, exponent, _log(b, z)))


_MOST_FACTORS = 8


def _product(b: Ops, z: Pair, count: int) -> Pair:
    """A power as a product."""
    if count <= 1:
        return z if count else Pair(1.0, 0.0)
    half = _product(b, z, count // 2)
    square = times(b, half, half)
    return times(b, square, z) if count % 2 else square
