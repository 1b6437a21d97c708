"""Copies of many tensors at once."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch._utils import _unflatten_dense_tensors

__all__ = ["copies", "overwrite", "packed_copies"]

_ALIGNMENT = 16
"""Bytes, of which kernels that read many at once take addresses to be multiples."""

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


def packed_copies(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Copies as of `copies`, in one piece of memory for each dtype: for results that come and go together.

    On an accelerator this takes three calls, however many the tensors. One whose memory is not dense, or not a
    multiple of 16 bytes, has memory of its own. Of a NaN of 16 bits nothing but that it is one may be left.

    >>> x, y = torch.ones(2, 3), torch.zeros(4)
    >>> [torch.equal(a, b) for a, b in zip(packed_copies([x, y]), (x, y))]
    [True, True]
    """
    if len(tensors) <= _FEW or tensors[0].device.type != "cuda":
        return copies(tensors)
    groups: dict[torch.dtype | None, list[int]] = {}
    for k, tensor in enumerate(tensors):
        fits = tensor.is_contiguous() and tensor.nbytes and not tensor.nbytes % _ALIGNMENT
        groups.setdefault(tensor.dtype if fits else None, []).append(k)
    found = dict(zip(apart := groups.pop(None, []), copies([tensors[k] for k in apart]), strict=True))
    for places in groups.values():
        if len(places) == 1:
            found[places[0]] = tensors[places[0]].clone()
            continue
        group = [tensors[k] for k in places]
        memory = group[0].new_empty(sum(t.numel() for t in group))
        fresh = _unflatten_dense_tensors(memory, group)  # type: ignore[no-untyped-call]
        torch._foreach_copy_(fresh, group)
        found.update(zip(places, fresh, strict=True))
    return [found[k] for k in range(len(tensors))]


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
