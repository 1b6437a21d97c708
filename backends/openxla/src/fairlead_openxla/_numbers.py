"""Element types: how jax has them, how they convert as torch converts them, and what operands are computed in."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, TypeAlias

import jax.numpy as jnp
import numpy as np
from jax import lax

from fairlead.ir import Argument, Complex, DimExpr, DType, ScalarType, TensorType, Value

__all__ = ["Array", "cast", "constant", "dtype_of", "floating", "jax_dtype", "operand", "promoted", "wide", "wider"]

Array: TypeAlias = Any
"""A jax array of any element type."""

_HALVES = frozenset({DType.f16, DType.bf16})


@functools.cache
def jax_dtype(dtype: DType) -> np.dtype[Any]:
    """The NumPy dtype by which jax calls a dtype of the IR."""
    return np.dtype(jnp.bfloat16) if dtype is DType.bf16 else np.dtype(dtype.long_name)


@functools.cache
def _names() -> dict[np.dtype[Any], DType]:
    return {jax_dtype(d): d for d in DType if not d.value.startswith("f8")}


def dtype_of(x: Array) -> DType:
    """The dtype of an array."""
    return _names()[np.dtype(x.dtype)]


def wider(dtype: DType) -> DType:
    """What torch's kernels compute in: f32 for halves."""
    return DType.f32 if dtype in _HALVES else dtype


def constant(value: Any, dtype: DType) -> Array:
    """A number as a 0-d array that XLA does not look through.

    XLA adds up the constants of ``(x + 1e8) - 1e8`` and multiplies by the reciprocal of one; torch rounds in between.
    The barrier is gone when loops are made, so that it costs nothing.
    """
    return lax.optimization_barrier(jnp.asarray(_number(value, dtype)))


def _number(value: Any, dtype: DType) -> Any:
    """A Python number in an element type; integers keep the bits that it has, as C++ converts them."""
    value = complex(value.re, value.im) if isinstance(value, Complex) else value
    target = jax_dtype(dtype)
    if dtype.is_integer and not isinstance(value, bool):
        bits = 8 * dtype.itemsize
        return np.asarray(int(value) % (1 << bits), f"uint{bits}").view(target)
    with np.errstate(all="ignore"):
        return np.asarray(value).astype(target)


def cast(x: Any, dtype: DType) -> Array:
    """An array or a number in an element type, as ``Tensor.to`` converts it."""
    if not hasattr(x, "dtype"):
        return constant(x, dtype)
    have = dtype_of(x)
    if have is dtype:
        return x
    if dtype is DType.bool:
        return x != 0
    if have.is_complex and not dtype.is_complex:
        x, have = jnp.real(x), DType.f64 if have is DType.c128 else DType.f32
    if dtype.is_integer and have.is_floating:
        x = _whole(x.astype(jax_dtype(wider(have))), DType.i64 if dtype in (DType.u8, DType.i64) else DType.i32)
    return x.astype(jax_dtype(dtype))


def _whole(x: Array, dtype: DType) -> Array:
    """Floats cut off; the least integer of what is beyond all of them, and of a NaN, where XLA has the nearest, and 0.

    Torch's kernels do as the processor's conversion does; shorter integers are what is left of one of these.
    """
    least = -(2.0 ** (8 * dtype.itemsize - 1))
    inside = (x >= least) & (x < -least)
    return jnp.where(inside, x, jnp.asarray(least, x.dtype)).astype(jax_dtype(dtype))


def operand(x: Any, dtype: DType) -> Array:
    """What an arithmetic op of this result computes with: the operand rounded to its dtype, and widened.

    A Python number is not rounded to a half: kernels keep it in f32.
    """
    if not hasattr(x, "dtype"):
        return constant(x, wider(dtype))
    return cast(cast(x, dtype), wider(dtype))


def wide(x: Array) -> Array:
    """An array in what it is computed in."""
    return cast(x, wider(dtype_of(x)))


def floating(x: Array, dtype: DType) -> Array:
    """Any array in what a floating result of ``dtype`` is computed in."""
    return cast(x, wider(dtype))


def promoted(args: Iterable[Argument]) -> DType:
    """The element type in which torch compares these operands.

    Tensors win over 0-d tensors, those over numbers, within a kind. Source: torch.result_type.
    """
    ranks: list[DType | None] = [None, None, None]
    for arg in args:
        place, dtype = _priority(arg)
        known = ranks[place]
        ranks[place] = dtype if known is None else _joined(known, dtype)
    found = [dtype for dtype in ranks if dtype is not None]
    return max(found, key=_kind)  # the first of equal kinds


def _priority(arg: Argument) -> tuple[int, DType]:
    match arg:
        case Value(type=TensorType() as type_):
            return (0 if type_.rank else 1), type_.dtype
        case Value(type=ScalarType()) | DimExpr():
            return 2, DType.i64
        case bool():
            return 2, DType.bool
        case int():
            return 2, DType.i64
        case Complex():
            return 2, DType.c64
    return 2, DType.f32


def _kind(dtype: DType) -> int:
    if dtype is DType.bool:
        return 0
    return 1 if dtype.is_integer else 3 if dtype.is_complex else 2


def _joined(a: DType, b: DType) -> DType:
    if a is b:
        return a
    if _kind(a) != _kind(b):
        both = {a, b}
        return DType.c128 if DType.c64 in both and DType.f64 in both else max(a, b, key=_kind)
    if {a, b} == _HALVES:
        return DType.f32
    if a.is_integer:
        return _names()[np.promote_types(jax_dtype(a), jax_dtype(b))]
    return max(a, b, key=lambda d: d.itemsize)
