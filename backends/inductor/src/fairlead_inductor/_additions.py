"""Rows added to rows of a tensor on a CPU by ATen's kernel, where generated code adds each number by itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch

__all__ = ["adding_rows"]

_MANY = 2**14
"""So many numbers take generated code, which adds each by an atomic instruction, longer."""


def adding_rows(index_put: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """``index_put``, which adds many rows at one list of places by ``scatter_add``."""

    def run(
        x: torch.Tensor, indices: Sequence[torch.Tensor | None], values: torch.Tensor, accumulate: bool = False
    ) -> torch.Tensor:
        index, *others = indices
        if others or index is None or not accumulate or not _are_many_rows(x, index):
            return index_put(x, indices, values, accumulate)
        shape = (len(index), *x.shape[1:])
        places = torch.where(index < 0, index + x.shape[0], index).to(torch.int64)
        whole = places.reshape(-1, *[1] * (x.dim() - 1)).expand(shape)
        return x.scatter_add(0, whole, values.expand(shape))

    return run


def _are_many_rows(x: torch.Tensor, index: torch.Tensor) -> bool:
    if x.device.type != "cpu" or index.dim() != 1 or index.dtype not in (torch.int32, torch.int64):
        return False
    return len(index) * math.prod(x.shape[1:]) >= _MANY
