"""Convolutions: a product whose left factor is read window by window, or channel by channel where each has its own.

Inputs and results lie with their channels last: a tile is as many windows as there are registers for, by two vectors of
channels, and what follows the convolution element by element is done while the tile is at hand.
"""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import dataclass
from typing import Any

import msgspec

from fairlead.ir import DType, Node, Value, dims
from fairlead.ir.dims import Dim
from fairlead_tvm import _tvm as t
from fairlead_tvm._arrays import Array, Computed, Index, Shape, Strided, channels_last
from fairlead_tvm._call import Call
from fairlead_tvm._gemm import Tile
from fairlead_tvm._kernel import Kernel
from fairlead_tvm._layouts import Layout, Wanted, panel_width
from fairlead_tvm._numbers import cast, operand
from fairlead_tvm._pointwise import unflattened
from fairlead_tvm._program import Program
from fairlead_tvm._rules import rule
from fairlead_tvm._schedule import Schedule, most_rows
from fairlead_tvm._tvm import SERIAL, UNROLLED, VECTOR, Expr
from fairlead_tvm._views import laid_out, reshaped
from fairlead_tvm._windows import Windows, channel_blocks, padded, per_dimension

__all__: list[str] = []

_CHEAP = 4
_PAGE, _WAYS = 4096, 8
"""Bytes from one line of the first cache to the next at the same place, and of how many such it keeps all."""
_WINDOWS = 6
"""How many windows a tile of a convolution channel by channel has."""


def _declined(node: Node) -> str | None:
    x, weight, _, stride, _, dilation, transposed, _, _ = node.args
    assert isinstance(x, Value)
    assert isinstance(weight, Value)
    if transposed and not _has_phases(weight.tensor.shape[2:], stride, dilation):
        return "a transposed convolution whose windows are dilated or have gaps between them"
    if x.tensor.dtype is DType.f16:
        return "convolutions of float16 are torch's: this processor's instructions for them are not TVM's"
    if not weight.tensor.is_static or not isinstance(x.tensor.shape[1], int):
        return "a convolution of as many channels as a call says"
    if 0 in weight.tensor.shape or 0 in x.tensor.shape:
        return "a convolution of nothing"
    return None


def _has_phases(sizes: Shape, stride: Any, dilation: Any) -> bool:
    """Whether each result of a transposed convolution is a sum over elements next to each other."""
    rank = len(sizes)
    steps = zip(sizes, per_dimension(stride, rank), per_dimension(dilation, rank), strict=True)
    return all(apart == 1 and isinstance(size, int) and size >= step for size, step, apart in steps)


def _layout(weight: tuple[int, ...], groups: int, *, transposed: bool) -> Layout:
    """``[panels, groups, *window, inner, lane]``, or, where each channel is a group, ``[*window, 1, channels]``."""
    rank = len(weight)
    if transposed:
        return Layout((0, *range(3, rank + 1), 1, 2), panel_width(), groups)
    if _is_by_channel(weight, groups):
        return Layout((*range(2, rank), 1, 0))
    return Layout((0, *range(3, rank + 1), 2, 1), panel_width(), groups)


def _is_by_channel(weight: Shape, groups: int) -> bool:
    return groups > 1 and weight[0] == groups and weight[1] == 1


def _places(node: Node) -> tuple[Wanted, ...]:
    weight, transposed, groups = node.args[1], node.args[6], node.args[8]
    assert isinstance(weight, Value)
    assert isinstance(groups, int)
    if weight.tensor.dtype is not DType.f32 or not weight.tensor.is_static or 0 in weight.tensor.shape:
        return ()
    layout = _layout(weight.tensor.shape, groups, transposed=bool(transposed))  # type: ignore[arg-type]  # static
    return ((1, layout),)


