"""Which dtype an operation on several dtypes has.

The rules are those of ``torch.result_type``: c10's ``promoteTypes`` for two dtypes and ATen's ``ResultTypeState``
(``aten/src/ATen/native/TypeProperties.cpp``) for operands: a tensor with dimensions counts more than one without,
and that more than a Python number, unless the lesser is of a higher kind (bool < integer < floating < complex).
https://pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

from fairlead.ir._types import DType, ScalarType, TensorType
from fairlead.ir.infer._rule import BrokenRule, Operand

_ORDER = ("bool", "u8", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "c64", "c128")
_ALONE = frozenset({DType.u16, DType.u32, DType.u64})
_FLOAT8 = frozenset({DType.f8e4m3fn, DType.f8e5m2})

REAL = {DType.c64: DType.f32, DType.c128: DType.f64}
"""The dtype of the parts of a complex number."""

COMPLEX = {
    DType.f32: DType.c64,
    DType.f64: DType.c128,
    DType.bf16: DType.c64,
    DType.c64: DType.c64,
    DType.c128: DType.c128,
}
"""The complex dtype that has parts of a dtype, or holds them."""


@functools.cache
def promoted(a: DType, b: DType) -> DType:
    """The smallest dtype that both go into, as torch has it.

    >>> promoted(DType.u8, DType.i8), promoted(DType.i64, DType.f16), promoted(DType.f16, DType.bf16)
    (<DType.i16: 'i16'>, <DType.f16: 'f16'>, <DType.f32: 'f32'>)
    """
    if a == b:
        return a
    pair = {a, b}
    if pair & _FLOAT8:
        raise BrokenRule(f"{a} and {b} have no common dtype: an 8-bit floating dtype is not promoted")
    if pair & _ALONE:
        return _with_unsigned(a, b)
    if pair == {DType.u8, DType.i8}:
        return DType.i16
    if pair == {DType.f16, DType.bf16}:
        return DType.f32
    if pair == {DType.c64, DType.f64}:
        return DType.c128
    return max(a, b, key=_ORDER.index)


def _with_unsigned(a: DType, b: DType) -> DType:
    """The wide unsigned dtypes go with floating ones only."""
    other = b if a in _ALONE else a
    if not other.is_floating:
        raise BrokenRule(f"{a} and {b} have no common dtype: a wide unsigned dtype goes with floating ones only")
    return other


def result_dtype(operands: Iterable[Operand | None]) -> DType:
    """The dtype that tensors and numbers are computed in together; None operands do not count.

    >>> result_dtype([TensorType(DType.f16, (2,)), TensorType(DType.f64, ()), 2.0])
    <DType.f16: 'f16'>
    >>> result_dtype([TensorType(DType.i32, (2,)), 2.0])
    <DType.f32: 'f32'>
    """
    levels: list[DType | None] = [None, None, None]
    for operand in operands:
        if operand is None:
            continue
        level, dtype = _level(operand)
        known = levels[level]
        levels[level] = dtype if known is None else promoted(known, dtype)
    found = _combined(levels[0], _combined(levels[1], levels[2]))
    if found is None:
        raise BrokenRule("it has no operand that has a dtype")
    return found


def dtype_of(number: Operand) -> DType:
    """The dtype of a tensor, or the default one of a number."""
    return _level(number)[1]


def _level(operand: Operand) -> tuple[int, DType]:
    match operand:
        case TensorType(dtype=dtype, shape=shape):
            return (0 if shape else 1), dtype
        case bool():
            return 2, DType.bool
        case int() | str() | ScalarType():
            return 2, DType.i64
        case float():
            return 2, DType.f32
    return 2, DType.c64


def _combined(higher: DType | None, lower: DType | None) -> DType | None:
    """``combine_categories`` of ATen: the lower counts only where it is of a higher kind."""
    if higher is None or lower is None:
        return higher or lower
    if higher.is_complex:
        return higher
    if higher.is_floating:
        return complex_of(higher) if lower.is_complex else higher
    if lower.is_complex:
        return lower
    if higher is DType.bool or lower.is_floating:
        return promoted(higher, lower)
    return higher


def complex_of(dtype: DType) -> DType:
    """The complex dtype with parts of this one."""
    if dtype not in COMPLEX:
        raise BrokenRule(f"there is no complex dtype with parts of {dtype}")
    return COMPLEX[dtype]


def real_of(dtype: DType) -> DType:
    """The dtype of the absolute value."""
    return REAL.get(dtype, dtype)


def floating_of(dtype: DType) -> DType:
    """The dtype of a function into the reals: integers and bools become the default floating dtype."""
    return dtype if dtype.is_floating or dtype.is_complex else DType.f32


def summed_of(dtype: DType) -> DType:
    """The dtype of sums and products: of integers and bools, int64."""
    return DType.i64 if dtype.is_integer or dtype is DType.bool else dtype
