"""Inputs for another call of the same graph: as they lie in memory, with other values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

__all__ = ["copied", "copies", "salted"]

SCALE = 0.8125
"""What floating-point values are multiplied by, exactly: it leaves intervals around zero and positive matrices."""


def copies(inputs: Sequence[Any]) -> list[Any]:
    """The inputs in memory of their own."""
    return [copied(x) if isinstance(x, torch.Tensor) else x for x in inputs]


def copied(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor in memory of its own, with its strides, offset and bits for conjugation and negation."""
    if tensor.is_conj():
        return copied(tensor.conj()).conj()
    if tensor.is_neg():
        return torch._neg_view(copied(torch._neg_view(tensor)))
    memory = torch.as_strided(tensor, (tensor.untyped_storage().nbytes() // tensor.itemsize,), (1,), 0).clone()
    return memory.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())


def salted(inputs: Sequence[Any], accepts: Callable[[Sequence[Any]], bool], salt: int) -> list[Any]:
    """Other inputs of the same layout that the graph ``accepts``, or copies where no such are found.

    Values change places and are scaled, so that they stay within what the graph's ops are defined for.
    """
    return next((other for other in _candidates(inputs, 1 + salt % 7) if accepts(other)), copies(inputs))


def _candidates(inputs: Sequence[Any], shift: int) -> Iterator[list[Any]]:
    for floats, integers, scale in ((shift, shift, SCALE), (shift, 0, SCALE), (shift, 0, 1.0), (0, 0, SCALE)):
        yield [_changed(x, floats, integers, scale) if isinstance(x, torch.Tensor) else x for x in inputs]


def _changed(tensor: torch.Tensor, floats: int, integers: int, scale: float) -> torch.Tensor:
    if tensor.is_conj() or tensor.is_neg():
        return copied(tensor)
    rounds = tensor.is_floating_point() or tensor.is_complex()
    other = copied(tensor)
    shift = floats if rounds else integers
    # A dimension of stride zero has one element in memory; the others are told apart by their addresses.
    own = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in other.stride())
    values = tensor[own].flatten().roll(shift).reshape(tensor[own].shape)
    try:
        other[own] = (values * scale).to(tensor.dtype) if rounds else values
    except RuntimeError:  # elements that share addresses, as in windows
        return other
    return other
