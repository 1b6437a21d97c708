"""The schedule of what goes over each row several times, as softmax does: the row is held while it is worked on."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from fairlead.ir import DType, dims
from fairlead_tvm import _tvm as t
from fairlead_tvm._arrays import Strided
from fairlead_tvm._kernel import Kernel
from fairlead_tvm._pointwise import lanes, vectors
from fairlead_tvm._reduce import folded, larger, lowest
from fairlead_tvm._tvm import VECTOR, Buffer, Expr

__all__ = ["Row", "each_row"]


class Row:
    """One row: ``at`` is the index of its first element, without the last dimension."""

    def __init__(self, k: Kernel, at: list[Any], size: Any, dtype: DType) -> None:
        self.k, self.at, self.size, self.dtype = k, at, size, dtype

    def each(self, body: Callable[[Any], None]) -> None:
        """Do something for each element, in vectors."""
        vectors(self.k, (self.size,), lanes(self.dtype), body)

    def held(self, element: Callable[[Any], Expr]) -> Buffer:
        """The row of what a function says of each place."""
        row = self.k.local((self.k.size(self.size),), self.dtype)
        self.each(lambda j: self.k.store(row, element(j), j))
        return row

    def sum(self, element: Callable[[Any], Expr]) -> Expr:
        return self._folded(element, t.const(0, self.dtype), lambda x, y: x + y)

    def largest(self, element: Callable[[Any], Expr]) -> Expr:
        start = t.const(lowest(self.dtype), self.dtype)
        return self._folded(element, start, lambda x, y: larger(x, y, self.dtype))

    def _folded(self, element: Callable[[Any], Expr], start: Expr, combine: Callable[[Expr, Expr], Expr]) -> Expr:
        """Several vectors of partial results, so that none waits for the one before."""
        k, size = self.k, self.k.size(self.size)
        width = lanes(self.dtype)
        if not isinstance(size, int) or size >= 4 * width:
            width *= 4
        sums = k.local((width,), self.dtype)
        with k.loop(width, VECTOR) as i:
            k.store(sums, start, i)
        with k.loop(size // width) as o, k.loop(width, VECTOR) as i:
            k.store(sums, combine(sums[i], element(o * width + i)), i)
        with k.loop(size % width) as i:
            at = i if not isinstance(i, int) else t.const(i, DType.i64)
            k.store(sums, combine(sums[at], element(size // width * width + i)), i)
        folded(k, sums, width, combine)
        return k.named(sums[0], self.dtype)


def each_row(k: Kernel, out: Strided, dtype: DType, body: Callable[[Row], None]) -> None:
    """Run ``body`` for each row of the result, in f32 or f64."""
    *lead, last = out.shape
    work = k.size(dims.mul(8, dims.product(out.shape)))
    with contextlib.ExitStack() as loops:
        at = [loops.enter_context(k.shared(k.size(d), work)) for d in lead]
        body(Row(k, at, last, dtype))
