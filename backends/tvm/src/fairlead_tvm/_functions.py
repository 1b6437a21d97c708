"""Functions of f32 as polynomials, which run in vectors; those of f64 are the C library's. NaN stays NaN."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.ir import DType
from fairlead_tvm import _tvm as t
from fairlead_tvm._kernel import Kernel
from fairlead_tvm._tvm import Expr

__all__ = ["erf", "exp", "exp_of_less", "log", "log1p", "rounded", "sigmoid", "sqrt", "tanh"]

F = DType.f32


def _c(value: float) -> Expr:
    return t.const(value, F)


def _polynomial(x: Expr, coefficients: Sequence[float]) -> Expr:
    """By Horner's rule, the highest power first."""
    found = _c(coefficients[0])
    for c in coefficients[1:]:
        found = found * x + _c(c)
    return found


def _power_of_two(k: Kernel, n: Expr) -> Expr:
    """``2 ** n`` of integers from -126 to 127."""
    return t.as_bits((n + t.const(127, DType.i32)) << t.const(23, DType.i32), F)


def exp(k: Kernel, x: Expr, dtype: DType) -> Expr:
    """``e ** x``, off by one unit in the last place at most. Source: expf of Cephes.

    The power of two is applied in halves, so that results below the smallest normal number are rounded once.
    """
    if dtype is not F:
        return t.call("exp", x)
    near = t.select(x > _c(89.0), _c(89.0), t.select(x < _c(-104.0), _c(-104.0), x))
    y, whole = _parts(k, near)
    half = k.named(whole >> t.const(1, DType.i32), DType.i32)
    grown = y * _power_of_two(k, half) * _power_of_two(k, whole - half)
    return t.select(t.ne(x, x), x, grown)


_LEAST = -87.0
"""Below it ``e ** x`` is no normal number, which processors take several times as long to multiply."""


def exp_of_less(k: Kernel, x: Expr, dtype: DType) -> Expr:
    """``e ** x`` of a softmax's scores less the largest, or than their logarithm: zero where it is not normal."""
    if dtype is not F:
        return exp(k, x, dtype)
    y, whole = _parts(k, t.select(x < _c(_LEAST), _c(_LEAST), x))
    found = t.select(x < _c(_LEAST), _c(0.0), y * _power_of_two(k, whole))
    return t.select(t.ne(x, x), x, found)


def _parts(k: Kernel, x: Expr) -> tuple[Expr, Expr]:
    """``e ** x`` as a number near 1 and a power of two."""
    near = k.named(x, F)
    n = k.named(t.call("floor", near * _c(1.44269504088896341) + _c(0.5)), F)
    r = k.named(near - n * _c(0.693359375) - n * _c(-2.12194440e-4), F)
    p = _polynomial(
        r,
        (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1),
    )
    y = k.named(p * (r * r) + r + _c(1.0), F)
    return y, k.named(t.cast(n, DType.i32), DType.i32)


def sigmoid(k: Kernel, x: Expr, dtype: DType) -> Expr:
    return t.const(1.0, dtype) / (t.const(1.0, dtype) + exp(k, -x, dtype))


def tanh(k: Kernel, x: Expr, dtype: DType) -> Expr:
    """By the exponential, and by a polynomial near zero. Source: tanhf of Cephes."""
    if dtype is not F:
        return k.extern("tanh", dtype, x)
    size = k.named(t.abs_(x), F)
    z = k.named(x * x, F)
    near = _polynomial(z, (-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1))
    far = _c(1.0) - _c(2.0) / (exp(k, size + size, F) + _c(1.0))
    signed = t.select(x < _c(0.0), t.const(0.0, F) - far, far)
    return t.select(size < _c(0.625), near * z * x + x, signed)


def erf(k: Kernel, x: Expr, dtype: DType) -> Expr:
    """Off by one unit in the last place at most: a polynomial near zero, and one in the exponent of ``1 - e ** p``.

    Source: N. Juffa, "Efficient computation of the error function", whose coefficients these are.
    """
    if dtype is not F:
        return k.extern("erf", dtype, x)
    size = t.abs_(x)
    size = k.named(t.select(size > _c(4.0), _c(4.0), size), F)
    s = k.named(size * size, F)
    r = _c(-1.72853470e-5) * size + _c(3.83197126e-4)
    u = _c(-3.88396438e-3) * size + _c(2.42546219e-2)
    r = r * s + u
    for c in (-1.06777877e-1, -6.34846687e-1, -1.28717512e-1):
        r = r * size + _c(c)
    far = _c(1.0) - exp(k, r * size - size, F)
    signed = t.select(x < _c(0.0), _c(-1.0) * far, far)
    near = _polynomial(
        s,
        (-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1),
    )
    found = t.select(size > _c(0.927734375), signed, near * x + x)
    return t.select(t.ne(x, x), x, found)


def log(k: Kernel, x: Expr, dtype: DType) -> Expr:
    """Off by one unit in the last place at most. Source: logf of Cephes, and numbers below the smallest normal one."""
    if dtype is not F:
        return t.call("log", x)
    tiny = k.named(x < _c(1.1754943508222875e-38), DType.bool)
    scaled = k.named(t.select(tiny, x * _c(8388608.0), x), F)
    bits = k.named(t.as_bits(scaled, DType.i32), DType.i32)
    whole = (bits >> t.const(23, DType.i32)) - t.const(126, DType.i32)
    low = t.const(0x007FFFFF, DType.i32) & bits
    m = k.named(t.as_bits(low | t.const(0x3F000000, DType.i32), F), F)  # in [0.5, 1)
    small = k.named(m < _c(0.70710678118654752440), DType.bool)
    e = t.cast(whole, F) - t.select(tiny, _c(23.0), t.const(0.0, F)) - t.select(small, _c(1.0), t.const(0.0, F))
    e = k.named(e, F)
    f = k.named(t.select(small, m + m, m) - _c(1.0), F)
    z = k.named(f * f, F)
    p = _polynomial(
        f,
        (
            7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
            2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
        ),
    )  # fmt: skip
    y = p * f * z + e * _c(-2.12194440e-4) - z * _c(0.5)
    found = (f + y) + e * _c(0.693359375)
    at_end = t.select(t.eq(x, t.const(0.0, F)), _c(float("-inf")), _c(float("nan")))
    found = t.select(x > t.const(0.0, F), found, at_end)
    return t.select(t.any_of(t.ne(x, x), t.eq(x, _c(float("inf")))), x, found)


def log1p(k: Kernel, x: Expr, dtype: DType) -> Expr:
    return k.extern("log1p", dtype, x)


def sqrt(x: Expr) -> Expr:
    return t.call("sqrt", x)


def rounded(x: Expr, dtype: DType) -> Expr:
    """To the nearest whole number, the even one of two: by adding where the last bit is 1, and taking away again."""
    whole = 2.0 ** (52 if dtype is DType.f64 else 23)
    size = t.abs_(x)
    near = (size + t.const(whole, dtype)) - t.const(whole, dtype)
    signed = t.select(t.any_of(x < t.const(0.0, dtype), is_negative_zero(x, dtype)), t.const(-1.0, dtype) * near, near)
    return t.select(size < t.const(whole, dtype), signed, x)


def is_negative_zero(x: Expr, dtype: DType) -> Expr:
    """Whether the sign is set of what may be a zero."""
    bits = DType.i64 if dtype is DType.f64 else DType.i32
    return t.as_bits(x, bits) < t.const(0, bits)
