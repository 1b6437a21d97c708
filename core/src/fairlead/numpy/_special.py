"""Special functions, by series and recurrences in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fairlead.numpy._dtypes import Array, operand
from fairlead.numpy._table import Call, op

_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)
"""The Bernoulli numbers of the even indices 2, 4, ..., 20."""

_FAR = 15.0
"""From here on the asymptotic series with those ten terms are exact in float64."""


def _each(function: Callable[[float], float]) -> Callable[[Array], Array]:
    return np.vectorize(function, otypes=[np.float64])


erf: Callable[[Array], Array] = _each(math.erf)
"""The error function."""

erfc: Callable[[Array], Array] = _each(math.erfc)
"""Its complement, without cancellation."""


def _lgamma(x: float) -> float:
    return math.inf if x == -math.inf or (x <= 0 and x == math.floor(x)) else math.lgamma(x)


def _digamma(x: float) -> float:
    """By reflection, recurrence, and the asymptotic series (Abramowitz and Stegun 6.3.7, 6.3.5, 6.3.18)."""
    if x == 0:
        return math.copysign(math.inf, -x)
    if math.isinf(x):
        return math.inf if x > 0 else math.nan
    if x < 0:
        return math.nan if x == math.floor(x) else _digamma(1 - x) - math.pi / math.tan(math.pi * (x % 1.0))
    below = 0.0
    while x < _FAR:
        below += 1 / x
        x += 1
    series = sum(b / (2 * k * x ** (2 * k)) for k, b in enumerate(_BERNOULLI, 1))
    return math.log(x) - 1 / (2 * x) - series - below


def _zeta(s: float, q: float) -> float:
    """The Hurwitz zeta function by Euler and Maclaurin's formula."""
    if s == 1:
        return math.inf
    if s < 1 or math.isnan(s) or math.isnan(q):
        return math.nan
    if math.isinf(q):
        return 0.0 if q > 0 else math.inf
    if q <= 0 and (q == math.floor(q) or math.isinf(s) or s != math.floor(s)):
        return math.inf if q == math.floor(q) else math.nan
    if math.isinf(s):
        return 0.0 if q > 1 else 1.0 if q == 1 else math.inf
    if q < 0:  # the terms left of zero are those of two sums to the right of it, their signs aside
        whole = -math.floor(q)
        part = q + whole
        left = _zeta(s, 1 - part) - _zeta(s, 1 - part + whole)
        return math.copysign(left, -1 if s % 2 else 1) + _zeta(s, part)
    total = 0.0
    while q < _FAR:
        total += math.pow(q, -s)
        q += 1
    total += math.pow(q, 1 - s) / (s - 1) + math.pow(q, -s) / 2
    term = s * math.pow(q, -s - 1)
    for k, b in enumerate(_BERNOULLI, 1):
        total += b * term / math.factorial(2 * k)
        term *= (s + 2 * k - 1) * (s + 2 * k) / (q * q)
    return total


def _erfinv(y: float) -> float:
    """Newton's method in Halley's form from Giles's approximation (GPU Computing Gems, 2011)."""
    if not -1 < y < 1:
        return math.copysign(math.inf, y) if abs(y) == 1 else math.nan
    if y == 0:
        return y
    w = -math.log1p(-y * y)
    a = 2 / (math.pi * 0.147) - w / 2
    x = math.copysign(math.sqrt(math.sqrt(a * a + w / 0.147) - a), y)
    for _ in range(4):
        error = math.erf(x) - y if abs(y) < 0.5 else math.copysign(1.0, y) * (1 - abs(y) - math.erfc(abs(x)))
        step = error / (2 / math.sqrt(math.pi) * math.exp(-x * x))
        x -= step / (1 + x * step)
    return x


def _ndtri(p: float) -> float:
    if not 0 < p < 1:
        return -math.inf if p == 0 else math.inf if p == 1 else math.nan
    return math.sqrt(2) * _erfinv(2 * p - 1) if 0.1 < p < 0.9 else _tail(p)


def _tail(p: float) -> float:
    """The quantile of a small probability, by Newton's method on the complement, which has all its digits."""
    low, sign = (p, -1.0) if p < 0.5 else (1 - p, 1.0)
    x = math.sqrt(-2 * math.log(low))
    for _ in range(60):
        density = math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
        error = math.erfc(x / math.sqrt(2)) / 2 - low
        if density == 0 or abs(error) <= 1e-17 * low:
            break
        step = error / density
        x += step / (1 - x * step / 2)
    return sign * x


def _erfcx(x: float) -> float:
    """exp(x²) erfc(x): by Lentz's continued fraction where the product would lose digits."""
    if math.isnan(x) or x < 10:
        return math.inf if x < -26.7 else math.exp(x * x) * math.erfc(x)
    fraction = 0.0
    for k in range(60, 0, -1):
        fraction = k / 2 / (x + fraction)
    return 1 / (math.sqrt(math.pi) * (x + fraction))


