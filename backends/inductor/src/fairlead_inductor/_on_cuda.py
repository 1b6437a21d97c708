"""Ops of which Inductor generates code for CUDA that is not exact or does not compile, in terms of others.

What is on another device is left as it is. Triton adds no integers of 8 or 16 bits to memory, and rounds a sum of
halves at each addend, where torch adds up in float32. Its floor, ceil and fmod take denormal numbers for zero. Its
Bessel functions of infinity are infinity, where torch has NaN. A number beyond 16 bits it converts to the nearest
integer of 16 bits, where torch has the last 16 bits of that of 32. What it draws with a probability is bool, where
torch has the dtype of the operand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

__all__ = ["EXACT_ON_CUDA", "fmod"]

_aten = torch.ops.aten

_INTEGERS = {torch.uint8: torch.int32, torch.int8: torch.int32, torch.int16: torch.int32}
_HALVES = {torch.float16: torch.float32, torch.bfloat16: torch.float32}

_Op = Callable[..., torch.Tensor]


def _adding(
    op: _Op, source: int, adds: Callable[[Sequence[Any], Mapping[str, Any]], object], widths: Mapping[Any, torch.dtype]
) -> _Op:
    """``op``, which where it ``adds`` does so in the dtype that ``widths`` has for that of its operands.

    What it adds is at ``source`` among its further arguments. The last bits of a sum of integers are the same in any
    width.
    """

    def run(x: torch.Tensor, *args: Any, **how: Any) -> torch.Tensor:
        if x.device.type != "cuda" or x.dtype not in widths or not adds(args, how):
            return op(x, *args, **how)
        wide, given = widths[x.dtype], args[source]
        added = given.to(wide) if isinstance(given, torch.Tensor) else given
        return op(x.to(wide), *args[:source], added, *args[source + 1 :], **how).to(x.dtype)

    return run


def _is_accumulated(args: Sequence[Any], how: Mapping[str, Any]) -> object:
    return len(args) > 2 and args[2]


def _index_reduce(
    x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, reduce: str, *, include_self: bool = True
) -> torch.Tensor:
    """Means as torch computes them; Inductor's own are filled in place, which it cannot where it is not row-major."""
    atomic = x.dtype in _INTEGERS or x.dtype is torch.int32 or x.dtype.is_floating_point
    if reduce != "mean" or x.device.type != "cuda" or not atomic:
        reduced: torch.Tensor = _aten.index_reduce.default(x, dim, index, source, reduce, include_self=include_self)
        return reduced
    if not x.dim():
        return _index_reduce(x[None], 0, index, source.reshape(1), reduce, include_self=include_self)[0]
    wide = {**_INTEGERS, **_HALVES}.get(x.dtype, x.dtype)
    places = [None] * (dim % x.dim()) + [index]
    start = x.to(wide)
    if not include_self:
        start = _aten.index_put.default(start, places, start.new_zeros(()))
    total = _aten.index_put.default(start, places, source.to(wide), True).to(x.dtype)
    counts = start.new_full(x.shape, int(include_self))
    counts = _aten.index_put.default(counts, places, start.new_ones(()), True).to(x.dtype)
    if not include_self:
        counts = counts.clamp(min=1)
    return total / counts if x.dtype.is_floating_point else torch.div(total, counts, rounding_mode="floor")


def _flushes(x: torch.Tensor) -> bool:
    """Whether Triton takes denormal numbers among these for zero where it calls a function of CUDA's library."""
    return x.device.type == "cuda" and x.dtype in (torch.float32, torch.float16, torch.bfloat16)


def _floor(x: torch.Tensor) -> torch.Tensor:
    return torch.where((x < 0) & (x > -1), -1.0, torch.floor(x)) if _flushes(x) else torch.floor(x)


def _ceil(x: torch.Tensor) -> torch.Tensor:
    return torch.where((x > 0) & (x < 1), 1.0, torch.ceil(x)) if _flushes(x) else torch.ceil(x)


def fmod(x: torch.Tensor, y: torch.Tensor | float) -> torch.Tensor:
    """The remainder with the sign of ``x``; that of float32 on CUDA through float64, which is exact."""
    dtype = torch.result_type(x, y)
    if not _flushes(x) or not dtype.is_floating_point or dtype is torch.float64:
        plain: torch.Tensor = _aten.fmod(x, y)
        return plain
    divisor = y if isinstance(y, torch.Tensor) else x.new_full((), y, dtype=torch.float32)
    return torch.fmod(x.double(), divisor.double()).to(dtype)


def _bernoulli(x: torch.Tensor, *args: Any, **how: Any) -> torch.Tensor:
    drawn: torch.Tensor = _aten.bernoulli.p(x, *args, **how)
    return drawn.to(x.dtype)


def _nan_at_infinity(op: _Op) -> _Op:
    def run(x: torch.Tensor) -> torch.Tensor:
        if x.device.type != "cuda" or not x.is_floating_point():
            return op(x)
        return torch.where(x.isinf(), torch.nan, op(x))

    return run


def _sums(args: Sequence[Any], how: Mapping[str, Any]) -> object:
    return len(args) > 3 and args[3] == "sum"


EXACT_ON_CUDA: dict[Any, _Op] = {
    _aten.index_put.default: _adding(_aten.index_put.default, 1, _is_accumulated, {**_INTEGERS, **_HALVES}),
    _aten.put.default: _adding(_aten.put.default, 1, _is_accumulated, _INTEGERS),
    _aten.scatter_add.default: _adding(_aten.scatter_add.default, 2, lambda args, how: True, _INTEGERS),
    _aten.scatter_reduce.two: _adding(_aten.scatter_reduce.two, 2, _sums, _INTEGERS),
    **{
        op: _adding(op, 2, lambda args, how: how.get("reduce") == "add", _INTEGERS)
        for op in (_aten.scatter.reduce, _aten.scatter.value_reduce)
    },
    _aten.index_reduce.default: _index_reduce,
    _aten.bernoulli.p: _bernoulli,
    _aten.floor.default: _floor,
    _aten.ceil.default: _ceil,
    _aten.fmod.Tensor: fmod,
    _aten.fmod: fmod,
    _aten.i0.default: _nan_at_infinity(_aten.i0.default),
    _aten.special_i1.default: _nan_at_infinity(_aten.special_i1.default),
}
"""An op as a whole where an operand is a number."""
