"""Torch's dtypes, layouts and memory formats beside the names that the IR gives them."""

from __future__ import annotations

import torch

from fairlead.ir import DType

_NAMES = {
    "bool": DType.bool,
    "uint8": DType.u8,
    "int8": DType.i8,
    "int16": DType.i16,
    "int32": DType.i32,
    "int64": DType.i64,
    "float16": DType.f16,
    "bfloat16": DType.bf16,
    "float32": DType.f32,
    "float64": DType.f64,
    "complex64": DType.c64,
    "complex128": DType.c128,
    "float8_e4m3fn": DType.f8e4m3fn,
    "float8_e5m2": DType.f8e5m2,
    "uint16": DType.u16,
    "uint32": DType.u32,
    "uint64": DType.u64,
}

IR_DTYPES: dict[torch.dtype, DType] = {getattr(torch, name): dtype for name, dtype in _NAMES.items()}
"""The IR's dtype of each torch dtype that the IR has."""

TORCH_DTYPES: dict[DType, torch.dtype] = {dtype: t for t, dtype in IR_DTYPES.items()}
"""The torch dtype of each dtype of the IR."""