def _bessel(order: int, scaled: bool) -> Callable[[float], float]:
    """The modified Bessel functions of the first kind.

    Their integral over a period (Abramowitz and Stegun 9.6.19), whose trapezoidal sum converges geometrically; far out
    the asymptotic series 9.7.1.
    """
    angles = (np.arange(1024) + 0.5) * (math.pi / 1024)

    def value(x: float) -> float:
        sign = math.copysign(1.0, x) if order % 2 else 1.0
        size = abs(x)
        if math.isnan(x):
            return x
        if size < 500:
            small = float(np.mean(np.exp(size * (np.cos(angles) - 1)) * np.cos(order * angles)))
        elif math.isinf(size):
            small = 0.0
        else:
            term = total = 1.0
            for k in range(1, 20):
                term *= -(4 * order * order - (2 * k - 1) ** 2) / (k * 8 * size)
                total += term
            small = total / math.sqrt(2 * math.pi * size)
        small *= sign
        return small if scaled else small * (math.exp(size) if size < 709 else math.inf)

    return value


def _gamma_p(a: float, x: float, upper: bool) -> float:
    """The regularised incomplete gamma functions (Numerical Recipes 6.2): a series, or Lentz's continued fraction."""
    if math.isnan(a) or math.isnan(x) or a < 0 or x < 0:
        return math.nan
    if a == 0:
        lower = 1.0 if x > 0 else math.nan
        return 1 - lower if upper else lower
    if x == 0 or math.isinf(a):
        below = 0.0 if not (math.isinf(a) and math.isinf(x)) else math.nan
        return 1 - below if upper else below
    if math.isinf(x):
        return 0.0 if upper else 1.0
    scale = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1:
        term = total = 1 / a
        n = a
        while abs(term) > 1e-17 * abs(total):
            n += 1
            term *= x / n
            total += term
        return 1 - total * scale if upper else total * scale
    b = x + 1 - a
    c, d = 1e300, 1 / b
    h = d
    for i in range(1, 100000):
        step = -i * (i - a)
        b += 2
        d = 1 / (step * d + b)
        c = b + step / c
        h *= d * c
        if abs(d * c - 1) < 1e-16:
            break
    return h * scale if upper else 1 - h * scale


_SPECIAL: dict[str, Callable[[Array], Array]] = {
    "erf": erf,
    "erfc": erfc,
    "erfinv": _each(_erfinv),
    "lgamma": _each(_lgamma),
    "digamma": _each(_digamma),
    "special_erfcx": _each(_erfcx),
    "special_ndtri": _each(_ndtri),
    "i0": _each(_bessel(0, scaled=False)),
    "special_i0e": _each(_bessel(0, scaled=True)),
    "special_i1": _each(_bessel(1, scaled=False)),
    "special_i1e": _each(_bessel(1, scaled=True)),
}


def _enter(name: str, function: Callable[[Array], Array]) -> None:
    @op(name)
    def rule(call: Call, x: Array) -> Array:
        return function(operand(x, call.dtype))


for _name, _function in _SPECIAL.items():
    _enter(_name, _function)


@op("polygamma")
def _polygamma(call: Call, n: int, x: Array) -> Array:
    """(-1)^(n+1) n! zeta(n+1, x), of which n = 0 is the digamma function."""
    x = operand(x, call.dtype)
    if n == 0:
        return _each(_digamma)(x)
    factor = (-1.0) ** (n + 1) * math.factorial(n)
    return _each(lambda v: factor * _zeta(n + 1, v))(x)


@op("mvlgamma")
def _mvlgamma(call: Call, x: Array, p: int) -> Array:
    x = operand(x, call.dtype)
    return p * (p - 1) / 4 * math.log(math.pi) + sum(_each(_lgamma)(x - j / 2) for j in range(p))


@op("special_zeta")
def _hurwitz(call: Call, x: Array, q: Array) -> Array:
    return _pairs(_zeta, operand(x, call.dtype), operand(q, call.dtype))


@op("igamma")
def _igamma(call: Call, a: Array, x: Array) -> Array:
    return _pairs(lambda p, q: _gamma_p(p, q, upper=False), operand(a, call.dtype), operand(x, call.dtype))


@op("igammac")
def _igammac(call: Call, a: Array, x: Array) -> Array:
    return _pairs(lambda p, q: _gamma_p(p, q, upper=True), operand(a, call.dtype), operand(x, call.dtype))


def _pairs(function: Callable[[float, float], float], x: Array, y: Array) -> Any:
    return np.vectorize(function, otypes=[np.float64])(x, y)
