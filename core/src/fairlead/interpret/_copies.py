"""Copies of many tensors at once."""

from __future__ import annotations

from collections.abc import Sequence

import torch

__all__ = ["copies", "overwrite"]

_FEW = 4
"""Up to so many copies, one call for each is as quick."""


def copies(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """A copy of each tensor, as its ``clone()`` is; on an accelerator by one kernel for all of one dtype.

    >>> x = torch.arange(6.0).reshape(2, 3).t()
    >>> y, = copies([x])
    >>> y.stride(), y.data_ptr() == x.data_ptr(), torch.equal(x, y)
    ((1, 3), False, True)
    """
    if len(tensors) <= _FEW or tensors[0].device.type != "cuda":
        return [tensor.clone() for tensor in tensors]
    fresh = [torch.empty_like(tensor) for tensor in tensors]
    overwrite(fresh, tensors)
    return fresh


def overwrite(targets: Sequence[torch.Tensor], sources: Sequence[torch.Tensor]) -> None:
    """Write each source over its target, which has its shape and dtype.

    One kernel takes all pairs of one dtype that lie alike; a pair that does not lie alike would send the others of its
    group one by one, and so goes by itself.
    """
    alike: dict[torch.dtype, list[tuple[torch.Tensor, torch.Tensor]]] = {}
    for target, source in zip(targets, sources, strict=True):
        if target.stride() == source.stride():
            alike.setdefault(target.dtype, []).append((_bits(target), _bits(source)))
        else:
            target.copy_(source)
    for pairs in alike.values():
        torch._foreach_copy_([target for target, _ in pairs], [source for _, source in pairs])


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """Halves as integers: copying many tensors at once goes through float32, and loses what a NaN says besides."""
    return tensor.view(torch.int16) if tensor.dtype in (torch.float16, torch.bfloat16) else tensor
