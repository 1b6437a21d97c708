"""Convolutions: a product whose left factor is read window by window, or channel by channel where each has its own.

Inputs and results lie with their channels last: a tile is as many windows as there are registers for, by two vectors of
channels, and what follows the convolution element by element is done while the tile is at hand.
"""

from __future__ import annotations

import contextlib
from typing import Any

from fairlead.ir import DType, Node, Value, dims
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
from fairlead_tvm._tvm import SERIAL, UNROLLED, VECTOR, Expr
from fairlead_tvm._views import reshaped
from fairlead_tvm._windows import Windows, channel_blocks, padded

__all__: list[str] = []

_CHEAP = 4
_WINDOWS = 6
"""How many windows a tile of a convolution channel by channel has."""


def _declined(node: Node) -> str | None:
    x, weight, _, *_, transposed, _, _ = node.args
    assert isinstance(x, Value)
    assert isinstance(weight, Value)
    if transposed:
        return "a transposed convolution"
    if x.tensor.dtype in (DType.f16, DType.bf16):
        return "convolutions of halves are torch's: this processor's instructions for them are not TVM's"
    if not weight.tensor.is_static or not isinstance(x.tensor.shape[1], int):
        return "a convolution of as many channels as a call says"
    if 0 in weight.tensor.shape or 0 in x.tensor.shape:
        return "a convolution of nothing"
    return None


def _layout(weight: tuple[int, ...], groups: int) -> Layout:
    """``[panels, groups, *window, inner, lane]``, or, where each channel is a group, ``[*window, 1, channels]``."""
    rank = len(weight)
    if _is_by_channel(weight, groups):
        return Layout((*range(2, rank), 1, 0))
    return Layout((0, *range(3, rank + 1), 2, 1), panel_width(), groups)


def _is_by_channel(weight: Shape, groups: int) -> bool:
    return groups > 1 and weight[0] == groups and weight[1] == 1


def _places(node: Node) -> Wanted | None:
    weight, groups = node.args[1], node.args[8]
    assert isinstance(weight, Value)
    assert isinstance(groups, int)
    if weight.tensor.dtype is not DType.f32 or not weight.tensor.is_static or 0 in weight.tensor.shape:
        return None
    return 1, _layout(weight.tensor.shape, groups)  # type: ignore[arg-type]  # static


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
    stride, padding, dilation = (v * rank if len(v) == 1 else v for v in (stride, padding, dilation))
    windows = Windows(weight.shape[2:], stride, padding, dilation)
    source = padded(c.program, cast(x, c.dtype), padding)
    factor = c.placed() or _laid_out(c, cast(weight, c.dtype), groups)
    kind = _ByChannel if _is_by_channel(weight.shape, groups) else _Grouped
    found = kind(source, factor, c.shape(), windows, groups).array
    if bias is None:
        return found
    column = reshaped(c.program, operand(bias, c.dtype), (1, bias.shape[0], *(1,) * rank))
    return c.map(lambda p, v: p + v, found, column)


def _laid_out(c: Call, weight: Array, groups: int) -> Strided:
    """A weight that is no constant, laid out at the call."""
    layout = _layout(weight.shape, groups)  # type: ignore[arg-type]  # static
    source, shape = c.stored(weight), layout.shape(weight.shape)  # type: ignore[arg-type]
    if not layout.panel:
        order = layout.order
        return c.stored(
            Computed(shape, c.dtype, lambda k, at: k.element(source, [at[order.index(d)] for d in range(len(order))]))
        )
    columns = weight.shape[0] // groups  # type: ignore[operator]

    def element(k: Kernel, at: Index) -> Expr:
        panel, group, *window, inner, lane = at
        column = panel * layout.panel + lane
        last = t.minimum(_expr(column), _expr(columns - 1))
        value = k.element(source, [group * columns + last, inner, *window])
        return t.select(_expr(column) < _expr(columns), value, k.number(0, c.dtype))

    return c.stored(Computed(shape, c.dtype, element))


def _expr(value: Any) -> Expr:
    return t.const(value, DType.i64) if isinstance(value, int) else value