@rule("convolution", unless=_declined, places=_places)
def convolution(
    c: Call,
    x: Array,
    weight: Array,
    bias: Array | None,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    transposed: bool,
    output_padding: tuple[int, ...],
    groups: int,
) -> Array:
    rank = x.ndim - 2
    stride, padding, dilation, output_padding = (
        per_dimension(v, rank) for v in (stride, padding, dilation, output_padding)
    )
    layout = _layout(weight.shape, groups, transposed=transposed)  # type: ignore[arg-type]  # static
    factor = c.placed() or laid_out(c.program, cast(weight, c.dtype), layout)
    x, shape, sizes = cast(x, c.dtype), c.shape(), weight.shape[2:]
    if transposed:
        around = tuple(map(_around, sizes, stride, padding, output_padding))  # type: ignore[arg-type]  # static
        phases = _phases(sizes, stride, padding, around, shape[2:])
        found = _Grouped(padded(c.program, x, around), factor, shape, c.schedule, phases, groups).array
    else:
        windows = Windows(sizes, stride, padding, dilation)
        source = padded(c.program, x, padding)
        if layout.panel:
            whole = _Phase.whole(windows, shape[2:])
            found = _Grouped(source, factor, shape, c.schedule, (whole,), groups).array
        else:
            found = _ByChannel(source, factor, shape, c.schedule, windows).array
    if bias is None:
        return found
    column = reshaped(c.program, operand(bias, c.dtype), (1, bias.shape[0], *(1,) * rank))
    return c.map(lambda p, v: p + v, found, column)


@dataclass(frozen=True, slots=True)
class _Phase:
    """Windows that are as far apart in the result as in the input, in steps: all, or some of a transposed convolution.

    By dimension: how many windows there are and how many elements each has; where the first lies in the padded input,
    how far the next window and the next element are; the first of the weight's elements and the step to the next, and
    likewise where the windows lie in the result.
    """

    counts: Shape
    sizes: tuple[int, ...]
    begin: tuple[int, ...]
    stride: tuple[int, ...]
    step: tuple[int, ...]
    weight: tuple[tuple[int, int], ...]
    out: tuple[tuple[int, int], ...]

    @classmethod
    def whole(cls, windows: Windows, counts: Shape) -> _Phase:
        rank = len(counts)
        return cls(
            counts,
            windows.sizes,  # type: ignore[arg-type]  # static
            (0,) * rank,
            windows.stride,
            windows.dilation,
            ((0, 1),) * rank,
            ((0, 1),) * rank,
        )


