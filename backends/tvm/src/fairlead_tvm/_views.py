"""Rules that move elements and do not compute: views of memory where that can be, functions of the index elsewhere."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from fairlead.ir import Node, Value, dims
from fairlead.ir.dims import Dim
from fairlead_tvm import _tvm as t
from fairlead_tvm._arrays import Array, Computed, Index, Shape, Strided, row_major
from fairlead_tvm._call import Call
from fairlead_tvm._kernel import Kernel
from fairlead_tvm._layouts import Layout
from fairlead_tvm._numbers import cast
from fairlead_tvm._program import Program
from fairlead_tvm._rules import rule
from fairlead_tvm._tvm import Expr

__all__ = ["axes", "axis", "laid_out", "moved", "permuted", "reshaped", "sliced", "spread", "squeezed"]


def axis(dim: int, rank: int) -> int:
    """A dimension counted from the front; a 0-d tensor has one, as everywhere in ATen."""
    count = max(rank, 1)
    if not -count <= dim < count:
        raise IndexError(f"there is no dimension {dim} of {rank}")
    return dim % count


def axes(over: Any, rank: int, *, empty_is_all: bool = True) -> tuple[int, ...]:
    """Dimensions counted from the front; none given are all of them."""
    if over is None or (empty_is_all and not isinstance(over, int) and not over):
        return tuple(range(rank))
    named = (over,) if isinstance(over, int) else over
    return tuple(axis(d, rank) for d in named)[:rank]


def moved(
    program: Program, array: Array, shape: Shape, index: Callable[[Kernel, Index], list[Any]], *, cost: int = 0
) -> Array:
    """The array whose elements are those at other places of ``array``."""
    source = program.stored(array) if array.products else array
    return Computed(
        shape, array.dtype, lambda k, at: k.element(source, index(k, at)), cost=source.cost + cost if source.cost else 0
    )


def spread(array: Array, shape: Shape) -> Array:
    """Dimensions of one element repeated, and new ones in front."""
    skipped = len(shape) - array.ndim
    if isinstance(array, Strided):
        strides = (0,) * skipped + tuple(
            0 if have == 1 and want != 1 else s
            for s, have, want in zip(array.strides, array.shape, shape[skipped:], strict=True)
        )
        return Strided(array.memory, shape, strides, array.offset)
    same = array.shape == shape

    def element(k: Kernel, index: Index) -> Expr:
        places = [0 if d == 1 else i for d, i in zip(array.shape, list(index)[skipped:], strict=True)]
        return k.element(array, places)

    return Computed(shape, array.dtype, element, array.cost, array.products if same else frozenset())


def reshaped(program: Program, array: Array, shape: Shape) -> Array:
    """The same elements in the same order. What cannot be a view is computed first."""
    if array.shape == shape:
        return array
    if (grouped := _without_ones(program, array, shape)) is not None:
        return grouped
    found = program.stored(array)
    strides = _view_strides(found, shape)
    if strides is None:
        found, strides = program.whole(found), row_major(shape)
    return Strided(found.memory, shape, strides, found.offset)


def _without_ones(program: Program, array: Array, shape: Shape) -> Array | None:
    """A reshape that only adds or removes dimensions of one element, of what is not in memory."""
    kept = [d for d, size in enumerate(array.shape) if size != 1]
    wanted = [d for d, size in enumerate(shape) if size != 1]
    if isinstance(array, Strided) or [array.shape[d] for d in kept] != [shape[d] for d in wanted]:
        return None

    def index(k: Kernel, at: Index) -> list[Any]:
        found: list[Any] = [0] * array.ndim
        for d, w in zip(kept, wanted, strict=True):
            found[d] = at[w]
        return found

    return moved(program, array, shape, index)


def _view_strides(array: Strided, shape: Shape) -> Shape | None:
    """The strides that let the same memory be read in this shape; None where there are none."""
    if 0 in shape:
        return row_major(shape)
    strides: list[Dim] = []
    sizes = [(size, stride) for size, stride in zip(array.shape, array.strides, strict=True) if size != 1]
    for group, wanted in _groups([s for s, _ in sizes], list(shape)):
        parts = sizes[: len(group)]
        sizes = sizes[len(group) :]
        for (_, outer), (size, inner) in itertools.pairwise(parts):
            if outer != dims.mul(size, inner):
                return None
        step: Dim = parts[-1][1] if parts else 0
        found: list[Dim] = []
        for size in reversed(wanted):
            found.append(step)
            step = dims.mul(step, size)
        strides += reversed(found)
    return tuple(strides) if len(strides) == len(shape) else None


def _groups(have: list[Dim], want: list[Dim]) -> list[tuple[list[Dim], list[Dim]]]:
    """Both lists cut into parts of equal products, as short as they can be."""
    found: list[tuple[list[Dim], list[Dim]]] = []
    i = j = 0
    while j < len(want) or i < len(have):
        a, b = i, j
        if want[b : b + 1] == [1]:
            found.append(([], [1]))
            j += 1
            continue
        left, right = dims.product(have[a : a + 1]), dims.product(want[b : b + 1])
        i, j = i + 1, j + 1
        while left != right and (i < len(have) or j < len(want)):
            grow_left = i < len(have) and (j >= len(want) or _is_less(left, right))
            if grow_left:
                left, i = dims.mul(left, have[i]), i + 1
            else:
                right, j = dims.mul(right, want[j]), j + 1
        found.append((have[a:i], want[b:j]))
        if left != right:
            return []
    return found


def _is_less(left: Dim, right: Dim) -> bool:
    """Which side of an equation has to grow; a guess where sizes are symbolic, which ends in all of both."""
    if isinstance(left, int) and isinstance(right, int):
        return left < right
    return len(str(left)) <= len(str(right))


def permuted(program: Program, array: Array, order: tuple[int, ...]) -> Array:
    """The dimensions in another order."""
    shape = tuple(array.shape[d] for d in order)
    if isinstance(array, Strided):
        return Strided(array.memory, shape, tuple(array.strides[d] for d in order), array.offset)
    return moved(program, array, shape, lambda k, at: [at[order.index(d)] for d in range(array.ndim)])


def sliced(program: Program, array: Array, dim: int, start: Dim, count: Dim, step: int = 1) -> Array:
    """``count`` elements of a dimension, ``step`` apart; a negative step runs backwards."""
    shape = (*array.shape[:dim], count, *array.shape[dim + 1 :])
    if isinstance(array, Strided):
        strides = (*array.strides[:dim], dims.mul(array.strides[dim], step), *array.strides[dim + 1 :])
        return Strided(array.memory, shape, strides, dims.add(array.offset, dims.mul(start, array.strides[dim])))

    def index(k: Kernel, at: Index) -> list[Any]:
        return [*at[:dim], at[dim] * step + k.size(start), *at[dim + 1 :]]

    return moved(program, array, shape, index)


def squeezed(program: Program, array: Array, dims_: tuple[int, ...]) -> Array:
    """Without dimensions of one element."""
    return reshaped(program, array, tuple(s for d, s in enumerate(array.shape) if d not in dims_))


def laid_out(program: Program, weight: Array, layout: Layout) -> Strided:
    """A weight of a known size that is no constant, laid out at the call as `Layout.array` does it."""
    source, shape, order = program.stored(weight), layout.shape(weight.shape), layout.order  # type: ignore[arg-type]
    if layout.groups:
        first, *rest = source.shape
        source = reshaped(program, source, (layout.groups, first // layout.groups, *rest))  # type: ignore[operator,assignment]
    last = source.shape[order[-1]]

    def element(k: Kernel, at: Index) -> Expr:
        if not layout.panel:
            return k.element(source, [at[order.index(d)] for d in range(len(order))])
        panel, *lead, lane = at
        column, stop = t.index(panel * layout.panel + lane), t.index(k.size(last))
        lead.append(t.minimum(column, stop - 1))
        value = k.element(source, [lead[order.index(d)] for d in range(len(order))])
        return t.select(column < stop, value, k.number(0, weight.dtype))

    return program.stored(Computed(shape, weight.dtype, element))


@rule("view", "reshape", "_unsafe_view", "unsqueeze", "squeeze.dims")
def view(c: Call, x: Array, *rest: Any) -> Array:
    return reshaped(c.program, x, c.shape())


@rule("permute")
def permute(c: Call, x: Array, order: tuple[int, ...]) -> Array:
    return permuted(c.program, x, tuple(d % x.ndim for d in order)) if x.ndim else x


@rule("expand")
def expand(c: Call, x: Array, *rest: Any) -> Array:
    return spread(c.stored(x) if x.products else x, c.shape())


@rule("select.int")
def select(c: Call, x: Array, dim: int, index: Any) -> Array:
    at = axis(dim, x.ndim)
    start = _from_front(index, x.shape[at])
    return squeezed(c.program, sliced(c.program, x, at, start, 1), (at,))


def _from_front(place: Dim, size: Dim) -> Dim:
    return dims.add(place, size) if isinstance(place, int) and place < 0 else place


def _clamped(place: Any, size: Dim, default: Dim) -> Dim:
    if place is None:
        return default
    if isinstance(place, int) and isinstance(size, int):
        return min(max(place + size if place < 0 else place, 0), size)
    if isinstance(place, int) and place >= 1 << 62:
        return size
    return dims.normalize(f"min(max({_from_front(place, size)}, 0), {size})")


@rule("slice.Tensor")
def slice_(c: Call, x: Array, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Array:
    at = axis(dim, x.ndim)
    return sliced(c.program, x, at, _clamped(start, x.shape[at], 0), c.shape()[at], step)


@rule("split_with_sizes")
def split_with_sizes(c: Call, x: Array, sizes: tuple[Dim, ...], dim: int = 0) -> tuple[Array, ...]:
    at, start = axis(dim, x.ndim), [0, *itertools.accumulate(sizes, dims.add)]
    x = c.stored(x) if x.cost else x
    return tuple(sliced(c.program, x, at, a, n) for a, n in zip(start, sizes, strict=False))


@rule("unbind.int")
def unbind(c: Call, x: Array, dim: int = 0) -> tuple[Array, ...]:
    at = axis(dim, x.ndim)
    x = c.stored(x) if x.cost else x
    count = x.shape[at]
    assert isinstance(count, int), "as many results as elements"
    return tuple(squeezed(c.program, sliced(c.program, x, at, i, 1), (at,)) for i in range(count))


@rule("flip")
def flip(c: Call, x: Array, over: tuple[int, ...]) -> Array:
    for d in axes(over, x.ndim, empty_is_all=False):
        x = sliced(c.program, x, d, dims.add(x.shape[d], -1), x.shape[d], -1)
    return x


@rule("roll")
def roll(c: Call, x: Array, shifts: Any, over: Any = ()) -> Array:
    shape = x.shape
    shifts = (shifts,) if not isinstance(shifts, tuple) else shifts
    at = axes(over, x.ndim) if over else (0,)
    x = x if over else reshaped(c.program, x, (dims.product(shape),))
    for d, shift in zip(at, shifts, strict=True):
        x = _rolled(c.program, x, d, shift)
    return reshaped(c.program, x, shape)


def _rolled(program: Program, x: Array, dim: int, shift: Dim) -> Array:
    def index(k: Kernel, at: Index) -> list[Any]:
        size = k.size(x.shape[dim])
        return [*at[:dim], (at[dim] + (size - k.size(shift) % size)) % size, *at[dim + 1 :]]

    return moved(program, x, x.shape, index, cost=2)


@rule("repeat")
def repeat(c: Call, x: Array, times: tuple[Dim, ...]) -> Array:
    x = reshaped(c.program, x, (*(1,) * (len(times) - x.ndim), *x.shape))

    def index(k: Kernel, at: Index) -> list[Any]:
        return [0 if d == 1 else i % k.size(d) for i, d in zip(at, x.shape, strict=True)]

    return moved(c.program, x, c.shape(), index, cost=2)


@rule("constant_pad_nd")
def constant_pad(c: Call, x: Array, pad: tuple[Dim, ...], value: Any = 0) -> Array:
    """Two numbers a dimension, the last dimension first; negative ones cut away."""
    shape, x = c.shape(), c.stored(x) if x.cost else x
    before: list[Dim] = [0] * x.ndim
    for i in range(len(pad) // 2):
        before[x.ndim - 1 - i] = pad[2 * i]
    if 0 in x.shape:
        return spread(cast(value, c.dtype), shape)

    def element(k: Kernel, index: Index) -> Expr:
        inside, places = None, []
        for i, start, size, wide in zip(index, before, x.shape, shape, strict=True):
            if start == 0 and size == wide:
                places.append(i)
                continue
            at, count = t.index(i - k.size(start)), t.index(k.size(size))
            holds = t.all_of(at >= t.index(0), at < count)
            inside = holds if inside is None else t.all_of(inside, holds)
            places.append(t.minimum(t.maximum(at, t.index(0)), count - 1))
        found = k.element(x, places)
        return found if inside is None else t.select(inside, found, k.number(value, c.dtype))

    return Computed(shape, c.dtype, element, cost=4)


@rule("diagonal")
def diagonal(c: Call, x: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
    rows, columns = axis(dim1, x.ndim), axis(dim2, x.ndim)
    rest = [d for d in range(x.ndim) if d not in (rows, columns)]

    def index(k: Kernel, at: Index) -> list[Any]:
        found: list[Any] = [None] * x.ndim
        for d, i in zip(rest, at, strict=False):
            found[d] = i
        found[rows], found[columns] = at[-1] + max(-offset, 0), at[-1] + max(offset, 0)
        return found

    return moved(c.program, x, c.shape(), index)


def _triangle(lower: bool) -> Callable[..., Array]:
    def write(c: Call, x: Array, k_: int = 0) -> Array:
        source = c.stored(x) if x.products else x

        def element(k: Kernel, index: Index) -> Expr:
            row, column = t.index(index[-2]) + k.size(k_), t.index(index[-1])
            inside = column <= row if lower else column >= row
            return t.select(inside, k.element(source, index), k.number(0, x.dtype))

        return Computed(x.shape, x.dtype, element, cost=source.cost + 2)

    return write


rule("tril")(_triangle(lower=True))
rule("triu")(_triangle(lower=False))


@rule("unfold")
def unfold(c: Call, x: Array, dim: int, size: int, step: int) -> Array:
    """Windows of one dimension, which becomes their number; their elements come last."""
    if x.ndim == 0:
        return reshaped(c.program, x, c.shape())
    at = axis(dim, x.ndim)

    def index(k: Kernel, places: Index) -> list[Any]:
        return [*places[:at], places[at] * step + places[-1], *places[at + 1 : -1]]

    return moved(c.program, x, c.shape(), index)


@rule("select_scatter")
def select_scatter(c: Call, x: Array, source: Array, dim: int, index: Any) -> Array:
    at = axis(dim, x.ndim)
    grown = reshaped(c.program, source, (*source.shape[:at], 1, *source.shape[at:]))
    return _written(c, x, grown, at, _from_front(index, x.shape[at]), 1)


@rule("slice_scatter")
def slice_scatter(
    c: Call, x: Array, source: Array, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Array:
    at = axis(dim, x.ndim)
    return _written(c, x, source, at, _clamped(start, x.shape[at], 0), step)


def _written(c: Call, x: Array, source: Array, dim: int, start: Dim, step: int) -> Array:
    """``x`` with every so many of its elements along a dimension taken from ``source``."""
    x, source = (c.stored(a) if a.products else a for a in (x, cast(source, c.dtype)))
    if 0 in source.shape:
        return x

    def element(k: Kernel, index: Index) -> Expr:
        at = t.index(index[dim] - k.size(start))
        count = t.index(k.size(source.shape[dim]))
        inside = t.all_of(t.all_of(at >= t.index(0), at < count * step), t.eq(at % step, t.index(0)))
        place = t.minimum(t.maximum(at // step, t.index(0)), count - 1)
        return t.select(inside, k.element(source, [*index[:dim], place, *index[dim + 1 :]]), k.element(x, index))

    return Computed(x.shape, c.dtype, element, cost=x.cost + source.cost + 4)


def _joins_bytes(node: Node) -> str | None:
    value, result = node.args[0], node.results[0]
    assert isinstance(value, Value)
    if result is not None and value.tensor.dtype.itemsize != result.tensor.dtype.itemsize:
        return "a view of bytes as elements of another size"
    if "bool" in (value.tensor.dtype, result and result.tensor.dtype):
        return "a view of bytes as bools"
    return None


@rule("view.dtype", unless=_joins_bytes)
def view_dtype(c: Call, x: Array, dtype: Any) -> Array:
    if x.dtype is c.dtype:
        return x
    return c.map(lambda v: t.as_bits(v, c.dtype), x, dtype=c.dtype)
