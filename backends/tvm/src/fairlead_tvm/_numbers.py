"""Element types: how they convert as torch converts them, and what operands are computed in."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import torch

from fairlead.ir import Argument, Complex, DimExpr, DType, ScalarType, TensorType, Value
from fairlead_tvm import _tvm as t
from fairlead_tvm._arrays import Array, Computed
from fairlead_tvm._kernel import Kernel
from fairlead_tvm._tvm import Expr

__all__ = ["cast", "constant", "converted", "operand", "promoted", "wide", "wider"]

_HALVES = frozenset({DType.f16, DType.bf16})


def wider(dtype: DType) -> DType:
    """What torch's kernels compute in: f32 for halves."""
    return DType.f32 if dtype in _HALVES else dtype


def constant(value: Any, dtype: DType) -> Array:
    """A number, or a size, as a 0-d array."""
    if isinstance(value, str):
        return Computed((), dtype, lambda k, _: t.cast(k.size(value), dtype), cost=0)
    return Computed((), dtype, lambda k, _: k.number(value, dtype), cost=0)


def converted(k: Kernel, x: Expr, have: DType, dtype: DType) -> Expr:
    """An element in another type, as ``Tensor.to`` converts it."""
    if have is dtype:
        return x
    if have is DType.bf16 or dtype is DType.bf16:
        return _of_bf16(k, x, have, dtype)
    if dtype is DType.bool:
        return t.ne(x, t.const(0, have))
    if (have is DType.f64 and dtype is DType.f16) or (have is DType.f16 and dtype is not DType.f32):
        return converted(k, t.cast(x, DType.f32), DType.f32, dtype)
    if have.is_integer and dtype is DType.f16:
        return t.cast(t.cast(x, DType.f32), dtype)
    if dtype.is_integer and have.is_floating:
        return _whole(x, have, dtype)
    return t.cast(x, dtype)


def _of_bf16(k: Kernel, x: Expr, have: DType, dtype: DType) -> Expr:
    """From or to bf16, whose elements are f32 in a kernel."""
    if have is DType.bf16:
        return converted(k, x, DType.f32, dtype)
    return t.rounded_to_bf16(k.named(converted(k, x, have, DType.f32), DType.f32))


def _whole(x: Expr, have: DType, dtype: DType) -> Expr:
    """Floats cut off; the least integer of what is beyond all of them, and of a NaN.

    Torch's kernels do as the processor's conversion does; shorter integers are what is left of one of these.
    """
    through = DType.i64 if dtype in (DType.u8, DType.i64) else DType.i32
    least = -(2.0 ** (8 * through.itemsize - 1))
    inside = t.all_of(x >= t.const(least, have), x < t.const(-least, have))
    found = t.select(inside, t.cast(x, through), t.const(int(least), through))
    return found if through is dtype else t.cast(found, dtype)


def cast(x: Any, dtype: DType) -> Array:
    """An array or a number in an element type."""
    if not isinstance(x, Array):
        return constant(x, dtype)
    if x.dtype is dtype:
        return x
    have, source = x.dtype, x
    found = Computed(
        x.shape,
        dtype,
        lambda k, index: converted(k, k.element(source, index), have, dtype),
        cost=x.cost + 1 if x.products else x.cost,
        products=x.products,
    )
    found.channels_last = x.channels_last
    return found


def operand(x: Any, dtype: DType) -> Array:
    """What an arithmetic op of this result computes with: the operand rounded to its dtype, and widened.

    A number, or a 0-d tensor of another type, is not rounded to a half: kernels keep it in f32.
    """
    if not isinstance(x, Array):
        return constant(x, wider(dtype))
    if x.ndim == 0 and x.dtype is not dtype and dtype in _HALVES:
        return cast(x, wider(dtype))
    return cast(cast(x, dtype), wider(dtype))


def wide(x: Array) -> Array:
    """An array in what it is computed in."""
    return cast(x, wider(x.dtype))


def promoted(args: Iterable[Argument]) -> DType:
    """The element type in which torch compares these operands."""
    found = functools.reduce(_joined, map(_operand_kind, args))
    return found[1]


def _operand_kind(arg: Argument) -> tuple[int, DType]:
    """How much an operand counts: 2 a tensor, 1 a 0-d one, 0 a number."""
    match arg:
        case Value(type=TensorType() as type_):
            return (2 if type_.rank else 1), type_.dtype
        case Value(type=ScalarType()) | DimExpr():
            return 0, DType.i64
        case bool():
            return 0, DType.bool
        case int():
            return 0, DType.i64
        case Complex():
            return 0, DType.c64
    return 0, DType.f32


def _joined(a: tuple[int, DType], b: tuple[int, DType]) -> tuple[int, DType]:
    """The wider of two, where one that counts less matters only by its kind. Source: torch.result_type."""
    if a[0] != b[0] and _kind(a[1]) == _kind(b[1]):
        return max(a, b, key=lambda each: each[0])
    if _kind(a[1]) != _kind(b[1]):
        return max(a, b, key=lambda each: _kind(each[1]))
    both = torch.promote_types(getattr(torch, a[1].long_name), getattr(torch, b[1].long_name))
    name = str(both).removeprefix("torch.")
    return a[0], next(d for d in DType if d.long_name == name)


def _kind(dtype: DType) -> int:
    if dtype is DType.bool:
        return 0
    return 1 if dtype.is_integer else 3 if dtype.is_complex else 2
