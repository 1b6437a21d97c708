"""Rules of pooling: each window is reduced to one element, for a few vectors of channels at once."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from fairlead.ir import DType, Node, Value, dims
from fairlead.ir.dims import Dim
from fairlead_tvm import _tvm as t
from fairlead_tvm._arrays import Array, Shape, Strided, channels_last
from fairlead_tvm._call import Call
from fairlead_tvm._kernel import Kernel
from fairlead_tvm._numbers import wide
from fairlead_tvm._reduce import larger, lowest
from fairlead_tvm._rules import rule
from fairlead_tvm._tvm import VECTOR, Expr
from fairlead_tvm._views import reshaped
from fairlead_tvm._windows import Windows, channel_blocks, per_dimension

__all__: list[str] = []


@dataclass(frozen=True, slots=True)
class _Span:
    """The elements of a window along one dimension that are none of padding; ``size`` counts padding too."""

    first: Any
    count: Any
    step: int
    size: Any


_Spans: TypeAlias = Callable[[Kernel, list[Any]], list[_Span]]
"""The spans of a window."""


def _sliding(windows: Windows, sizes: Shape, counts: Shape) -> _Spans:
    def spans(k: Kernel, at: list[Any]) -> list[_Span]:
        return [_slid(k, windows, d, i, sizes[d], counts[d]) for d, i in enumerate(at)]

    return spans


def _slid(k: Kernel, windows: Windows, d: int, window: Any, size: Dim, count: Dim) -> _Span:
    reach, stride, padding, step = (
        windows.sizes[d], windows.stride[d], windows.padding[d], windows.dilation[d],
    )  # fmt: skip
    assert isinstance(reach, int), "windows have a size that is known"
    begin, n = window * stride - padding, t.index(k.size(size))
    fits = isinstance(size, int) and isinstance(count, int) and (count - 1) * stride + (reach - 1) * step < size
    if padding == 0 and fits:
        return _Span(begin, reach, step, reach)
    skipped = (t.maximum(t.index(0) - begin, t.index(0)) + (step - 1)) // step
    stop = t.minimum(t.index(reach), (n - begin + (step - 1)) // step)
    whole = t.minimum(t.index(begin) + reach, n + padding) - begin
    first, inside = k.settled(begin + skipped * step), k.settled(stop - skipped)
    return _Span(first, inside, step, whole)


def _adaptive(sizes: Shape, counts: Shape) -> _Spans:
    """As many windows as are asked for, which overlap where they do not divide the elements."""

    def spans(k: Kernel, at: list[Any]) -> list[_Span]:
        found = []
        for i, size, count in zip(at, map(k.size, sizes), map(k.size, counts), strict=True):
            first = k.settled((i * size) // count)
            stop = ((i + 1) * size + (count - 1)) // count
            length = stop - first if isinstance(stop, int) and isinstance(first, int) else k.settled(stop - first)
            found.append(_Span(first, length, 1, length))
        return found

    return spans


@contextlib.contextmanager
def _within(k: Kernel, spans: list[_Span]) -> Iterator[list[Any]]:
    """Loops over the elements of a window: where each lies."""
    with contextlib.ExitStack() as loops:
        yield [span.first + loops.enter_context(k.loop(span.count)) * span.step for span in spans]


def _each_window(
    c: Call, x: Array, counts: Shape, dtype: DType, body: Callable[[Kernel, Strided, list[Any], Any, int], None]
) -> Array:
    """A kernel whose ``body`` writes some channels of a window: it is told the window, the first, and how many."""

    def write(k: Kernel, out: Strided) -> None:
        batch, channels = x.shape[:2]
        work = k.size(dims.product(out.shape))
        with contextlib.ExitStack() as loops:
            at = [loops.enter_context(k.shared(k.size(d), work)) for d in (batch, *counts)]
            for begin, width in channel_blocks(k, channels, x.dtype, 4):
                body(k, out, at, begin, width)

    return c.program.kernel((*x.shape[:2], *counts), dtype, write, channels_last(x.ndim))


def _batched(c: Call, x: Array, rank: int) -> Array:
    x = wide(x)
    x = c.stored(x) if x.products or x.cost else x
    return x if x.ndim == rank + 2 else reshaped(c.program, x, (1, *x.shape))


def _largest(c: Call, x: Array, counts: Shape, spans: _Spans) -> Array:
    def body(k: Kernel, out: Strided, at: list[Any], begin: Any, width: int) -> None:
        n, *window = at
        best = k.local((width,), x.dtype)
        with k.loop(width, VECTOR) as j:
            k.store(best, k.number(lowest(x.dtype), x.dtype), j)
        with _within(k, spans(k, window)) as place, k.loop(width, VECTOR) as j:
            k.store(best, larger(best[t.index(j)], k.element(x, [n, begin + j, *place]), x.dtype), j)
        with k.loop(width, VECTOR) as j:
            k.write(out, [n, begin + j, *window], best[t.index(j)])

    return _each_window(c, x, counts, x.dtype, body)


def _place_of_largest(c: Call, x: Array, counts: Shape, spans: _Spans) -> Array:
    """In the flat plane, the first of equal elements and the last NaN, as in ATen."""
    sizes = x.shape[2:]

    def flat(k: Kernel, place: list[Any]) -> Any:
        found: Any = 0
        for i, size in zip(place, sizes, strict=True):
            found = found * k.size(size) + i
        return t.index(found)

    def body(k: Kernel, out: Strided, at: list[Any], begin: Any, width: int) -> None:
        n, *window = at
        found = spans(k, window)
        best, where = k.local((width,), x.dtype), k.local((width,), DType.i64)
        with k.loop(width, VECTOR) as j:
            k.store(best, k.number(lowest(x.dtype), x.dtype), j)
            k.store(where, flat(k, [span.first for span in found]), j)
        with _within(k, found) as place, k.loop(width, VECTOR) as j:
            value = k.element(x, [n, begin + j, *place])
            better = value > best[t.index(j)]
            better = t.any_of(better, t.ne(value, value)) if x.dtype.is_floating else better
            k.store(where, t.select(better, flat(k, place), where[t.index(j)]), j)
            k.store(best, t.select(better, value, best[t.index(j)]), j)
        with k.loop(width, VECTOR) as j:
            k.write(out, [n, begin + j, *window], where[t.index(j)])

    return _each_window(c, x, counts, DType.i64, body)


def _unpooled(node: Node) -> str | None:
    x = node.args[0]
    assert isinstance(x, Value)
    if 0 in x.tensor.shape:
        return "pooling of nothing"
    return "pooling of integers" if not x.tensor.dtype.is_floating else None


@rule("max_pool2d_with_indices", "max_pool3d_with_indices", unless=_unpooled)
def max_pool(
    c: Call, x: Array, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> tuple[Array | None, ...]:
    rank = 2 if "2d" in c.node.op else 3
    sizes = per_dimension(kernel, rank)
    windows = Windows(
        sizes, per_dimension(stride, rank, sizes), per_dimension(padding, rank), per_dimension(dilation, rank)
    )
    counts = c.shape(0 if c.wants(0) else 1)[-rank:]
    return _both(c, _batched(c, x, rank), counts, _sliding(windows, x.shape[-rank:], counts))


@rule("adaptive_max_pool2d", "adaptive_max_pool3d", unless=_unpooled)
def adaptive_max_pool(c: Call, x: Array, counts: tuple[Dim, ...]) -> tuple[Array | None, ...]:
    return _both(c, _batched(c, x, len(counts)), counts, _adaptive(x.shape[-len(counts) :], counts))


def _both(c: Call, x: Array, counts: Shape, spans: _Spans) -> tuple[Array | None, ...]:
    values = _largest(c, x, counts, spans) if c.wants(0) else None
    places = _place_of_largest(c, x, counts, spans) if c.wants(1) else None
    results = ((i, a) for i, a in ((0, values), (1, places)))
    return tuple(None if a is None else reshaped(c.program, a, c.shape(i)) for i, a in results)


def _average(c: Call, x: Array, counts: Shape, spans: _Spans, share: Callable[[Expr, list[_Span]], Expr]) -> Array:
    """The sum of each window, and what ``share`` makes of it."""

    def body(k: Kernel, out: Strided, at: list[Any], begin: Any, width: int) -> None:
        n, *window = at
        found, sums = spans(k, window), k.local((width,), x.dtype)
        with k.loop(width, VECTOR) as j:
            k.store(sums, k.number(0, x.dtype), j)
        with _within(k, found) as place, k.loop(width, VECTOR) as j:
            k.store(sums, sums[t.index(j)] + k.element(x, [n, begin + j, *place]), j)
        with k.loop(width, VECTOR) as j:
            k.write(out, [n, begin + j, *window], share(sums[t.index(j)], found))

    return reshaped(c.program, _each_window(c, x, counts, x.dtype, body), c.shape())


@rule("avg_pool2d", "avg_pool3d", unless=_unpooled)
def avg_pool(
    c: Call,
    x: Array,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    rank = 2 if "2d" in c.node.op else 3
    sizes = per_dimension(kernel, rank)
    windows = Windows(sizes, per_dimension(stride, rank, sizes), per_dimension(padding, rank), (1,) * rank)
    counts, source = c.shape()[-rank:], _batched(c, x, rank)

    def share(total: Expr, spans: list[_Span]) -> Expr:
        count: Any = 1
        for span in spans:
            count = count * (span.size if count_include_pad else span.count)
        return total / t.cast(t.index(divisor_override or count), source.dtype)

    return _average(c, source, counts, _sliding(windows, x.shape[-rank:], counts), share)


@rule("_adaptive_avg_pool2d", "_adaptive_avg_pool3d", unless=_unpooled)
def adaptive_avg_pool(c: Call, x: Array, counts: tuple[Dim, ...]) -> Array:
    source = _batched(c, x, len(counts))

    def share(total: Expr, spans: list[_Span]) -> Expr:
        """Over one dimension after the other, as in ATen."""
        for span in spans:
            total = total / t.cast(t.index(span.count), source.dtype)
        return total

    return _average(c, source, counts, _adaptive(x.shape[-len(counts) :], counts), share)
