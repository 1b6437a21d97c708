"""What convolutions and pooling share: windows over the last dimensions, and inputs whose channels come last."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fairlead.ir import DType, dims
from fairlead.ir.dims import Dim
from fairlead_tvm import _tvm as t
from fairlead_tvm._arrays import Array, Shape, Strided, channels_last
from fairlead_tvm._kernel import Kernel
from fairlead_tvm._pointwise import lanes, vectors
from fairlead_tvm._program import Program
from fairlead_tvm._tvm import Expr

__all__ = ["Windows", "channel_blocks", "in_order", "padded", "per_dimension"]


def per_dimension(values: Any, rank: int, default: Sequence[Any] = ()) -> tuple[Any, ...]:
    """A number for each dimension of windows; one stands for all, none for the default."""
    given = (values,) if isinstance(values, int) else tuple(values or default)
    return given * rank if len(given) == 1 else given


@dataclass(frozen=True, slots=True)
class Windows:
    """Where windows lie: their ``sizes``, and by dimension how far they, and their elements, are apart."""

    sizes: Shape
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]

    def place(self, window: Sequence[Any], element: Sequence[Any]) -> list[Any]:
        """Where an element of a window lies, counted from the first that is padded."""
        each = zip(window, self.stride, element, self.dilation, strict=True)
        return [w * stride + e * dilation for w, stride, e, dilation in each]


def padded(program: Program, x: Array, padding: Sequence[int]) -> Strided:
    """``x`` as ``[batch, *places, channels]`` with its channels next to each other, and zeros around its places."""
    order = channels_last(x.ndim)
    if not any(padding):
        return _moved(in_order(program, x), order)
    x = program.stored(x) if x.products else x
    batch, channels, *places = x.shape
    wide = tuple(dims.add(size, 2 * p) for size, p in zip(places, padding, strict=True))

    def write(k: Kernel, out: Strided) -> None:
        work = k.size(dims.product(out.shape))
        with contextlib.ExitStack() as loops:
            n, *at = [loops.enter_context(k.shared(k.size(d), work)) for d in (batch, *wide)]
            inside = _inside(k, [i - p for i, p in zip(at, padding, strict=True)], places)

            def copy(j: Any) -> None:
                source = [n, j, *(i - p for i, p in zip(at, padding, strict=True))]
                k.write(out, [n, *at, j], k.element(x, source))

            with k.when(inside):
                vectors(k, (channels,), lanes(x.dtype), copy)
            with k.when(t.negate(inside)):
                vectors(k, (channels,), lanes(x.dtype), lambda j: k.write(out, [n, *at, j], k.number(0, x.dtype)))

    return program.kernel((batch, *wide, channels), x.dtype, write)


def _inside(k: Kernel, at: Sequence[Any], sizes: Sequence[Dim]) -> Expr:
    found = None
    for i, size in zip(at, sizes, strict=True):
        holds = t.all_of(t.index(i) >= t.index(0), t.index(i) < t.index(k.size(size)))
        found = holds if found is None else t.all_of(found, holds)
    return found


def in_order(program: Program, x: Array) -> Strided:
    """The array in memory with its channels next to each other."""
    if isinstance(x, Strided) and (x.strides[1] == 1 or x.shape[1] == 1):
        return x
    if not x.channels_last and not x.products:
        x = _Reordered(x)
    found = program.stored(x)
    return found if found.channels_last or found.shape[1] == 1 else program.stored(_Reordered(found))


class _Reordered(Array):
    """The same elements, computed in the order in which channels come last."""

    __slots__ = ("source",)

    def __init__(self, source: Array) -> None:
        super().__init__(source.shape, source.dtype, source.cost, source.products)
        self.source = source
        self.channels_last = True

    def element(self, k: Kernel, index: Any) -> Expr:
        return k.element(self.source, index)


def _moved(x: Strided, order: tuple[int, ...]) -> Strided:
    strides = tuple(x.strides[d] for d in order)
    return Strided(x.memory, tuple(x.shape[d] for d in order), strides, x.offset)


def channel_blocks(k: Kernel, channels: Dim, dtype: DType, most: int) -> Iterator[tuple[Any, int]]:
    """Channels from the first to the last: where a block begins, within its loop, and how many it has.

    Blocks are of ``most`` vectors, then of one, then of one channel.
    """
    begin: Any = 0
    for width in (most * lanes(dtype), lanes(dtype), 1):
        rest = k.size(channels) - begin
        count = rest // width
        if isinstance(count, int) and count == 0:
            continue
        with k.loop(count) as o:
            yield begin + o * width, width
        begin = begin + count * width