class _Convolution:
    """A convolution that is computed once it is known what follows it: `array` stands for it until then.

    ``x`` is padded, ``[batch, *places, channels]``.
    """

    def __init__(self, x: Strided, factor: Strided, shape: Shape, windows: Windows, groups: int) -> None:
        self._x, self._factor, self._windows, self._groups = x, factor, windows, groups
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

    def _work(self, k: Kernel) -> Any:
        """How many products of numbers there are."""
        each = dims.product((*self._windows.sizes, self._x.shape[-1]))
        count = dims.product((self._batch, self._channels, *self._counts))
        return k.size(dims.mul(count, each)) // self._groups

    def _finish(self, k: Kernel, out: Strided, result: Array, index: list[Any], value: Expr) -> None:
        k.products[id(self)] = lambda _: value
        k.write(out, index, k.element(result, index))

    def _at(self, k: Kernel, place: list[Any]) -> Any:
        """Where an element of the padded input lies in memory."""
        at = k.size(self._x.offset)
        for i, step in zip(place, self._x.strides, strict=True):
            at = at + i * k.size(step)
        return at


class _Grouped(_Convolution):
    """Each group is a product of windows and a weight in panels."""

    def _write(self, k: Kernel, out: Strided, result: Array) -> None:
        """One product of the windows of the whole batch, whose size is known; else one for each image."""
        work, whole = self._work(k), isinstance(self._batch, int)
        with contextlib.ExitStack() as loops:
            group = loops.enter_context(k.loop(self._groups))
            image = None if whole else loops.enter_context(k.shared(k.size(self._batch), work))
            self._product(k, out, result, group, image, work)

    def _product(self, k: Kernel, out: Strided, result: Array, group: Any, image: Any, work: Any) -> None:
        lead: Shape = (self._batch, *self._counts) if image is None else tuple(self._counts)
        inner, columns = self._x.shape[-1] // self._groups, self._channels // self._groups  # type: ignore[operator]
        taps = [d for d, size in enumerate(self._windows.sizes) if size != 1]
        sizes = tuple(self._windows.sizes[d] for d in taps)
        step = [self._x.strides[1 + d] for d in taps]

        def place(row: Any) -> list[Any]:
            found = unflattened(k, row, lead)
            return found if image is None else [image, *found]

        def start(row: Any) -> Expr:
            n, *window = place(row)
            first = self._windows.place(window, [0] * len(window))
            return _expr(self._at(k, [n, *first, group * inner]))

        def left(at: Any, kk: list[Any]) -> Expr:
            for i, d, s in zip(kk, taps, step, strict=False):
                at = at + i * (k.size(s) * self._windows.dilation[d])
            return k.load(self._x.memory, at + kk[-1] * k.size(self._x.strides[-1]))

        def right(panel: Any, kk: list[Any], lane: Any) -> Expr:
            window: list[Any] = [0] * len(self._windows.sizes)
            for i, d in zip(kk, taps, strict=False):
                window[d] = i
            return k.element(self._factor, [panel, group, *window, kk[-1], lane])

        def done(found: list[Any], column: Any, value: Expr) -> None:
            n, *window = found
            self._finish(k, out, result, [n, group * columns + column, *window], value)

        tile = Tile(k, dims.product(lead), columns, (*sizes, inner), self._x.dtype, panel_width())
        tile.write(
            left=left,
            right=right,
            row=lambda i: [k.settled(each) for each in place(k.settled(i))],
            done=done,
            cheap=result.cost <= _CHEAP,
            work=work,
            start=start,
        )


class _ByChannel(_Convolution):
    """Each channel has a window of its own: a tile is a few windows of a row by two vectors of channels."""

    def _write(self, k: Kernel, out: Strided, result: Array) -> None:
        work = self._work(k)
        *outer, last = self._counts
        with contextlib.ExitStack() as loops:
            lead = [loops.enter_context(k.shared(k.size(d), work)) for d in (self._batch, *outer)]
            count = k.size(last)
            with k.loop(count // _WINDOWS) as block:
                self._tile(k, out, result, lead, block * _WINDOWS, _WINDOWS)
            done = count // _WINDOWS * _WINDOWS
            if isinstance(count, int):
                if count > done:
                    self._tile(k, out, result, lead, done, count - done)
                return
            with k.loop(count % _WINDOWS) as i:
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
                k.store(sums, sums[_expr(i), _expr(j)] + x * w, i, j)
            held = k.local((rows, width), dtype)
            with k.loop(rows, UNROLLED) as i, k.loop(width, VECTOR) as j:
                k.store(held, sums[_expr(i), _expr(j)], i, j)
            step = min(width, t.vector_bytes() // 4)
            with k.loop(rows, SERIAL) as i, k.loop(width // step) as o, k.loop(step, VECTOR) as j:
                lane = o * step + j
                index = [n, begin + lane, *outer, first + i]
                self._finish(k, out, result, index, held[_expr(i), _expr(lane)])
