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


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), of real numbers without overflow."""
    if x.dtype.kind == "c":
        return 1 / (1 + np.exp(-x))
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, small) / (1 + small)


def _sign(x: Array) -> Array:
    if x.dtype.kind == "b":
        return x
    return np.where(np.isnan(x), 0, np.sign(x)) if x.dtype.kind == "f" else np.sign(x)


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
        "log10": np.log10, "log1p": np.log1p, "log2": np.log2, "neg": np.negative,
        "reciprocal": lambda x: 1 / floating(x), "relu": lambda x: np.where(x <= 0, 0, x).astype(x.dtype),
        "round": _of_floats(np.rint), "rsqrt": lambda x: 1 / np.sqrt(x), "sigmoid": sigmoid, "sign": _sign,
        "sin": np.sin, "sinh": np.sinh, "sqrt": np.sqrt, "tan": np.tan,
        "tanh": np.tanh, "trunc": _of_floats(np.trunc), "bitwise_not": np.invert,
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


@op("signbit")
def _signbit(call: Call, x: Array) -> Array:
    return np.zeros(x.shape, bool) if x.dtype.kind == "b" else np.signbit(wide(x))


def _largest(dtype: DType) -> Any:
    target = numpy_dtype(dtype)
    if dtype in (DType.f16, DType.f32, DType.f64):
        return np.finfo(target).max
    import ml_dtypes

    return ml_dtypes.finfo(target).max  # type: ignore[no-untyped-call]


@op("add.Tensor")
def _add(call: Call, x: Array, y: Array, alpha: Any = 1) -> Array:
    x, y = operand(x, call.dtype), operand(y, call.dtype)
    if call.dtype is DType.bool:
        return x | y if alpha else x
    return x + (y if alpha == 1 else y * operand(alpha, call.dtype))


@op("sub.Tensor")
def _sub(call: Call, x: Array, y: Array, alpha: Any = 1) -> Array:
    x, y = operand(x, call.dtype), operand(y, call.dtype)
    return x - (y if alpha == 1 else y * operand(alpha, call.dtype))


@op("mul.Tensor")
def _mul(call: Call, x: Array, y: Array) -> Array:
    return operand(x, call.dtype) * operand(y, call.dtype)


@op("div.Tensor")
def _div(call: Call, x: Array, y: Array) -> Array:
    return operand(x, call.dtype) / operand(y, call.dtype)


@op("div.Tensor_mode")
def _div_mode(call: Call, x: Array, y: Array, rounding_mode: str | None) -> Array:
    match rounding_mode:
        case None:
            return _div(call, x, y)
        case "floor":
            return floor_divide(operand(x, call.dtype), operand(y, call.dtype))
        case "trunc":
            return _truncated(operand(x, call.dtype), operand(y, call.dtype))
    raise ValueError(f"rounding_mode is {rounding_mode!r}, not None, 'floor' or 'trunc'")


def _no_zero(y: Array) -> None:
    if np.any(y == 0):
        raise ZeroDivisionError("an integer is divided by zero")


def _truncated(x: Array, y: Array) -> Array:
    if x.dtype.kind == "f":
        return np.trunc(x / y)
    _no_zero(y)
    quotient = x // y
    inexact = (quotient * y != x) & ((x < 0) != (y < 0))
    return (quotient + inexact).astype(quotient.dtype)


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


@op("remainder.Tensor")
def _remainder(call: Call, x: Array, y: Array) -> Array:
    """The remainder with the divisor's sign."""
    x, y = operand(x, call.dtype), operand(y, call.dtype)
    if x.dtype.kind != "f":
        _no_zero(y)
        return np.mod(x, y)
    rest = np.fmod(x, y)
    return np.where((rest != 0) & ((y < 0) != (rest < 0)), rest + y, rest)


@op("fmod.Tensor")
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


@op("copysign.Tensor")
def _copysign(call: Call, x: Array, y: Array) -> Array:
    return np.copysign(operand(x, call.dtype), operand(y, call.dtype))


@op("nextafter")
def _nextafter(call: Call, x: Array, y: Array) -> Array:
    return np.nextafter(cast(x, call.dtype), cast(y, call.dtype))


@op("maximum")
def _maximum(call: Call, x: Array, y: Array) -> Array:
    """NaN where either operand is NaN."""
    return np.maximum(operand(x, call.dtype), operand(y, call.dtype))


@op("minimum")
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


@op("gcd")
def _gcd(call: Call, x: Array, y: Array) -> Array:
    return np.gcd(operand(x, call.dtype), operand(y, call.dtype))


@op("lcm")
def _lcm(call: Call, x: Array, y: Array) -> Array:
    return np.lcm(operand(x, call.dtype), operand(y, call.dtype))


_FAR = 2**12
"""Beyond this exponent every float64 is zero or infinite."""


@op("ldexp.Tensor")
def _ldexp(call: Call, x: Array, exponent: Array) -> Array:
    """By C's function where that takes the operands: its result may be in range where the power alone is not."""
    wide = operand(x, call.dtype)
    if np.asarray(x).dtype.kind in "biuc" or exponent.dtype.kind not in "iu":
        return wide * np.exp2(floating(exponent))
    return np.ldexp(wide, np.clip(exponent, -_FAR, _FAR).astype(np.int32))


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
    op(f"{_name}.Tensor")(_compared(_function))


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
    op(f"bitwise_{_name}.Tensor")(_bitwise(_function))


@op("bitwise_left_shift.Tensor")
def _left_shift(call: Call, x: Array, y: Array) -> Array:
    x, y = operand(x, call.dtype), operand(y, call.dtype)
    bits = 8 * x.dtype.itemsize
    inside = (y >= 0) & (y < bits)
    return np.where(inside, np.left_shift(x, np.where(inside, y, 0)), 0).astype(x.dtype)


@op("bitwise_right_shift.Tensor")
def _right_shift(call: Call, x: Array, y: Array) -> Array:
    """Arithmetic: what is shifted out of range leaves the sign."""
    x, y = operand(x, call.dtype), operand(y, call.dtype)
    last = 8 * x.dtype.itemsize - 1
    inside = (y >= 0) & (y <= last)
    return np.right_shift(x, np.where(inside, y, last)).astype(x.dtype)


@op("where.self")
def _where(call: Call, condition: Array, x: Array, y: Array) -> Array:
    return np.where(condition, *(cast(number(a), call.dtype) for a in (x, y)))


@op("_to_copy")
def _to_copy(call: Call, x: Array, *rest: Any) -> Array:
    return x


@op("clone")
def _same(call: Call, x: Array, *rest: Any) -> Array:
    return x


@op("_local_scalar_dense")
def _item(call: Call, x: Array) -> Any:
    if x.size != 1:
        raise ValueError(f"a tensor of {x.size} elements is no number")
    return x.item() if x.dtype.kind in "biufc" else float(x.item())
