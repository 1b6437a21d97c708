"""Where a NaN that is transformed may come out: anywhere along the lines that it is in.

The definition of a Fourier transform multiplies every element of a line by a root of unity, and a NaN by any number
is a NaN. An algorithm that leaves out factors of 0 and 1 has fewer of them, and torch does not say which it takes:
its own, on a CPU, changes with the library that it is built with, and with the length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from fairlead.interpret import to_fx
from fairlead.ir import Graph

__all__ = ["Lines"]

_TRANSFORMS = frozenset({"aten._fft_c2c.default", "aten._fft_c2r.default", "aten._fft_r2c.default"})


class Lines:
    """A graph with whole lines of NaN in place of one."""

    def __init__(self, graph: Graph) -> None:
        transforms = any(node.op in _TRANSFORMS for node in graph.walk())
        self._spread = _Spread(to_fx(graph)) if transforms else None

    def right(self, inputs: Sequence[Any], got: Sequence[torch.Tensor]) -> Mapping[int, torch.Tensor]:
        """By output, which elements of ``got`` are a NaN that a transform may make."""
        if self._spread is None:
            return {}
        with torch.no_grad():
            spread = self._spread.run(*inputs)
        return {i: result.isnan() & other.isnan() for i, (result, other) in enumerate(zip(got, spread, strict=True))}


class _Spread(torch.fx.Interpreter):
    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if str(target) in _TRANSFORMS:
            x, dims, *rest = args
            args = (_filled(x, dims), dims, *rest)
        return super().call_function(target, args, kwargs)


def _filled(x: torch.Tensor, dims: Sequence[int]) -> torch.Tensor:
    """NaN along all lines with one; the parts of a complex number are one element."""
    reached = x.isnan()
    for dim in dims:
        reached = reached.any(dim, keepdim=True)
    nan = complex(torch.nan, torch.nan) if x.is_complex() else torch.nan
    return torch.where(reached, torch.full((), nan, dtype=x.dtype), x)
