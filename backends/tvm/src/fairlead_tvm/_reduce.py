"""The schedule of reductions: a vector of accumulators along the narrowest dimension, whether it is kept or not."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any

from fairlead.ir import DType, dims
from fairlead_tvm import _tvm as t
from fairlead_tvm._arrays import Array, Strided, channels_last
from fairlead_tvm._kernel import Kernel
from fairlead_tvm._pointwise import lanes
from fairlead_tvm._program import Program
from fairlead_tvm._tvm import VECTOR, Buffer, Expr
from fairlead_tvm._views import permuted

__all__ = ["lowest", "highest", "larger", "reduced", "smaller"]


def lowest(dtype: DType) -> Any:
    """The least number of an element type."""
    if dtype.is_floating:
        return -math.inf
    return -(1 << (8 * dtype.itemsize - 1)) if dtype.value[0] == "i" else 0


def highest(dtype: DType) -> Any:
    """The largest number of an element type."""
    if dtype.is_floating:
        return math.inf
    if dtype is DType.bool:
        return 1
    return (1 << (8 * dtype.itemsize - (dtype.value[0] == "i"))) - 1


def larger(x: Expr, y: Expr, dtype: DType) -> Expr:
    """The larger one, a NaN of either."""
    if dtype.is_floating:
        return t.select(t.any_of(x > y, t.ne(x, x)), x, y)
    return t.any_of(x, y) if dtype is DType.bool else t.maximum(x, y)


def smaller(x: Expr, y: Expr, dtype: DType) -> Expr:
    """The smaller one, a NaN of either."""
    if dtype.is_floating:
        return t.select(t.any_of(x < y, t.ne(x, x)), x, y)
    return t.all_of(x, y) if dtype is DType.bool else t.minimum(x, y)


_KINDS: dict[str, tuple[Callable[[DType], Any], Callable[[Expr, Expr, DType], Expr]]] = {
    "sum": (lambda _: 0, lambda x, y, _: x + y),
    "prod": (lambda _: 1, lambda x, y, _: x * y),
    "max": (lowest, larger),
    "min": (highest, smaller),
    "all": (lambda _: True, lambda x, y, _: t.all_of(x, y)),
    "any": (lambda _: False, lambda x, y, _: t.any_of(x, y)),
}


def reduced(program: Program, array: Array, over: tuple[int, ...] | None, kind: str) -> Strided:
    """The dimensions ``over``, all where it is None, reduced to one element each, which they keep."""
    if array.products:
        array = program.stored(array)
    axes = tuple(range(array.ndim)) if over is None else over
    if array.channels_last and len(axes) < array.ndim:
        return _along_channels(program, array, axes, kind)
    shape = tuple(1 if d in axes else size for d, size in enumerate(array.shape))
    return program.kernel(shape, array.dtype, lambda k, out: _Reduction(k, out, array, axes, kind).write())


def _along_channels(program: Program, array: Array, over: tuple[int, ...], kind: str) -> Strided:
    """The same of an array whose channels come last: its dimensions in the order in which they lie."""
    order = channels_last(array.ndim)
    axes = tuple(order.index(d) for d in over)
    found = reduced(program, permuted(program, array, order), axes, kind)
    lying = permuted(program, found, tuple(order.index(d) for d in range(array.ndim)))
    assert isinstance(lying, Strided), "what lies in memory does so in any order of its dimensions"
    return lying


class _Reduction:
    """One reduction while it is written."""

    def __init__(self, k: Kernel, out: Strided, array: Array, over: tuple[int, ...], kind: str) -> None:
        self.k, self.out, self.array, self.over = k, out, array, over
        start, combine = _KINDS[kind]
        self.start = k.number(start(array.dtype), array.dtype)
        self.combine: Callable[[Expr, Expr], Expr] = lambda x, y: combine(x, y, array.dtype)
        self.width = lanes(array.dtype)
        self.last = array.ndim - 1

    def write(self) -> None:
        k, shape = self.k, self.array.shape
        kept = [d for d in range(len(shape)) if d not in self.over]
        work = k.size(dims.product(shape))
        if self.last in self.over or not kept:
            with contextlib.ExitStack() as loops:
                self._to_one({d: loops.enter_context(k.shared(k.size(shape[d]), work)) for d in kept})
            return
        with contextlib.ExitStack() as loops:
            at = {d: loops.enter_context(k.shared(k.size(shape[d]), work)) for d in kept[:-1]}
            self._to_vectors(at, k.size(shape[self.last]), work)

    def _to_vectors(self, at: dict[int, Any], count: Expr | int, work: Expr | int) -> None:
        """The last dimension is kept: as many sums at once as a few vectors hold."""
        width = 4 * self.width if isinstance(count, int) and count >= 4 * self.width else self.width
        with self.k.shared(count // width, work) as o:
            self._vector(at, lambda i: o * width + i, width)
        rest, done = count % width, count // width * width
        if isinstance(count, int):
            if rest:
                self._vector(at, lambda i: i + done, rest)
            return
        with self.k.loop(rest) as i:
            self._vector(at, lambda _: i + done, 1)

    def _vector(self, at: dict[int, Any], place: Callable[[Any], Any], width: int) -> None:
        k, sums = self.k, self._accumulators(width)
        with self._reducing(at) as inner, k.loop(width, VECTOR) as i:
            index = inner | {self.last: place(i)}
            k.store(sums, self.combine(sums[i], self._element(index)), i)
        with k.loop(width, VECTOR) as i:
            k.write(self.out, self._place(at | {self.last: place(i)}), sums[i])

    def _to_one(self, at: dict[int, Any]) -> None:
        """The last dimension is reduced: each lane sums up every so many elements."""
        k, width = self.k, self.width
        count = k.size(self.array.shape[self.last]) if self.array.ndim else 1
        sums = self._accumulators(width)
        with self._reducing(at, but_last=True) as outer:
            with k.loop(count // width) as o, k.loop(width, VECTOR) as i:
                k.store(sums, self.combine(sums[i], self._element(outer | {self.last: o * width + i})), i)
            with k.loop(count % width) as i:
                k.store(sums, self.combine(sums[i], self._element(outer | {self.last: count // width * width + i})), i)
        folded(k, sums, width, self.combine)
        k.write(self.out, self._place(at), sums[0])

    def _accumulators(self, width: int) -> Buffer:
        sums = self.k.local((width,), self.array.dtype)
        with self.k.loop(width, VECTOR) as i:
            self.k.store(sums, self.start, i)
        return sums

    @contextlib.contextmanager
    def _reducing(self, at: dict[int, Any], *, but_last: bool = False) -> Any:
        inner = [d for d in self.over if not (but_last and d == self.last)]
        with contextlib.ExitStack() as loops:
            yield at | {d: loops.enter_context(self.k.loop(self.k.size(self.array.shape[d]))) for d in inner}

    def _element(self, at: dict[int, Any]) -> Expr:
        return self.k.element(self.array, [at[d] for d in range(self.array.ndim)])

    def _place(self, at: dict[int, Any]) -> list[Any]:
        return [0 if d in self.over else at[d] for d in range(self.array.ndim)]


def folded(k: Kernel, sums: Buffer, width: int, combine: Callable[[Expr, Expr], Expr]) -> None:
    """Combine a vector of accumulators, a power of two, into its first."""
    while width > 1:
        width //= 2
        with k.loop(width, VECTOR) as i:
            k.store(sums, combine(sums[i], sums[i + width]), i)
