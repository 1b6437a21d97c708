"""The types of values: element types, tensors with their sizes and strides, and integers."""

from __future__ import annotations

import enum
from typing import TypeAlias

import msgspec

from fairlead.ir.dims import Dim, mul


class DType(enum.StrEnum):
    """An element type. ``itemsize`` is in bytes."""

    bool = "bool"
    u8 = "u8"
    i8 = "i8"
    i16 = "i16"
    i32 = "i32"
    i64 = "i64"
    f16 = "f16"
    bf16 = "bf16"
    f32 = "f32"
    f64 = "f64"
    c64 = "c64"
    c128 = "c128"
    f8e4m3fn = "f8e4m3fn"
    f8e5m2 = "f8e5m2"
    u16 = "u16"
    u32 = "u32"
    u64 = "u64"

    @property
    def itemsize(self) -> int:
        digits = "".join(c for c in self.value.partition("e")[0].lstrip("buifc") if c.isdigit())
        return int(digits) // 8 if digits else 1

    @property
    def long_name(self) -> str:
        """What torch, NumPy and ml_dtypes call it, such as ``float32``."""
        letters = self.value.rstrip("0123456789")
        return _LONG_NAMES.get(self.value) or _LONG_NAMES[letters] + self.value.removeprefix(letters)

    @property
    def is_floating(self) -> bool:  # type: ignore[valid-type]  # the member named bool shadows the type
        return self.value[0] == "f" or self.value == "bf16"

    @property
    def is_complex(self) -> bool:  # type: ignore[valid-type]
        return self.value[0] == "c"

    @property
    def is_integer(self) -> bool:  # type: ignore[valid-type]
        return self.value[0] in "ui"


_LONG_NAMES = {
    "bool": "bool",
    "u": "uint",
    "i": "int",
    "f": "float",
    "bf": "bfloat",
    "c": "complex",
    "f8e4m3fn": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
}


class TensorType(msgspec.Struct, frozen=True, gc=False, tag="tensor", tag_field="_"):
    """dtype, shape and device of a tensor. ``strides`` (in elements) is None where they are row-major contiguous."""

    dtype: DType
    shape: tuple[Dim, ...]
    strides: tuple[Dim, ...] | None = None
    device: str = "cpu"

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def is_static(self) -> bool:
        return all(isinstance(d, int) for d in self.shape)


class ScalarType(msgspec.Struct, frozen=True, gc=False, tag="scalar", tag_field="_"):
    """A Python number that is known only when the graph runs: an integer symbol (``i64``)."""

    dtype: DType


Type: TypeAlias = TensorType | ScalarType


def row_major(shape: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """The strides, in elements, of a contiguous tensor, sizes below one counting as one as torch has it."""
    strides: list[Dim] = []
    step: Dim = 1
    for d in reversed(shape):
        strides.append(step)
        step = mul(step, max(d, 1) if isinstance(d, int) else d)
    return tuple(reversed(strides))
