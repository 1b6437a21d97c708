"""How far apart the numbers of each type are: what one unit in the last place comes to."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from fairlead.ir import DType

__all__ = ["SPACINGS", "Spacing"]


class Spacing(NamedTuple):
    """``at_one``: the distance from one to the next number. ``at_zero``: the smallest number above zero."""

    at_one: float
    at_zero: float


_DOUBLE = Spacing(2.0**-52, 2.0**-1074)
_SINGLE = Spacing(2.0**-23, 2.0**-149)

SPACINGS: Mapping[DType, Spacing] = MappingProxyType(
    {
        DType.f64: _DOUBLE,
        DType.c128: _DOUBLE,
        DType.f32: _SINGLE,
        DType.c64: _SINGLE,
        DType.f16: Spacing(2.0**-10, 2.0**-24),
        DType.bf16: Spacing(2.0**-7, 2.0**-133),
        DType.f8e4m3fn: Spacing(2.0**-3, 2.0**-9),
        DType.f8e5m2: Spacing(2.0**-2, 2.0**-16),
    }
)
"""Of the types whose arithmetic rounds; complex numbers have that of their parts."""
