"""What a result is besides its values: its structure, dtype, shape, strides, and whose memory it shares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from fairlead_conformance._observation import Failed
from fairlead_conformance._status import Status

__all__ = ["same_layout", "same_memory", "same_structure", "tensors"]


def tensors(items: Any) -> list[torch.Tensor]:
    """The tensors in nested containers and objects that torch knows how to flatten, in order."""
    return [leaf for leaf in pytree.tree_leaves(items) if isinstance(leaf, torch.Tensor)]


def same_structure(got: Any, eager: Any) -> None:
    """Raise `Failed` unless containers, keys, None and plain values are eager's."""
    (ours, mine), (theirs, wanted) = pytree.tree_flatten(got), pytree.tree_flatten(eager)
    if type(got) is not type(eager) or mine != wanted:
        raise Failed(Status.FAIL_SHAPE, "results", f"the result is {type(got).__name__} {mine}, not {wanted}")
    for a, b in zip(ours, theirs, strict=True):
        if type(a) is not type(b) or not (isinstance(a, torch.Tensor) or _equal(a, b)):
            raise Failed(Status.FAIL_MISMATCH, "values", f"{a!r:.60} in a result, not {b!r:.60}")


def _equal(a: Any, b: Any) -> bool:
    return math.isclose(a, b, rel_tol=1e-4) if isinstance(a, float) else bool(a == b)


def same_layout(got: torch.Tensor, eager: torch.Tensor, what: str) -> None:
    """Raise `Failed` unless dtype, device, shape, strides and flags are eager's."""
    if got.dtype != eager.dtype:
        raise Failed(Status.FAIL_DTYPE, "dtype", f"{what} is {got.dtype}, not {eager.dtype}")
    if got.shape != eager.shape or got.device != eager.device:
        raise Failed(Status.FAIL_SHAPE, "shape", f"{what} is {list(got.shape)}, not {list(eager.shape)}")
    if _strides(got) != _strides(eager):
        raise Failed(Status.FAIL_STRIDE, "strides", f"{what} has strides {got.stride()}, not {eager.stride()}")
    if got.requires_grad != eager.requires_grad:
        raise Failed(Status.FAIL_GRAD, "requires-grad", f"{what} has requires_grad={got.requires_grad}")
    if got.is_inference() != eager.is_inference():
        raise Failed(Status.FAIL_STATE, "inference-tensor", f"{what} has is_inference()={got.is_inference()}")


def same_memory(got: Sequence[torch.Tensor], eager: Sequence[torch.Tensor], given: int) -> None:
    """Raise `Failed` unless the same tensors share memory, and the same are one object.

    Both lists begin with the ``given`` tensors that were passed; results follow.
    """
    for index in range(given, len(got)):
        for other in range(index):
            mine, theirs = _shared(got[index], got[other]), _shared(eager[index], eager[other])
            if mine != theirs:
                detail = f"{_word(index, given)} {mine} {_word(other, given)}; in eager it {theirs} it"
                raise Failed(Status.FAIL_ALIAS, "aliases", detail)


def _shared(a: torch.Tensor, b: torch.Tensor) -> str:
    if a is b:
        return "is"
    if not a.numel() or not b.numel():
        return "shares nothing with"
    same = a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
    return "shares memory with" if same else "shares nothing with"


def _word(index: int, given: int) -> str:
    return f"input tensor {index}" if index < given else f"result tensor {index - given}"


def _strides(tensor: torch.Tensor) -> tuple[int, ...]:
    """The strides that matter: those of dimensions with more than one entry, where there is any entry."""
    if not tensor.numel():
        return ()
    return tuple(step for step, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1)
