"""Linear layers of bfloat16 whose weights are kept in 8 or 4 bits, by torch's own kernels for that."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

__all__ = ["Quantized", "quantized"]

_aten = torch.ops.aten

_GROUP = 64
"""How many weights of a row share a factor and an offset in 4 bits."""


class Quantized(NamedTuple):
    """The op that multiplies by what was quantized, and its arguments beyond the first."""

    op: Any
    arguments: tuple[Any, ...]


def quantized(weight: torch.Tensor, bits: str) -> Quantized | None:
    """A weight of N rows and K columns in fewer bits; None where torch has no kernel for its size, or its numbers."""
    if weight.dtype is not torch.bfloat16 or not bool(weight.isfinite().all()):
        return None
    return _int8(weight) if bits == "int8" else _int4(weight)


def _int8(weight: torch.Tensor) -> Quantized:
    """One factor a row, so that its largest number is 127."""
    wide = weight.float()
    factors = (wide.abs().amax(1) / 127).to(weight.dtype)
    factors = torch.where(factors == 0, torch.ones_like(factors), factors)
    numbers = (wide / factors.float().unsqueeze(1)).round().clamp(-127, 127).to(torch.int8)
    return Quantized(_aten._weight_int8pack_mm.default, (numbers, factors))


def _int4(weight: torch.Tensor) -> Quantized | None:
    """Sixteen steps between the least and the largest number of each group."""
    rows, columns = weight.shape
    if rows % 16 or columns % _GROUP:
        return None
    groups = weight.float().reshape(rows, columns // _GROUP, _GROUP)
    least, largest = groups.amin(-1), groups.amax(-1)
    steps = ((largest - least) / 15).clamp(min=1e-6)
    numbers = ((groups - least.unsqueeze(-1)) / steps.unsqueeze(-1)).round().clamp(0, 15)
    packed = _aten._convert_weight_to_int4pack_for_cpu.default(numbers.to(torch.int32).reshape(rows, columns), 1)
    scales = torch.stack([steps, least + 8 * steps], -1).transpose(0, 1).contiguous().to(weight.dtype)
    return Quantized(_aten._weight_int4pack_mm_for_cpu.default, (packed, _GROUP, scales))
