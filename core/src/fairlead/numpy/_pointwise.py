"""Arithmetic, comparison, rounding and logic, element by element.

Operands are converted to the result's dtype first and computed in float64, which is correctly rounded for + - * / and
the square root (twice the digits and two more suffice: Figueroa, "When is double rounding innocuous?", 1995).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fairlead.ir import DType
from fairlead.numpy._dtypes import Array, cast, floating, number, numpy_dtype, operand, promoted, wide
from fairlead.numpy._table import Call, op


def _enter_unary(functions: dict[str, Callable[[Array], Array]]) -> None:
    for name, function in functions.items():
        op(name)(_unary(function))


def _unary(function: Callable[[Array], Array]) -> Callable[[Call, Array], Array]:
    def rule(call: Call, x: Array) -> Array:
        return function(operand(x, call.dtype))

    return rule


def _sigmoid(x: Array) -> Array:
    if x.dtype.kind == "c":
        return 1 / (1 + np.exp(-x))
    small = np.exp(-np.abs(x))  # never overflows
    return np.where(x >= 0, 1, small) / (1 + small)


def _sign(x: Array) -> Array:
    if x.dtype.kind == "b":
        return x
    return np.where(np.isnan(x), 0, np.sign(x)) if x.dtype.kind == "f" else np.sign(x)


def _sgn(x: Array) -> Array:
    if x.dtype.kind != "c":
        return _sign(x)
    size = np.abs(x)
    return np.where(size == 0, 0, x / np.where(size == 0, 1, size))


def _of_floats(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Rounding leaves integers as they are."""

    def rounded(x: Array) -> Array:
        return function(x) if x.dtype.kind == "f" else x

    return rounded


_enter_unary(
    {
        "abs": np.abs, "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
        "atan": np.arctan, "atanh": np.arctanh, "ceil": _of_floats(np.ceil), "cos": np.cos, "cosh": np.cosh,
        "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "floor": _of_floats(np.floor), "log": np.log,
        "log10": np.log10, "log1p": np.log1p, "log2": np.log2, "neg": np.negative, "positive": np.positive,
        "reciprocal": lambda x: 1 / floating(x), "relu": lambda x: np.where(x <= 0, 0, x).astype(x.dtype),
        "round": _of_floats(np.rint), "rsqrt": lambda x: 1 / np.sqrt(x), "sigmoid": _sigmoid, "sign": _sign,
        "sgn": _sgn, "sin": np.sin, "sinh": np.sinh, "sqrt": np.sqrt, "square": np.square, "tan": np.tan,
        "tanh": np.tanh, "trunc": _of_floats(np.trunc), "bitwise_not": np.invert,
        "deg2rad": np.deg2rad, "rad2deg": np.rad2deg, "frac": lambda x: x - np.trunc(x),
    }
)  # fmt: skip


@op("abs")
def _abs(call: Call, x: Array) -> Array:
    return np.abs(wide(x))


@op("round.decimals")
def _round_decimals(call: Call, x: Array, decimals: int) -> Array:
    x = operand(x, call.dtype)
    if x.dtype.kind != "f":
        return x
    scale = 10.0 ** abs(decimals)
    return np.rint(x * scale) / scale if decimals >= 0 else np.rint(x / scale) * scale


@op("isnan")
def _isnan(call: Call, x: Array) -> Array:
    return np.isnan(wide(x))


@op("isinf")
def _isinf(call: Call, x: Array) -> Array:
    return np.isinf(wide(x))


@op("isfinite")
def _isfinite(call: Call, x: Array) -> Array:
    return np.isfinite(wide(x))


@op("isposinf")
def _isposinf(call: Call, x: Array) -> Array:
    return wide(x) == np.inf


@op("isneginf")
def _isneginf(call: Call, x: Array) -> Array:
    return wide(x) == -np.inf


@op("signbit")
def _signbit(call: Call, x: Array) -> Array:
    return np.zeros(x.shape, bool) if x.dtype.kind == "b" else np.signbit(wide(x))


@op("nan_to_num")
def _nan_to_num(call: Call, x: Array, nan: float | None, posinf: float | None, neginf: float | None) -> Array:
    y = operand(x, call.dtype)
    if y.dtype.kind != "f":
        return y
    largest = float(_largest(call.dtype))
    y = np.where(np.isnan(y), 0.0 if nan is None else nan, y)
    y = np.where(y == np.inf, largest if posinf is None else posinf, y)
    return np.where(y == -np.inf, -largest if neginf is None else neginf, y)


