"""Ops on lists of tensors, with which torch clips gradients, as ops on each of them; the IR has tensors alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

__all__ = ["LISTS"]

_aten = torch.ops.aten


def _norm(tensors: Sequence[torch.Tensor], order: float = 2, dtype: torch.dtype | None = None) -> list[torch.Tensor]:
    return [torch.linalg.vector_norm(t, order, dtype=dtype) for t in tensors]


def _with_other(op: Callable[..., torch.Tensor]) -> Callable[..., list[torch.Tensor]]:
    return lambda tensors, other: [op(t, other) for t in tensors]


LISTS: dict[Any, Callable[..., Any]] = {
    _aten._foreach_norm.Scalar: _norm,
    _aten._foreach_mul.Tensor: _with_other(torch.mul),
    _aten._foreach_mul.Scalar: _with_other(torch.mul),
    _aten._foreach_clamp_min.Scalar: _with_other(torch.clamp_min),
    _aten._foreach_clamp_max.Scalar: _with_other(torch.clamp_max),
}
"""Decompositions by op; the ops that write in place become these where a graph is made functional."""
