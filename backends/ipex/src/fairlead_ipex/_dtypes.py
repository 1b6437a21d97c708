"""In which dtype products are computed."""

from __future__ import annotations

import torch
from torch import fx

from fairlead.interpret import multiplies_bfloat16
from fairlead.ir import DType
from fairlead_ipex._draft import Draft

__all__ = ["TORCH", "computed_in", "in_dtype"]

TORCH = {DType.f32: torch.float32, DType.bf16: torch.bfloat16}


def computed_in(dtype: DType) -> torch.dtype | None:
    """The dtype of the quickest kernels that oneDNN has for a dtype here, as exact as torch's; None where it has none.

    bfloat16 is computed in float32 where the processor is quicker with that: products are added up in it anyway.
    """
    if dtype not in TORCH or not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return None
    return torch.bfloat16 if dtype is DType.bf16 and multiplies_bfloat16() else torch.float32


def in_dtype(draft: Draft, node: fx.Node, given: torch.dtype, wanted: torch.dtype) -> fx.Node:
    """A node of the same numbers in the dtype that is wanted, to be inserted where that is another one."""
    if given is wanted:
        return node
    return draft.graph.call_function(torch.ops.aten._to_copy.default, (node,), {"dtype": wanted})