def _largest(dtype: DType) -> Any:
    target = numpy_dtype(dtype)
    if dtype in (DType.f16, DType.f32, DType.f64):
        return np.finfo(target).max
    import ml_dtypes

    return ml_dtypes.finfo(target).max  # type: ignore[no-untyped-call]


@op("add.Tensor", "add.Scalar")
def _add(call: Call, x: Array, y: Array, alpha: Any = 1) -> Array:
    x, y = operand(x, call.dtype), operand(y, call.dtype)
    if call.dtype is DType.bool:
        return x | y if alpha else x
    return x + (y if alpha == 1 else y * operand(alpha, call.dtype))


@op("sub.Tensor", "sub.Scalar")
def _sub(call: Call, x: Array, y: Array, alpha: Any = 1) -> Array:
    x, y = operand(x, call.dtype), operand(y, call.dtype)
    return x - (y if alpha == 1 else y * operand(alpha, call.dtype))


@op("rsub.Tensor", "rsub.Scalar")
def _rsub(call: Call, x: Array, y: Array, alpha: Any = 1) -> Array:
    return _sub(call, y, x, alpha)


@op("mul.Tensor", "mul.Scalar")
def _mul(call: Call, x: Array, y: Array) -> Array:
    return operand(x, call.dtype) * operand(y, call.dtype)


@op("div.Tensor", "div.Scalar", "true_divide.Tensor")
def _div(call: Call, x: Array, y: Array) -> Array:
    return operand(x, call.dtype) / operand(y, call.dtype)


@op("div.Tensor_mode", "div.Scalar_mode")
def _div_mode(call: Call, x: Array, y: Array, rounding_mode: str | None) -> Array:
    match rounding_mode:
        case None:
            return _div(call, x, y)
        case "floor":
            return floor_divide(operand(x, call.dtype), operand(y, call.dtype))
    x, y = operand(x, call.dtype), operand(y, call.dtype)
    if x.dtype.kind == "f":
        return np.trunc(x / y)
    return _truncated(x, y)


def _no_zero(y: Array) -> None:
    if np.any(y == 0):
        raise ZeroDivisionError("an integer is divided by zero")


def _truncated(x: Array, y: Array) -> Array:
    _no_zero(y)
    quotient = x // y
    inexact = (quotient * y != x) & ((x < 0) != (y < 0))
    return (quotient + inexact).astype(quotient.dtype)


@op("floor_divide")
def _floor_divide(call: Call, x: Array, y: Array) -> Array:
    return floor_divide(operand(x, call.dtype), operand(y, call.dtype))


def floor_divide(x: Array, y: Array) -> Array:
    """Division that rounds down; of floats it agrees with the remainder, which has the divisor's sign."""
    if x.dtype.kind != "f":
        _no_zero(y)
        return x // y
    # As Python: the quotient of what is divisible after the remainder has been taken away.
    rest = np.fmod(x, y)
    quotient = (x - rest) / y
    quotient = np.where((rest != 0) & ((y < 0) != (rest < 0)), quotient - 1, quotient)
    whole = np.floor(quotient)
    whole = np.where(quotient - whole > 0.5, whole + 1, whole)
    whole = np.where(quotient == 0, np.copysign(0.0, x / y), whole)
    return np.where(y == 0, x / y, whole)


@op("remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor")
def _remainder(call: Call, x: Array, y: Array) -> Array:
    """The remainder with the divisor's sign."""
    x, y = operand(x, call.dtype), operand(y, call.dtype)
    if x.dtype.kind != "f":
        _no_zero(y)
        return np.mod(x, y)
    rest = np.fmod(x, y)
    return np.where((rest != 0) & ((y < 0) != (rest < 0)), rest + y, rest)


@op("fmod.Tensor", "fmod.Scalar")
def _fmod(call: Call, x: Array, y: Array) -> Array:
    """The remainder with the dividend's sign."""
    x, y = operand(x, call.dtype), operand(y, call.dtype)
    if x.dtype.kind != "f":
        _no_zero(y)
    return np.fmod(x, y)


