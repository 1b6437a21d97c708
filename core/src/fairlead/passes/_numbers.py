"""Arithmetic on single numbers that rounds as tensors of a dtype do."""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from fairlead.ir import DType

Number: TypeAlias = bool | int | float

COMPARISONS: Mapping[str, Callable[[Number, Number], bool]] = {
    f"aten.{name}.Tensor": getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")
}

_ARITHMETIC: Mapping[str, Callable[[Number, Number], Number]] = {
    "aten.add.Tensor": operator.add,
    "aten.sub.Tensor": operator.sub,
    "aten.mul.Tensor": operator.mul,
    "aten.div.Tensor": operator.truediv,
}

_LOGIC: Mapping[str, Callable[[Number, Number], Number]] = {
    "aten.logical_and.default": lambda a, b: bool(a) and bool(b),
    "aten.logical_or.default": lambda a, b: bool(a) or bool(b),
    "aten.logical_xor.default": lambda a, b: bool(a) != bool(b),
    "aten.bitwise_and.Tensor": lambda a, b: int(a) & int(b),
    "aten.bitwise_or.Tensor": lambda a, b: int(a) | int(b),
    "aten.bitwise_xor.Tensor": lambda a, b: int(a) ^ int(b),
}

_UNARY: Mapping[str, Callable[[Number], Number]] = {
    "aten.neg.default": operator.neg,
    "aten.abs.default": abs,
    "aten.logical_not.default": operator.not_,
}

MAKE_BOOLS = frozenset({*COMPARISONS, *(op for op in _LOGIC if ".logical" in op), "aten.logical_not.default"})
"""The ops whose result is a bool, whatever the dtype of the operands."""


def computed(op: str, args: Sequence[Number | None], dtype: DType) -> Number | None:
    """What an op gives for numbers of a dtype (None is an argument that is none); None where it is not known here.

    Sums, products and quotients of two numbers of 24 bits are exact enough in 53 that rounding twice is rounding once
    (Figueroa 1995), and halves are computed in float32 as ATen does.
    """
    match args:
        case [a] if op in _UNARY and a is not None and (dtype is not DType.bool or op in MAKE_BOOLS):
            return stored(_UNARY[op](a), DType.bool if op in MAKE_BOOLS else dtype)
        case [a, b, *rest] if a is not None and b is not None and rest in ([], [1]):
            return _of_two(op, _widened(a, dtype), _widened(b, dtype), dtype)
    return None


def _of_two(op: str, a: Number, b: Number, dtype: DType) -> Number | None:
    if op in COMPARISONS:
        return COMPARISONS[op](a, b)
    if op in _LOGIC:
        bits = _LOGIC[op](a, b)
        return stored(bits, DType.bool if op in MAKE_BOOLS else dtype)
    if op not in _ARITHMETIC or dtype is DType.bool or (op == "aten.div.Tensor" and (b == 0 or not dtype.is_floating)):
        return None
    return stored(_widened(_ARITHMETIC[op](a, b), dtype), dtype)


def _widened(number: Number, dtype: DType) -> Number:
    """A number in the precision that ATen computes in for a dtype."""
    if not dtype.is_floating:
        return number
    return float(number) if dtype is DType.f64 else _float32(float(number))


def stored(number: Number, dtype: DType) -> Number | None:
    """The number as a tensor of this dtype holds it; None where that is not defined, or a float8.

    >>> stored(0.1, DType.f32), stored(300, DType.u8), stored(2.9, DType.i64)
    (0.10000000149011612, 44, 2)
    """
    match dtype:
        case DType.bool:
            return number != 0
        case DType.f64:
            return float(number)
        case DType.f32:
            return _float32(float(number))
        case DType.f16:
            return _half(_float32(float(number)))
        case DType.bf16:
            return _bfloat(_float32(float(number)))
    return _integer(number, dtype) if dtype.is_integer else None


def _integer(number: Number, dtype: DType) -> int | None:
    bits = 8 * dtype.itemsize
    signed = dtype.value[0] == "i"
    if isinstance(number, float):
        in_range = math.isfinite(number) and -signed * (1 << (bits - 1)) <= number < 1 << (bits - signed)
        return int(number) if in_range else None  # out of range it depends on the processor
    wrapped = int(number) % (1 << bits)
    return wrapped - (1 << bits) if signed and wrapped >> (bits - 1) else wrapped


def _float32(number: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)


def _half(number: float) -> float:
    try:
        return float(struct.unpack("e", struct.pack("e", number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)


def _bfloat(number: float) -> float:
    """Rounded to nearest, ties to even, in the bits of a float32; numbers that are not finite as they are."""
    if not math.isfinite(number):
        return number
    (bits,) = struct.unpack("I", struct.pack("f", number))
    bits += 0x7FFF + (bits >> 16 & 1)
    return float(struct.unpack("f", struct.pack("I", bits & 0xFFFF0000))[0])