def _around(size: int, stride: int, padding: int, output_padding: int) -> int:
    """How many zeros around the input a transposed convolution reads."""
    return max(-(-size // stride) - 1, (size - 1 - padding + output_padding) // stride, 0)


def _phases(
    sizes: Shape, stride: tuple[int, ...], padding: tuple[int, ...], around: tuple[int, ...], counts: Shape
) -> tuple[_Phase, ...]:
    """The results that read the same elements of a weight: as many kinds as there are steps of the stride.

    A result ``o`` reads the weight's elements ``r + s * i``, where ``r`` is what ``o + padding`` leaves over ``s``, and
    the input's elements ``(o + padding - r) / s - i``.
    """
    found = []
    for rests in itertools.product(*map(range, stride)):
        first = [(r - p) % s for r, p, s in zip(rests, padding, stride, strict=True)]
        each = list(zip(rests, first, padding, stride, strict=True))
        phase = _Phase(
            tuple(dims.normalize(f"({n} + {s - 1 - o}) // {s}") for n, (_, o, _, s) in zip(counts, each, strict=True)),
            tuple((size - r + s - 1) // s for size, (r, _, _, s) in zip(sizes, each, strict=True)),  # type: ignore[operator]
            tuple((o + p - r) // s + a for a, (r, o, p, s) in zip(around, each, strict=True)),
            (1,) * len(counts),
            (-1,) * len(counts),
            tuple((r, s) for r, _, _, s in each),
            tuple((o, s) for _, o, _, s in each),
        )
        if 0 not in phase.counts:
            found.append(phase)
    return tuple(found)


class _Convolution:
    """A convolution that is computed once it is known what follows it: `array` stands for it until then.

    ``x`` is padded, ``[batch, *places, channels]``.
    """

    def __init__(self, x: Strided, factor: Strided, shape: Shape, schedule: Schedule) -> None:
        self._x, self._factor, self._schedule = x, factor, schedule
        self._batch, self._channels, *self._counts = shape
        self.array: Array = Computed(shape, x.dtype, self._element, 1, frozenset([self]))
        self.array.channels_last = True

    def _element(self, k: Kernel, index: Index) -> Expr:
        return k.products[id(self)](index)

    def emit(self, program: Program, result: Array) -> Strided:
        """Compute ``result``, whose elements are functions of those of the convolution at the same index."""
        order = channels_last(result.ndim)
        return program.kernel(result.shape, result.dtype, lambda k, out: self._write(k, out, result), order)

    def _write(self, k: Kernel, out: Strided, result: Array) -> None:
        raise NotImplementedError

    def _finish(self, k: Kernel, out: Strided, result: Array, index: list[Any], value: Expr) -> None:
        k.products[id(self)] = lambda _: value
        k.write(out, index, k.element(result, index))

    def _work(self, k: Kernel, steps: Dim) -> Any:
        """What there is for threads to share."""
        return k.size(steps) if self._schedule.spread else 0

    def _at(self, k: Kernel, place: list[Any]) -> Any:
        """Where an element of the padded input lies in memory."""
        at = k.size(self._x.offset)
        for i, step in zip(place, self._x.strides, strict=True):
            at = at + i * k.size(step)
        return at


class _Grouped(_Convolution):
    """Each group is a product of windows and a weight in panels, or one for each phase."""

    def __init__(
        self,
        x: Strided,
        factor: Strided,
        shape: Shape,
        schedule: Schedule,
        phases: tuple[_Phase, ...],
        groups: int,
    ) -> None:
        super().__init__(x, factor, shape, schedule)
        self._phases, self._groups = phases, groups

    def _write(self, k: Kernel, out: Strided, result: Array) -> None:
        for phase in self._phases:
            with k.loop(self._groups) as group:
                self._phase(k, out, result, group, phase)

    def _phase(self, k: Kernel, out: Strided, result: Array, group: Any, phase: _Phase) -> None:
        """One product of the windows of the whole batch, whose size is known; else one for each image."""
        inner = self._x.shape[-1] // self._groups  # type: ignore[operator]
        each = dims.product((*phase.counts, *phase.sizes, inner))
        work = self._work(k, dims.product((self._batch, self._channels // self._groups, each)))  # type: ignore[operator]
        if isinstance(self._batch, int):
            self._product(k, out, result, phase, (group, None), work)
            return
        with k.shared(k.size(self._batch), work) as image:
            self._product(k, out, result, phase, (group, image), work)

    def _product(self, k: Kernel, out: Strided, result: Array, phase: _Phase, part: tuple[Any, Any], work: Any) -> None:
        group, image = part
        lead: Shape = phase.counts if image is not None else (self._batch, *phase.counts)
        inner, columns = self._x.shape[-1] // self._groups, self._channels // self._groups  # type: ignore[operator]
        taps = [d for d, size in enumerate(phase.sizes) if size != 1]

        def place(row: Any) -> list[Any]:
            found = unflattened(k, row, lead)
            return found if image is None else [image, *found]

        def start(row: Any) -> Expr:
            n, *window = place(row)
            first = [i * s + b for i, s, b in zip(window, phase.stride, phase.begin, strict=True)]
            return t.index(self._at(k, [n, *first, group * inner]))

        def left(at: Any, kk: list[Any]) -> Expr:
            for i, d in zip(kk, taps, strict=False):
                at = at + i * (k.size(self._x.strides[1 + d]) * phase.step[d])
            return k.load(self._x.memory, at + kk[-1] * k.size(self._x.strides[-1]))

        def right(panel: Any, kk: list[Any], lane: Any) -> Expr:
            at: list[Any] = [first for first, _ in phase.weight]
            for i, d in zip(kk, taps, strict=False):
                at[d] = i * phase.weight[d][1] + at[d]
            return k.element(self._factor, [panel, group, *at, kk[-1], lane])

        def done(found: list[Any], column: Any, value: Expr) -> None:
            n, *window = found
            at = [i * s + o for i, (o, s) in zip(window, phase.out, strict=True)]
            self._finish(k, out, result, [n, group * columns + column, *at], value)

        sizes = tuple(phase.sizes[d] for d in taps)
        schedule = self._few_rows(phase)
        tile = Tile(k, dims.product(lead), columns, (*sizes, inner), self._x.dtype, panel_width(), schedule)
        tile.write(
            left=left,
            right=right,
            row=lambda i: [k.settled(each) for each in place(k.settled(i))],
            done=done,
            cheap=result.cost <= _CHEAP,
            work=work,
            start=start,
        )

    def _few_rows(self, phase: _Phase) -> Schedule:
        """As many windows in a tile as the first cache has lines at one place, where windows lie so far apart."""
        apart = dims.mul(phase.stride[-1], self._x.strides[-2])
        shares = isinstance(apart, int) and apart * self._x.dtype.itemsize % _PAGE == 0
        if self._schedule.rows or not shares or most_rows() <= _WAYS:
            return self._schedule
        return msgspec.structs.replace(self._schedule, rows=_WAYS)


class _ByChannel(_Convolution):
    """Each channel has a window of its own: a tile is a few windows of a row by two vectors of channels."""

    def __init__(self, x: Strided, factor: Strided, shape: Shape, schedule: Schedule, windows: Windows) -> None:
        super().__init__(x, factor, shape, schedule)
        self._windows = windows

    def _write(self, k: Kernel, out: Strided, result: Array) -> None:
        work = self._work(k, dims.product((*self._counts, self._batch, self._channels, *self._windows.sizes)))
        windows = self._schedule.rows or _WINDOWS
        *outer, last = self._counts
        with contextlib.ExitStack() as loops:
            lead = [loops.enter_context(k.shared(k.size(d), work)) for d in (self._batch, *outer)]
            count = k.size(last)
            with k.loop(count // windows) as block:
                self._tile(k, out, result, lead, block * windows, windows)
            done = count // windows * windows
            if isinstance(count, int):
                if count > done:
                    self._tile(k, out, result, lead, done, count - done)
                return
            with k.loop(count % windows) as i:
                self._tile(k, out, result, lead, done + i, 1)

    def _tile(self, k: Kernel, out: Strided, result: Array, lead: list[Any], first: Any, rows: int) -> None:
        dtype = self._x.dtype
        n, *outer = lead
        for begin, width in channel_blocks(k, self._channels, dtype, 2):
            sums = k.local((rows, width), dtype)
            with k.loop(rows, UNROLLED) as i, k.loop(width, VECTOR) as j:
                k.store(sums, k.number(0, dtype), i, j)
            with contextlib.ExitStack() as loops:
                element = [loops.enter_context(k.loop(k.size(d))) for d in self._windows.sizes]
                i, j = loops.enter_context(k.loop(rows, UNROLLED)), loops.enter_context(k.loop(width, VECTOR))
                place = self._windows.place([*outer, first + i], element)
                x = k.element(self._x, [n, *place, begin + j])
                w = k.element(self._factor, [*element, 0, begin + j])
                k.store(sums, sums[t.index(i), t.index(j)] + x * w, i, j)
            held = k.local((rows, width), dtype)
            with k.loop(rows, UNROLLED) as i, k.loop(width, VECTOR) as j:
                k.store(held, sums[t.index(i), t.index(j)], i, j)
            step = min(width, t.vector_bytes() // 4)
            with k.loop(rows, SERIAL) as i, k.loop(width // step) as o, k.loop(step, VECTOR) as j:
                lane = o * step + j
                index = [n, begin + lane, *outer, first + i]
                self._finish(k, out, result, index, held[t.index(i), t.index(lane)])
