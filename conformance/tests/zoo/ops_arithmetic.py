"""Wrong element by element: arithmetic, comparisons, rounding, types."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.tests.zoo._fault import Kind
from fairlead.ir import DType
from fairlead.numpy._dtypes import numpy_dtype, wide

KIND = Kind("ops")
op = KIND.op


def _rounded(x: Any, dtype: DType) -> Any:
    """As computed in a shorter type: floats rounded to it, all else left alone."""
    if not isinstance(x, np.ndarray) or x.dtype.kind == "c" or x.dtype.kind in "biu":
        return x
    return x.astype(numpy_dtype(dtype)).astype(x.dtype)


@op("add.Tensor")
def add_without_alpha(right, call, x, y, alpha=1):
    """The multiplier of the second operand is ignored."""
    return right(call, x, y)


@op("sub.Tensor")
def sub_without_alpha(right, call, x, y, alpha=1):
    """The multiplier of what is subtracted is ignored."""
    return right(call, x, y)


@op("sub.Tensor")
def sub_exchanged(right, call, x, y, alpha=1):
    """The operands of a subtraction are exchanged."""
    return -np.asarray(right(call, x, y, alpha))


@op("add.Tensor")
def add_saturates(right, call, x, y, alpha=1):
    """Integers stop at the end of their range instead of wrapping around."""
    if call.dtype is DType.bool or not call.dtype.is_integer:
        return right(call, x, y, alpha)
    limits = np.iinfo(numpy_dtype(call.dtype))
    exact = np.asarray(x).astype(object) + np.asarray(y).astype(object) * alpha
    return np.clip(exact, limits.min, limits.max).astype(numpy_dtype(call.dtype))


@op("mul.Tensor", aims=("directed/beyond-*", "semantics/large-integers*"))
def mul_of_integers_through_float64(right, call, x, y):
    """64-bit integers are multiplied in float64, which holds 53 bits."""
    if call.dtype is not DType.i64:
        return right(call, x, y)
    return (np.asarray(x).astype(np.float64) * np.asarray(y).astype(np.float64)).astype(np.int64)


@op("add.Tensor", aims=("directed/beyond-*", "semantics/large-integers*"))
def add_of_integers_in_32_bits(right, call, x, y, alpha=1):
    """64-bit integers are added in 32 bits."""
    found = right(call, x, y, alpha)
    return np.asarray(found).astype(np.int32) if call.dtype is DType.i64 else found


@op("mul.Tensor")
def mul_flushes_denormals(right, call, x, y):
    """Numbers that are nearly zero are taken for zero, and the capabilities do not say so."""
    found = np.asarray(right(call, x, y))
    if found.dtype.kind != "f" or call.dtype is not DType.f32:
        return found
    return np.where(np.abs(found) < np.finfo(np.float32).tiny, 0.0, found)


@op("mul.Tensor")
def mul_of_float32_in_bfloat16(right, call, x, y):
    """Products of float32 are computed in bfloat16, as some runtimes do by default."""
    if call.dtype is not DType.f32:
        return right(call, x, y)
    return _rounded(np.asarray(right(call, _rounded(x, DType.bf16), _rounded(y, DType.bf16))), DType.bf16)


@op("add.Tensor")
def add_of_float32_in_float16(right, call, x, y, alpha=1):
    """Sums of float32 are computed in float16, beyond whose range they become infinite."""
    found = np.asarray(right(call, x, y, alpha))
    return _rounded(found, DType.f16) if call.dtype is DType.f32 else found


@op("exp", "tanh", "sigmoid", aims=("ops/exp/f64/*", "ops/tanh/f64/*"))
def float64_in_float32(right, call, *args):
    """What is float64 is computed in float32."""
    found = np.asarray(right(call, *args))
    return _rounded(found, DType.f32) if call.dtype is DType.f64 else found


@op("mul.Tensor")
def mul_broadcasts_the_wrong_row(right, call, x, y):
    """An operand of one row is repeated along the other dimension where the sizes allow it."""
    if isinstance(y, np.ndarray) and y.ndim == 1 and getattr(x, "ndim", 0) == 2 and x.shape[0] == x.shape[1] == len(y):
        return right(call, x, y[:, None])
    if isinstance(y, np.ndarray) and y.ndim and y.shape[-1] == 1 and getattr(x, "ndim", 0) == y.ndim:
        return right(call, x, np.flip(y, 0))
    return right(call, x, y)


@op("mul.Tensor")
def mul_of_nothing_fails(right, call, x, y):
    """Tensors without elements are not provided for."""
    if 0 in call.shape():
        raise ValueError("a size of zero")
    return right(call, x, y)


@op("mul.Tensor")
def mul_loses_the_sign_of_zero(right, call, x, y):
    """-0 becomes 0."""
    found = np.asarray(right(call, x, y))
    return found + 0.0 if found.dtype.kind == "f" else found


@op("div.Tensor", "div.Tensor_mode", aims=("directed/*div*",))
def division_of_integers_truncates(right, call, x, y, rounding_mode="trunc"):
    """A division that is to round down cuts off towards zero."""
    args = (x, y) if call.node.op == "aten.div.Tensor" else (x, y, rounding_mode and "trunc")
    return right(call, *args)


@op("div.Tensor_mode", aims=("directed/*div*",))
def truncating_division_rounds_down(right, call, x, y, rounding_mode):
    """A division that is to cut off towards zero rounds down."""
    return right(call, x, y, rounding_mode and "floor")


@op("div.Tensor_mode")
def floor_division_of_rounded_quotients(right, call, x, y, rounding_mode):
    """Of floats the quotient is rounded before it is floored."""
    if call.dtype.is_integer or rounding_mode != "floor":
        return right(call, x, y, rounding_mode)
    return np.floor(np.float32(0.5) + np.asarray(x, np.float64) / np.asarray(y, np.float64))


@op("remainder.Tensor")
def remainder_of_the_dividends_sign(right, call, x, y):
    """The remainder has the sign of the dividend."""
    return np.fmod(wide(x), wide(y))


@op("remainder.Tensor")
def remainder_of_nothing_left_is_the_divisor(right, call, x, y):
    """Where a division leaves nothing, the remainder is the divisor."""
    found = np.asarray(right(call, x, y))
    return np.where(found == 0, y, found)


@op("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar")
def pow_of_negative_bases(right, call, x, y):
    """Powers are exponentials of logarithms, which negative bases do not have."""
    if call.dtype.is_integer or call.dtype.is_complex:
        return right(call, x, y)
    return np.exp(np.log(wide(x)) * wide(y))


@op("pow.Tensor_Scalar")
def pow_of_zero_is_zero(right, call, x, y):
    """x ** 0 is x."""
    return x if y == 0 else right(call, x, y)


@op("pow.Tensor_Tensor", "pow.Tensor_Scalar")
def pow_of_integers_through_floats(right, call, x, y):
    """Integers are raised in float32."""
    if not call.dtype.is_integer:
        return right(call, x, y)
    return np.power(np.asarray(x, np.float32), np.asarray(y, np.float32))


@op("maximum", aims=("directed/*nan*",))
def maximum_drops_nan(right, call, x, y):
    """The larger of a number and NaN is the number."""
    return np.fmax(wide(x), wide(y))


@op("maximum")
def maximum_of_unsigned_as_signed(right, call, x, y):
    """Bytes are compared as if they had a sign."""
    if call.dtype is not DType.u8:
        return right(call, x, y)
    return np.maximum(np.asarray(x).astype(np.int8), np.asarray(y).astype(np.int8)).astype(np.uint8)


@op("maximum")
def maximum_is_the_minimum(right, call, x, y):
    """The smaller one is taken."""
    return np.minimum(wide(x), wide(y))


@op("clamp.Tensor", "clamp", aims=("directed/*clamp*",))
def clamp_drops_nan(right, call, x, low=None, high=None):
    """NaN becomes the lower bound."""
    found = np.asarray(right(call, x, low, high))
    if found.dtype.kind != "f" or low is None:
        return found
    return np.where(np.isnan(wide(x)), wide(low), found)


@op("clamp.Tensor", "clamp", aims=("directed/*clamp*",))
def clamp_prefers_the_lower_bound(right, call, x, low=None, high=None):
    """Where the bounds cross, the lower one wins."""
    return right(call, right(call, x, None, high), low, None)


@op("clamp.Tensor", "clamp", aims=("directed/*clamp*",))
def clamp_without_the_upper_bound(right, call, x, low=None, high=None):
    """The upper bound counts only where there is no lower one."""
    return right(call, x, low, None if low is not None else high)


@op("round", aims=("directed/*round*",))
def round_half_away(right, call, x):
    """Halves are rounded away from zero."""
    return np.trunc(wide(x) + np.copysign(0.5, wide(x))) if np.asarray(x).dtype.kind not in "biu" else x


@op("round", aims=("directed/*round*",))
def round_towards_zero(right, call, x):
    """What is to be rounded is cut off."""
    return np.trunc(wide(x)) if np.asarray(x).dtype.kind not in "biu" else x


@op("sqrt")
def sqrt_of_negatives_is_zero(right, call, x):
    """The root of a negative number is 0 and not NaN."""
    found = np.asarray(right(call, x))
    return np.where(np.isnan(found), 0, found)


@op("rsqrt")
def rsqrt_by_a_table(right, call, x):
    """The reciprocal root is right to eleven bits."""
    return np.asarray(right(call, x)) * (1 + 2.0**-11)


@op("exp")
def exp_by_an_approximation(right, call, x):
    """The exponential is 10^-5 off."""
    return np.asarray(right(call, x)) * (1 + 1e-5)


@op("exp")
def exp_does_not_overflow(right, call, x):
    """What overflows becomes the largest number and not infinity."""
    found = np.asarray(right(call, x))
    if found.dtype.kind != "f":
        return found
    limit = float(np.finfo(np.float32).max) if call.dtype is DType.f32 else np.inf
    return np.minimum(found, limit)


@op("log1p")
def log1p_of_a_sum(right, call, x):
    """log(1 + x) is computed as it is written, in float32: small x are lost."""
    if call.dtype is not DType.f32:
        return right(call, x)
    return np.log(np.float32(1) + np.asarray(x).astype(np.float32))


@op("erf")
def erf_by_a_formula_of_three_digits(right, call, x):
    """The error function is 10^-3 off."""
    return np.asarray(right(call, x)) * (1 - 1e-3)


@op("tanh")
def tanh_that_saturates_early(right, call, x):
    """tanh is 1 from 3 on."""
    found = np.asarray(right(call, x))
    return np.where(np.abs(wide(x)) > 3, np.sign(found), found) if found.dtype.kind == "f" else found


@op("sigmoid")
def sigmoid_overflows(right, call, x):
    """The logistic function of a large negative number is NaN, for infinity by infinity."""
    found = np.asarray(right(call, x))
    return np.where(wide(x) < -80, np.nan, found) if found.dtype.kind == "f" else found


@op("isnan")
def isnan_is_never(right, call, x):
    """Fast mathematics: there are no NaNs."""
    return np.zeros(np.shape(x), bool)


@op("logical_and")
def logical_and_of_bits(right, call, x, y):
    """Numbers are joined bit by bit, so that 1 and 2 is 0."""
    if np.asarray(x).dtype.kind not in "iu" or np.asarray(y).dtype.kind not in "iu":
        return right(call, x, y)
    return np.bitwise_and(x, y) != 0


@op("where.self")
def where_exchanged(right, call, condition, x, y):
    """The branches are exchanged."""
    return right(call, condition, y, x)


@op("where.self")
def where_by_multiplication(right, call, condition, x, y):
    """The choice is a sum of products, in which NaN of the other branch stays."""
    if np.asarray(x).dtype.kind != "f" and np.asarray(y).dtype.kind != "f":
        return right(call, condition, x, y)
    return condition * wide(x) + (1 - condition.astype(np.float64)) * wide(y)


@op("_to_copy", aims=("directed/*trunc*", "directed/*cast*", "directed/*narrow*"))
def conversion_rounds(right, call, x, *rest):
    """Floats are rounded on their way to integers, and not cut off."""
    return (
        np.rint(wide(x)) if call.dtype.is_integer and np.asarray(x).dtype.kind not in "biu" else right(call, x, *rest)
    )


@op("_to_copy", aims=("directed/*narrow*",))
def conversion_saturates(right, call, x, *rest):
    """Integers that do not fit stop at the end of the range."""
    if not call.dtype.is_integer or call.dtype is DType.bool or np.asarray(x).dtype.kind not in "iu":
        return right(call, x, *rest)
    limits = np.iinfo(numpy_dtype(call.dtype))
    return np.clip(x, limits.min, limits.max)


@op("_to_copy")
def conversion_to_bool_by_the_lowest_bit(right, call, x, *rest):
    """2 is false."""
    if call.dtype is not DType.bool:
        return right(call, x, *rest)
    return np.asarray(wide(x)).astype(np.int64) % 2 == 1