@op("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar")
def _pow(call: Call, x: Array, y: Array) -> Array:
    x, y = operand(x, call.dtype), operand(y, call.dtype)
    if x.dtype.kind not in "iu":
        return np.power(x, y)
    x, y = np.broadcast_arrays(x, y)
    power = np.power(x, np.where(y < 0, 0, y))  # integers wrap around
    below_one = np.where(x == 1, 1, np.where(x == -1, np.where(y % 2 == 0, 1, -1), 0))
    return np.where(y < 0, below_one, power).astype(x.dtype)


@op("atan2")
def _atan2(call: Call, y: Array, x: Array) -> Array:
    return np.arctan2(operand(y, call.dtype), operand(x, call.dtype))


@op("hypot")
def _hypot(call: Call, x: Array, y: Array) -> Array:
    return np.hypot(operand(x, call.dtype), operand(y, call.dtype))


@op("copysign.Tensor", "copysign.Scalar")
def _copysign(call: Call, x: Array, y: Array) -> Array:
    return np.copysign(operand(x, call.dtype), operand(y, call.dtype))


@op("nextafter")
def _nextafter(call: Call, x: Array, y: Array) -> Array:
    target = numpy_dtype(call.dtype)
    if target.kind == "f":
        return np.nextafter(cast(x, call.dtype), cast(y, call.dtype))
    import ml_dtypes  # noqa: F401 - it gives np.nextafter its element types

    return np.nextafter(cast(x, call.dtype), cast(y, call.dtype))


@op("maximum", "max.other")
def _maximum(call: Call, x: Array, y: Array) -> Array:
    """NaN where either operand is NaN."""
    return np.maximum(operand(x, call.dtype), operand(y, call.dtype))


@op("minimum", "min.other")
def _minimum(call: Call, x: Array, y: Array) -> Array:
    return np.minimum(operand(x, call.dtype), operand(y, call.dtype))


@op("fmax")
def _fmax(call: Call, x: Array, y: Array) -> Array:
    """The operand that is a number, where one is NaN."""
    return np.fmax(operand(x, call.dtype), operand(y, call.dtype))


@op("fmin")
def _fmin(call: Call, x: Array, y: Array) -> Array:
    return np.fmin(operand(x, call.dtype), operand(y, call.dtype))


@op("clamp", "clamp.Tensor")
def _clamp(call: Call, x: Array, low: Array | None = None, high: Array | None = None) -> Array:
    """NaN of any operand stays; the upper bound wins where the bounds cross."""
    x = operand(x, call.dtype)
    if low is not None:
        x = np.maximum(x, operand(low, call.dtype))
    return x if high is None else np.minimum(x, operand(high, call.dtype))


@op("clamp_min", "clamp_min.Tensor")
def _clamp_min(call: Call, x: Array, low: Array) -> Array:
    return _clamp(call, x, low)


@op("clamp_max", "clamp_max.Tensor")
def _clamp_max(call: Call, x: Array, high: Array) -> Array:
    return _clamp(call, x, None, high)


@op("gcd")
def _gcd(call: Call, x: Array, y: Array) -> Array:
    return np.gcd(operand(x, call.dtype), operand(y, call.dtype))


@op("lcm")
def _lcm(call: Call, x: Array, y: Array) -> Array:
    return np.lcm(operand(x, call.dtype), operand(y, call.dtype))


@op("ldexp.Tensor")
def _ldexp(call: Call, x: Array, exponent: Array) -> Array:
    return operand(x, call.dtype) * np.exp2(floating(exponent))


@op("frexp.Tensor")
def _frexp(call: Call, x: Array) -> tuple[Array, Array]:
    mantissa, exponent = np.frexp(wide(x))
    return mantissa, exponent


def _compared(function: Callable[[Array, Array], Array]) -> Callable[[Call, Array, Array], Array]:
    def rule(call: Call, x: Array, y: Array) -> Array:
        dtype = promoted(x, y)
        return function(*(_comparable(a, dtype) for a in (x, y)))

    return rule


def _comparable(x: Array, dtype: DType) -> Array:
    """A Python integer beyond the dtype's range stays what it is; it is larger than all of it."""
    x = number(x)
    if isinstance(x, int) and not isinstance(x, bool) and dtype.is_integer and not isinstance(x, np.ndarray):
        return x
    return operand(x, dtype)


