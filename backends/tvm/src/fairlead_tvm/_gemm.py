"""The template of matrix products: a tile of accumulators in registers, and the right factor in panels.

A tile is as many rows of two vectors as there are registers for. It reads one element of each row of the left factor
and one row of a panel at a time; what follows the product element by element is done while the tile is at hand.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any

from fairlead.ir import DType, dims
from fairlead.ir.dims import Dim
from fairlead_tvm import _tvm as t
from fairlead_tvm._arrays import Array, Computed, Index, Shape, Strided
from fairlead_tvm._kernel import Kernel
from fairlead_tvm._layouts import panel_width
from fairlead_tvm._pointwise import unflattened
from fairlead_tvm._program import Program
from fairlead_tvm._schedule import DEFAULT, Schedule, most_rows
from fairlead_tvm._tvm import SERIAL, UNROLLED, VECTOR, Buffer, Expr

__all__ = ["Product", "Tile", "row_tile"]

_CHEAP = 4
_OFTEN = 6
"""From how many panels on the left factor is copied, where its rows share lines of the first cache."""
_SHARED = 1024
_BESIDE = 4
"""Panels of a tile that has few rows."""


def row_tile(rows: Dim, wanted: int = 0) -> int:
    """How many rows a tile has: those that are wanted, or as many as registers hold and leave few over."""
    most = wanted or most_rows()
    if not isinstance(rows, int):
        return most
    if rows <= most:
        return max(rows, 1)
    if wanted:
        return wanted
    return max(range(most // 2, most + 1), key=lambda m: (m if rows % m == 0 else rows % m / 2, m))


class Product:
    """``a @ b`` where ``a`` is ``[..., rows, inner]``; ``b`` is ``[..., inner, columns]``, or panels of a weight.

    With panels ``a`` is a matrix, whatever the shape of the product is.

    The product is computed once it is known what follows it: `array` stands for it until then.
    """

    def __init__(
        self, a: Strided, b: Strided, shape: Shape, dtype: DType, *, panels: bool, schedule: Schedule = DEFAULT
    ) -> None:
        self._a, self._b, self._shape, self._panels = a, b, shape, panels
        self._schedule = schedule
        self._dtype = dtype
        self._inner = a.shape[-1]
        self.array: Array = Computed(shape, dtype, self._element, 1, frozenset([self]))

    def _element(self, k: Kernel, index: Index) -> Expr:
        return k.products[id(self)](index)

    def emit(self, program: Program, result: Array) -> Strided:
        """Compute ``result``, whose elements are functions of those of the product at the same index."""
        *lead, columns = self._shape
        batch: Shape = () if self._panels else tuple(lead[:-1])
        rows = dims.product(lead) if self._panels else lead[-1]

        def write(k: Kernel, out: Strided) -> None:
            work = k.size(dims.product((*batch, rows, columns, self._inner))) if self._schedule.spread else 0
            with contextlib.ExitStack() as loops:
                at = [loops.enter_context(k.shared(k.size(d), work)) for d in batch]
                panel = self._panel(k, at, columns, work)
                row = self._row(k, at, tuple(lead))
                tile = Tile(k, rows, columns, (self._inner,), self._dtype, panel[0], self._schedule)
                tile.write(
                    left=lambda i, kk: k.element(self._a, [*at, i, *kk]),
                    right=panel[1],
                    row=row,
                    done=lambda place, j, value: self._finish(k, out, result, [*place, j], value),
                    cheap=result.cost <= _CHEAP,
                    work=work,
                )

        return program.kernel(result.shape, result.dtype, write)

    def _row(self, k: Kernel, at: list[Any], lead: Shape) -> Callable[[Any], list[Any]]:
        """The index of a row of the product, which is worked out once for the row."""
        if not self._panels:
            return lambda i: [*at, i]
        if all(isinstance(d, int) for d in lead):
            return lambda i: unflattened(k, i, lead)
        return lambda i: [k.settled(place) for place in unflattened(k, k.settled(i), lead)]

    def _finish(self, k: Kernel, out: Strided, result: Array, index: list[Any], value: Expr) -> None:
        k.products[id(self)] = lambda _: value
        k.write(out, index, k.element(result, index))

    def _panel(
        self, k: Kernel, at: list[Any], columns: Dim, work: Any
    ) -> tuple[int, Callable[[Any, list[Any], Any], Expr]]:
        """The width of panels, and their element of panel, row and lane; packed here where ``b`` is no weight."""
        if self._panels:
            return panel_width(), lambda jo, kk, j: k.element(self._b, [jo, *kk, j])
        width = panel_width() * 4 // max(self._dtype.itemsize, 4)
        if isinstance(columns, int):
            width = min(width, max(8, 1 << math.ceil(math.log2(max(columns, 1)))))
        packed = pack(k, self._b, at, width, work)
        return width, lambda jo, kk, j: packed[jo, kk[0], j]


def pack(k: Kernel, b: Strided, at: list[Any], width: int, work: Any) -> Buffer:
    """``b[at]`` as panels: ``[columns // width, inner, width]``; what is beyond the last column repeats it."""
    inner, columns = k.size(b.shape[-2]), k.size(b.shape[-1])
    count = (columns + (width - 1)) // width
    packed = k.local((count, inner, width), b.dtype)
    along = b.strides[-1] == 1
    whole = isinstance(columns, int) and columns % width == 0

    def read(jo: Any, kk: Any, j: Any, *, clamped: bool) -> Expr:
        place = jo * width + j
        if clamped:
            place = t.minimum(t.index(place), t.index(columns - 1))
        return k.element(b, [*at, kk, place])

    def copy(jo: Any, *, clamped: bool) -> None:
        if along and not clamped:
            with k.loop(inner) as kk, k.loop(width, VECTOR) as j:
                k.store(packed, read(jo, kk, j, clamped=False), jo, kk, j)
            return
        with k.loop(width) as j, k.loop(inner) as kk:
            k.store(packed, read(jo, kk, j, clamped=clamped), jo, kk, j)

    with k.shared(columns // width, work) as jo:
        copy(jo, clamped=False)
    if not whole:
        with k.when(t.index(columns % width) > t.index(0)):
            copy(columns // width, clamped=True)
    return packed


class Tile:
    """The loops of one product: blocks of rows, panels, tiles of rows, and the inner dimensions, mostly one.

    ``rows`` may be computed within the kernel; then nothing is copied, and the inner dimension is not cut.
    """

    def __init__(
        self, k: Kernel, rows: Dim | Expr, columns: Dim, inner: Shape, dtype: DType, width: int, schedule: Schedule
    ) -> None:
        self.k, self.width, self.dtype = k, width, dtype
        self.rows, self.columns = k.size(rows) if isinstance(rows, int | str) else rows, columns
        self.outer, self.inner = inner[:-1], k.size(inner[-1])
        self._schedule = schedule
        self.tile = row_tile(rows if isinstance(rows, int) else "rows", schedule.rows)

    def write(
        self,
        left: Callable[[Any, list[Any]], Expr],
        right: Callable[[Any, list[Any], Any], Expr],
        row: Callable[[Any], list[Any]],
        done: Callable[[list[Any], Any, Expr], None],
        *,
        cheap: bool,
        work: Any,
        start: Callable[[Any], Expr] | None = None,
    ) -> None:
        """``left`` and ``right`` read the factors; ``done`` takes an element with its column and what ``row`` is.

        ``left`` is given a row, or what ``start`` says of it, which is worked out once for a tile.
        """
        self._left, self._right, self._row, self._done, self._is_cheap = left, right, row, done, cheap
        self._start = start
        k, rows, columns = self.k, self.rows, self.k.size(self.columns)
        self._panels = (columns + (self.width - 1)) // self.width
        self._held = self._packed = None
        blocks, self._depth = self._blocks()
        if self._is_copied(rows, blocks):
            self._packed = k.local((rows // self.tile + 1, self._depth, self.tile), self.dtype)
        if blocks > 1:
            self._held = k.local((rows // self.tile + 1, self._panels, self.tile, self.width), self.dtype)
            with k.loop(blocks - 1) as self._block:
                self._sweep(rows, work, is_last=False)
        self._block = blocks - 1
        self._sweep(rows, work, is_last=True)

    def _is_copied(self, rows: Any, blocks: int) -> bool:
        """Whether the left factor is copied tile by tile."""
        known = isinstance(self.inner, int) and isinstance(self._panels, int)
        if not known or (isinstance(rows, int) and rows == 1) or self.outer or self._schedule.copy == "never":
            return False
        shares = self._panels >= _OFTEN and (blocks > 1 or self.inner % _SHARED == 0)
        return shares or self._schedule.copy == "always"

    def _blocks(self) -> tuple[int, Any]:
        """Into how many parts the inner dimension is cut, so that what is read again stays in the caches."""
        if self.outer or not isinstance(self.inner, int):
            return 1, self.inner
        least = max(-(-self.inner // self._schedule.depth), 1)
        found = next((n for n in range(least, 2 * least + 1) if self.inner % n == 0), 1)
        return found, self.inner // found

    def _sweep(self, rows: Any, work: Any, *, is_last: bool) -> None:
        """Every tile, over one part of the inner dimension."""
        k, panels, self._is_last = self.k, self._panels, is_last
        self._pack(rows, work)
        tiles = rows // self.tile
        group = max(self._schedule.block // self.tile, 1)
        group = min(group, tiles) if isinstance(tiles, int) else group
        if isinstance(tiles, int) and tiles and tiles % group:
            group = next(g for g in range(group, 0, -1) if tiles % g == 0)
        blocks, left_over = (tiles // group, 0) if group else (0, 0)
        if not isinstance(tiles, int):
            left_over = tiles % group
        beside = self._beside(self.tile)
        with k.shared(blocks * (panels // beside), work) as task:
            block, jo = task // (panels // beside), task % (panels // beside)
            with k.loop(group) as i:
                self._tile(block * group + i, jo * beside, self.tile, beside)
        if not isinstance(left_over, int):
            with k.shared(panels, work) as jo, k.loop(left_over) as i:
                self._tile(blocks * group + i, jo, self.tile)
        rest = rows % self.tile
        if isinstance(rest, int) and rest == 0:
            return
        beside = self._beside(rest) if isinstance(rest, int) else 1
        with k.shared(panels // beside, work) as jo:
            if isinstance(rest, int):
                self._tile(tiles, jo * beside, rest, beside)
            else:
                with k.when(rest > t.index(0)):
                    self._tile(tiles, jo, self.tile, last=rows)

    def _beside(self, rows: int) -> int:
        """How many panels a tile takes at once: one or two rows leave registers free, and additions wait in line."""
        if not isinstance(self._panels, int):
            return 1
        most = min(self._schedule.panels or (_BESIDE if rows <= 2 else 1), most_rows() // rows)
        return next((n for n in range(most, 1, -1) if self._panels % n == 0), 1)

    def _pack(self, rows: Any, work: Any) -> None:
        """Copy the left factor tile by tile, where it is read often: rows apart by a multiple of 4096 share lines."""
        k = self.k
        if self._packed is None:
            return
        tiles, rest = rows // self.tile, rows % self.tile
        with k.shared(tiles, work) as tile, k.loop(self.tile) as i:
            place = self._started(tile * self.tile + i)
            with k.loop(self._depth) as kk:
                k.store(self._packed, self._left(place, [self._at(kk)]), tile, kk, i)
        with k.loop(rest) as i:
            place = self._started(tiles * self.tile + i)
            with k.loop(self._depth) as kk:
                k.store(self._packed, self._left(place, [self._at(kk)]), tiles, kk, i)

    def _started(self, row: Any) -> Any:
        return row if self._start is None else self.k.settled(self._start(row))

    def _at(self, kk: Any) -> Any:
        """A place of the inner dimension."""
        return kk if isinstance(self._block, int) and self._block == 0 else self._block * self._depth + kk

    def _tile(self, tile: Any, jo: Any, rows: int, beside: int = 1, *, last: Expr | None = None) -> None:
        """A tile of as many panels as are ``beside`` each other.

        With ``last``, the rows from there on are computed again from the last one and not stored.
        """
        k, width, first = self.k, self.width, tile * self.tile
        sums = k.local((beside, rows, width), self.dtype)

        def row(i: Any) -> Any:
            return first + i if last is None else t.minimum(t.index(first + i), last - 1)

        places = None if self._packed is not None else self._places(row, rows)

        def left(i: Any, kk: list[Any]) -> Expr:
            if self._packed is not None:
                return self._packed[t.index(tile), t.index(kk[0]), t.index(i)]
            return self._left(row(i) if places is None else places[t.index(i)], [*kk[:-1], self._at(kk[-1])])

        def start(p: Any, i: Any, j: Any) -> Expr:
            zero = k.number(0, self.dtype)
            if self._held is None:
                return zero
            found = self._held[t.index(tile), t.index(jo + p), t.index(i), j]
            return found if self._is_last else t.select(t.eq(t.index(self._block), t.index(0)), zero, found)

        @contextlib.contextmanager
        def elements() -> Iterator[tuple[Any, Any, Any]]:
            with k.loop(rows, UNROLLED) as i, k.loop(beside, UNROLLED) as p, k.loop(width, VECTOR) as j:
                yield p, i, j

        with elements() as (p, i, j):
            k.store(sums, start(p, i, j), p, i, j)
        with contextlib.ExitStack() as loops:
            kk = [loops.enter_context(k.loop(d)) for d in (*map(k.size, self.outer), self._depth)]
            p, i, j = loops.enter_context(elements())
            right = self._right(jo + p, [*kk[:-1], self._at(kk[-1])], j)
            k.store(sums, sums[t.index(p), t.index(i), j] + left(i, kk) * right, p, i, j)
        if not self._is_last:
            with elements() as (p, i, j):
                k.store(self._held, sums[t.index(p), t.index(i), j], tile, jo + p, i, j)
            return
        for p in range(beside):
            self._finish(sums, p, first, jo + p, rows, last)

    def _finish(self, sums: Buffer, p: int, first: Any, jo: Any, rows: int, last: Expr | None) -> None:
        """Store what was summed up for one panel."""
        k, width, columns = self.k, self.width, self.k.size(self.columns)
        whole = isinstance(columns, int) and columns % width == 0
        if whole and last is None and self._is_cheap:
            self._store(sums, first, jo, rows, width, UNROLLED, lead=(t.index(p),))
            return
        held = k.local((rows, width), self.dtype)  # a tile that is read by computed indices is none of registers
        with k.loop(rows, UNROLLED) as i, k.loop(width, VECTOR) as j:
            k.store(held, sums[t.index(p), t.index(i), j], i, j)
        stop = rows if last is None else t.minimum(last - first, t.index(rows))
        if whole:
            self._store(held, first, jo, stop, width, SERIAL)
            return
        is_whole = t.index(jo + 1) * width <= columns
        with k.when(is_whole):
            self._store(held, first, jo, stop, width, SERIAL)
        with k.when(t.negate(is_whole)):
            self._store(held, first, jo, stop, columns % width, SERIAL, vector=False)

    def _places(self, row: Callable[[Any], Any], rows: int) -> Buffer | None:
        """What ``start`` says of the rows of a tile."""
        if self._start is None:
            return None
        places = self.k.local((rows,), DType.i64)
        with self.k.loop(rows, UNROLLED) as i:
            self.k.store(places, self._start(row(i)), i)
        return places

    def _store(
        self,
        sums: Buffer,
        first: Any,
        jo: Any,
        rows: Any,
        width: Any,
        kind: int,
        *,
        vector: bool = True,
        lead: tuple[Expr, ...] = (),
    ) -> None:
        """Give what ``sums[*lead]`` has to what follows."""
        k = self.k
        with k.loop(rows, kind) as i:
            place = self._row(first + i)
            if not vector:
                with k.loop(width) as j:
                    self._done(place, jo * self.width + j, sums[(*lead, t.index(i), t.index(j))])
                return
            step = min(width, t.vector_bytes() // 4)
            with k.loop(width // step, kind) as o, k.loop(step, VECTOR) as j:
                lane = o * step + j
                self._done(place, jo * self.width + lane, sums[(*lead, t.index(i), lane)])
