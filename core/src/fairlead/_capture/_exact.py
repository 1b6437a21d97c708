"""Decompositions of our own where torch's has other results than the kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

__all__ = ["EXACT"]

_HALVES = torch.float16, torch.bfloat16


def _ldexp(x: Tensor, exponent: Tensor) -> Tensor:
    """``x`` times 2 to the power of ``exponent``, rounded once where that is an integer, as by C's function.

    The power of an integer alone may be out of range where the result is not: it comes in three factors that are not,
    the last of which is the one that rounds. Torch's decomposition has one, and float32 for an integer times a half.
    """
    if not x.is_floating_point() or exponent.is_floating_point() or exponent.is_complex():
        return x * torch.pow(2.0, exponent)
    dtype = torch.result_type(x, exponent)
    wide = torch.float32 if dtype in _HALVES else dtype
    most = 1022 if wide is torch.float64 else 126
    left = exponent.to(torch.int64).clamp(-3 * most, 3 * most)
    last = left.clamp(-most, most)
    left = left - last
    middle = left.clamp(-most, most)
    found = x.to(wide)
    for power in (left - middle, middle, last):
        found = found * torch.pow(2.0, power.to(wide))
    return found.to(dtype)


EXACT: dict[Any, Callable[..., Any]] = {torch.ops.aten.ldexp.Tensor: _ldexp}
"""What AOTAutograd traces in place of each op."""