_COMPARISONS: dict[str, np.ufunc] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip

for _name, _function in _COMPARISONS.items():
    op(f"{_name}.Tensor", f"{_name}.Scalar")(_compared(_function))


def _of_truth(function: Callable[..., Array]) -> Callable[..., Array]:
    def rule(call: Call, *operands: Array) -> Array:
        return function(*(cast(number(x), DType.bool) for x in operands))

    return rule


op("logical_and")(_of_truth(np.logical_and))
op("logical_or")(_of_truth(np.logical_or))
op("logical_xor")(_of_truth(np.logical_xor))
op("logical_not")(_of_truth(np.logical_not))


def _bitwise(function: Callable[[Array, Array], Array]) -> Callable[[Call, Array, Array], Array]:
    def rule(call: Call, x: Array, y: Array) -> Array:
        return function(operand(x, call.dtype), operand(y, call.dtype))

    return rule


_BITWISE: dict[str, np.ufunc] = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}

for _name, _function in _BITWISE.items():
    op(*(f"bitwise_{_name}.{overload}" for overload in ("Tensor", "Scalar", "Scalar_Tensor")))(_bitwise(_function))


@op("bitwise_left_shift.Tensor", "bitwise_left_shift.Tensor_Scalar", "__lshift__.Scalar", "__lshift__.Tensor")
def _left_shift(call: Call, x: Array, y: Array) -> Array:
    x, y = operand(x, call.dtype), operand(y, call.dtype)
    bits = 8 * x.dtype.itemsize
    inside = (y >= 0) & (y < bits)
    return np.where(inside, np.left_shift(x, np.where(inside, y, 0)), 0).astype(x.dtype)


@op("bitwise_right_shift.Tensor", "bitwise_right_shift.Tensor_Scalar", "__rshift__.Scalar", "__rshift__.Tensor")
def _right_shift(call: Call, x: Array, y: Array) -> Array:
    """Arithmetic: what is shifted out of range leaves the sign."""
    x, y = operand(x, call.dtype), operand(y, call.dtype)
    last = 8 * x.dtype.itemsize - 1
    inside = (y >= 0) & (y <= last)
    return np.right_shift(x, np.where(inside, y, last)).astype(x.dtype)


@op("where.self", "where.ScalarSelf", "where.ScalarOther", "where.Scalar")
def _where(call: Call, condition: Array, x: Array, y: Array) -> Array:
    return np.where(condition, *(cast(number(a), call.dtype) for a in (x, y)))


@op("masked_fill.Scalar", "masked_fill.Tensor")
def _masked_fill(call: Call, x: Array, mask: Array, value: Array) -> Array:
    return np.where(mask, cast(number(value), call.dtype), x)


@op("lerp.Scalar", "lerp.Tensor")
def _lerp(call: Call, start: Array, end: Array, weight: Array) -> Array:
    start, end, weight = (operand(x, call.dtype) for x in (start, end, weight))
    return start + weight * (end - start)


@op("addcmul")
def _addcmul(call: Call, x: Array, a: Array, b: Array, value: Any = 1) -> Array:
    return operand(x, call.dtype) + operand(value, call.dtype) * operand(a, call.dtype) * operand(b, call.dtype)


@op("addcdiv")
def _addcdiv(call: Call, x: Array, a: Array, b: Array, value: Any = 1) -> Array:
    return operand(x, call.dtype) + operand(value, call.dtype) * operand(a, call.dtype) / operand(b, call.dtype)


@op("_to_copy", "prims.convert_element_type.default")
def _to_copy(call: Call, x: Array, *rest: Any) -> Array:
    return x


@op(
    "clone",
    "alias",
    "alias_copy",
    "detach",
    "lift_fresh_copy",
    "lift",
    "lift_fresh",
    "contiguous",
    "prims.device_put.default",
)
def _same(call: Call, x: Array, *rest: Any) -> Array:
    return x


@op("copy")
def _copy(call: Call, x: Array, source: Array, *rest: Any) -> Array:
    return np.broadcast_to(source, x.shape)


@op("_local_scalar_dense")
def _item(call: Call, x: Array) -> Any:
    if x.size != 1:
        raise ValueError(f"a tensor of {x.size} elements is no number")
    return x.item() if x.dtype.kind in "biufc" else float(x.item())
