"""Tensors in a given layout."""

from __future__ import annotations

from collections.abc import Sequence

import torch


def restride(tensor: torch.Tensor, strides: Sequence[int]) -> torch.Tensor:
    """The tensor with these strides.

    Itself where only dimensions of size one differ, otherwise a copy in that layout.
    """
    wanted = tuple(strides)
    if all(n == 1 or a == b for n, a, b in zip(tensor.shape, tensor.stride(), wanted, strict=True)):
        return tensor.as_strided(tensor.shape, wanted) if tensor.stride() != wanted else tensor
    if tensor.numel() == 0:
        return torch.empty_strided(tensor.shape, wanted, dtype=tensor.dtype, device=tensor.device)
    broadcast = [n > 1 and s == 0 for n, s in zip(tensor.shape, wanted, strict=True)]
    source = tensor[tuple(slice(0, 1) if b else slice(None) for b in broadcast)]
    if overlaps(source.shape, wanted):
        return _over_each_other(source, wanted).as_strided(tensor.shape, wanted)
    out = torch.empty_strided(source.shape, wanted, dtype=tensor.dtype, device=tensor.device)
    return out.copy_(source).as_strided(tensor.shape, wanted)


def overlaps(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether two elements may have one address, as in the windows that ``unfold`` shows; gaps are none.

    >>> overlaps((2, 3), (4, 1)), overlaps((2, 3), (2, 1)), overlaps((2, 3), (0, 1))
    (False, True, True)
    """
    extent = 1
    for stride, size in sorted((s, n) for s, n in zip(strides, shape, strict=True) if n > 1):
        if stride < extent:
            return True
        extent += stride * (size - 1)
    return False


def _over_each_other(tensor: torch.Tensor, strides: Sequence[int]) -> torch.Tensor:
    """The tensor in a layout in which elements share addresses; those that do are equal."""
    address = torch.zeros((), dtype=torch.int64, device=tensor.device)
    for size, stride in zip(tensor.shape, strides, strict=True):
        address = address.unsqueeze(-1) + torch.arange(size, device=tensor.device) * stride
    memory = torch.empty(int(address.max()) + 1, dtype=tensor.dtype, device=tensor.device)
    memory[address.flatten()] = tensor.flatten()
    return memory
