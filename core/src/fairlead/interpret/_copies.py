"""Copies of many tensors at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, repeat
from typing import Any, NamedTuple

import torch

from fairlead.ir import row_major

__all__ = ["Packing", "copies", "overwrite"]

_ALIGNMENT = 16
"""Bytes, of which kernels that read many at once take addresses to be multiples."""

_DEVICE = "cuda"
"""Where one kernel copies many tensors."""

_is_contiguous = torch.Tensor.is_contiguous
_shown: Callable[..., torch.Tensor] = getattr(torch._C._dynamo.guards, "_reinterpret_tensor", torch.as_strided)
"""A tensor over another's memory, as Inductor's generated code makes it: half the time of a view of torch's."""

_FEW = 4
"""Up to so many copies, one call for each is as quick."""


def copies(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """A copy of each tensor, as its ``clone()`` is; on an accelerator by one kernel for all of one dtype.

    >>> x = torch.arange(6.0).reshape(2, 3).t()
    >>> y, = copies([x])
    >>> y.stride(), y.data_ptr() == x.data_ptr(), torch.equal(x, y)
    ((1, 3), False, True)
    """
    if len(tensors) <= _FEW or tensors[0].device.type != _DEVICE:
        return [tensor.clone() for tensor in tensors]
    fresh = [torch.empty_like(tensor) for tensor in tensors]
    overwrite(fresh, tensors)
    return fresh


class Packing:
    """How copies of tensors like the given ones lie in one piece of memory for each dtype.

    For results that come and go together, and whose shapes and dtypes are the same each time. On an accelerator
    copying takes one kernel for each dtype, however many the tensors. ``is_row_major`` tells of each whether its copy
    is to be, else it has the strides of the tensor; without it all keep theirs. What is not row-major, or not a
    multiple of 16 bytes, has memory of its own.

    >>> x, y = torch.ones(2, 3), torch.zeros(4)
    >>> [torch.equal(a, b) for a, b in zip(Packing([x, y]).copies([x, y]), (x, y))]
    [True, True]
    """

    def __init__(self, tensors: Sequence[torch.Tensor], is_row_major: Sequence[bool] | None = None) -> None:
        self._is_worth_it = len(tensors) > _FEW and tensors[0].device.type == _DEVICE
        self._groups: list[_Group] = []
        groups: dict[torch.dtype, list[int]] = {}
        for k, tensor in enumerate(tensors):
            fits = tensor.is_contiguous() if is_row_major is None else is_row_major[k]
            if fits and tensor.nbytes and not tensor.nbytes % _ALIGNMENT:
                groups.setdefault(tensor.dtype, []).append(k)
        self._groups += [_group(places, [tensors[k] for k in places]) for places in groups.values() if len(places) > 1]
        packed = {k for group in self._groups for k in group.places}
        self._apart = [k for k in range(len(tensors)) if k not in packed]

    def copies(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """A copy of each tensor. Of a NaN of 16 bits nothing but that it is one may be left."""
        if not self._is_worth_it:
            return copies(tensors)
        found = list(tensors)
        for k, copy in zip(self._apart, copies([tensors[k] for k in self._apart]), strict=True):
            found[k] = copy
        for places, total, *layouts in self._groups:
            given = [tensors[k] for k in places]
            fresh = list(map(_shown, repeat(given[0].new_empty(total)), *layouts))
            for k, copy in zip(places, fresh, strict=True):
                found[k] = copy
            if not all(map(_is_contiguous, given)):  # among the others they would send all one by one
                fresh, given = _contiguous_left(fresh, given)
            if given:
                torch._foreach_copy_(fresh, given)
        return found


class _Group(NamedTuple):
    """Tensors of one dtype: their places, how many elements there are, and how each lies among these."""

    places: list[int]
    total: int
    shapes: list[torch.Size]
    strides: list[tuple[int, ...]]
    offsets: list[int]


def _group(places: list[int], tensors: Sequence[torch.Tensor]) -> _Group:
    ends = list(accumulate(t.numel() for t in tensors))
    shapes = [t.shape for t in tensors]
    strides = [tuple(int(stride) for stride in row_major(shape)) for shape in shapes]
    return _Group(places, ends[-1], shapes, strides, [0, *ends[:-1]])


def _contiguous_left(targets: list[torch.Tensor], sources: list[torch.Tensor]) -> tuple[list[Any], list[Any]]:
    """The pairs whose sources are row-major; the others are copied at once."""
    left = []
    for pair in zip(targets, sources, strict=True):
        target, source = pair
        if source.is_contiguous():
            left.append(pair)
        else:
            target.copy_(source)
    return [target for target, _ in left], [source for _, source in left]


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
