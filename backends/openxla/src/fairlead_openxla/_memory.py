"""Tensors on the CPU as arrays and back, through DLPack, without a copy where XLA can read them as they lie."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import jax
import torch
from torch.utils import dlpack

from fairlead_openxla._devices import jax_device
from fairlead_openxla._numbers import Array
from fairlead_openxla._releases import direct_exporter, direct_importer

__all__ = ["by_the_public_way", "exported", "imported", "plain", "to_capsule"]

to_capsule: Any = dlpack.to_dlpack  # type: ignore[attr-defined]  # public, and not in its module's list

_CPU = (1, 0)
"""``kDLCPU``, and its only device."""


class _Memory:
    """A tensor as DLPack has it. The tensor's own protocol asks at each call whether it is pinned."""

    __slots__ = ("_tensor",)

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor

    def __dlpack__(self, **_: Any) -> Any:
        return to_capsule(self._tensor)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CPU


def _importer() -> Callable[[torch.Tensor], Array]:
    """By a private function where it does what the public one does, without the fifty microseconds before it.

    Tried once on a tensor: what it does is not promised.
    """
    direct, device = direct_importer(), jax_device(torch.device("cpu"))

    def quick(tensor: torch.Tensor) -> Array:
        assert direct is not None
        return direct(to_capsule(tensor), device, None)

    try:
        sample = quick(torch.tensor([1, 2**40], dtype=torch.int64, device="cpu"))
        works = isinstance(sample, jax.Array) and sample.tolist() == [1, 2**40]
    except Exception:  # it may have become another function
        works = False
    return quick if works else by_the_public_way


def by_the_public_way(tensor: torch.Tensor) -> Array:
    """A contiguous tensor as an array, by what jax promises."""
    return jax.dlpack.from_dlpack(_Memory(tensor))


_IMPORT = _importer()


def imported(tensor: torch.Tensor) -> Array:
    """A tensor as an array over its memory, or over a copy: of strides, and of addresses that are not aligned."""
    return _IMPORT(plain(tensor))


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor that is contiguous and nothing else; a copy where it was not."""
    if tensor.dtype.is_complex:
        tensor = tensor.resolve_conj()
    return _row_major(tensor.resolve_neg().contiguous())


def _row_major(tensor: torch.Tensor) -> torch.Tensor:
    """A contiguous tensor with the strides of its shape: torch leaves any to a dimension of one, by which XLA goes."""
    if 1 not in tensor.shape:
        return tensor
    steps = itertools.accumulate(reversed(tensor.shape[1:]), operator.mul, initial=1)
    return tensor.as_strided(tensor.shape, tuple(steps)[::-1])


def _exporter() -> Callable[[Array], Any]:
    """What makes a capsule: the array's own method spends twenty microseconds on where it lies. Tried once as well."""
    direct = direct_exporter()

    def public(array: Array) -> Any:
        return array.__dlpack__()

    def quick(array: Array) -> Any:
        assert direct is not None
        return direct(array, None)

    try:
        sample = dlpack.from_dlpack(quick(_IMPORT(torch.tensor([1.5, 2.5], device="cpu"))))
        works = sample.tolist() == [1.5, 2.5]
    except Exception:  # it may have become another function
        works = False
    return quick if works else public


_EXPORT = _exporter()


def exported(array: Array) -> torch.Tensor:
    """An array that has been computed as a tensor that owns its memory."""
    found: torch.Tensor = dlpack.from_dlpack(_EXPORT(array))
    return found
