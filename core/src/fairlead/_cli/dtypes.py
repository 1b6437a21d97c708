"""The types that a model can be turned into on the command line."""

from __future__ import annotations

import enum


class FloatType(enum.StrEnum):
    """Floating-point types that a model can be turned into."""

    f64 = "f64"
    f32 = "f32"
    bf16 = "bf16"
    f16 = "f16"
