"""Torch's dtypes beside those of the IR."""

from __future__ import annotations

import torch

from fairlead.ir import DType

TORCH_DTYPES: dict[DType, torch.dtype] = {dtype: getattr(torch, dtype.long_name) for dtype in DType}
"""The torch dtype of each dtype of the IR."""

IR_DTYPES: dict[torch.dtype, DType] = {theirs: ours for ours, theirs in TORCH_DTYPES.items()}
"""The IR's dtype of each torch dtype that the IR has."""


def torch_dtype(dtype: DType) -> torch.dtype:
    """The torch dtype of a dtype of the IR.

    >>> torch_dtype(DType.bf16)
    torch.bfloat16
    """
    return TORCH_DTYPES[dtype]
