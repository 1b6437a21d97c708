"""Rules of matrix products."""

from __future__ import annotations

from typing import Any

import msgspec

from fairlead.ir import DType, Node, Value, dims
from fairlead_tvm import _tvm as t
from fairlead_tvm._arrays import Array, Strided
from fairlead_tvm._call import Call
from fairlead_tvm._gemm import Product, Tile
from fairlead_tvm._kernel import Kernel
from fairlead_tvm._layouts import Layout, Places, Wanted, panel_width
from fairlead_tvm._numbers import cast, operand
from fairlead_tvm._reduce import reduced
from fairlead_tvm._rules import rule
from fairlead_tvm._views import laid_out, permuted, reshaped, squeezed

__all__ = ["linear", "product"]


def _of_halves(node: Node) -> str | None:
    result = next(r for r in node.results if r is not None)
    if result.tensor.dtype is DType.f16:
        return "products of float16 are torch's: this processor's instructions for them are not TVM's"
    return "a product of bools" if result.tensor.dtype is DType.bool else None


def _panels(index: int, *, transposed: bool = False) -> Places:
    """A right factor of f32 that is a matrix of known size."""

    def places(node: Node) -> tuple[Wanted, ...]:
        value = node.args[index]
        if not isinstance(value, Value) or value.tensor.rank != 2 or not value.tensor.is_static:
            return ()
        if value.tensor.dtype is not DType.f32 or 0 in value.tensor.shape:
            return ()
        return ((index, Layout((1, 0) if transposed else (0, 1), panel_width())),)

    return places


def product(c: Call, x: Array, y: Array, dtype: DType) -> Array:
    """``x @ y`` of matrices, or of as many as their leading dimensions say."""
    a, b = (c.program.stored(cast(each, dtype)) for each in (x, y))
    return Product(a, b, (*a.shape[:-1], b.shape[-1]), dtype, panels=False, schedule=c.schedule).array


def _times(c: Call, x: Array, y: Array) -> Array:
    """``x @ y``, where ``y`` may be a weight that lies in panels."""
    placed = c.placed()
    if placed is None:
        return product(c, x, y, c.dtype)
    return _by_panels(c, x, placed, y.shape[-1])


def _by_panels(c: Call, x: Array, panels: Strided, columns: Any) -> Array:
    rows = reshaped(c.program, c.stored(x), (dims.product(x.shape[:-1]), x.shape[-1]))
    return Product(c.stored(rows), panels, (*x.shape[:-1], columns), c.dtype, panels=True, schedule=c.schedule).array


@rule("bmm", unless=_of_halves)
def bmm(c: Call, x: Array, y: Array) -> Array:
    return product(c, x, y, c.dtype)


@rule("mm", unless=_of_halves, places=_panels(1))
def mm(c: Call, x: Array, y: Array) -> Array:
    return _times(c, x, y)


@rule("mv", "dot", unless=_of_halves)
def mv(c: Call, x: Array, y: Array) -> Array:
    wide = DType.f64 if c.dtype is DType.f32 else c.dtype
    parts = c.map(lambda a, b: t.multiplied(a, b, wide), cast(cast(x, c.dtype), wide), cast(cast(y, c.dtype), wide))
    last = parts.ndim - 1
    return squeezed(c.program, reduced(c.program, parts, (last,), "sum"), (last,))


@rule("addmm", unless=_of_halves, places=_panels(2))
@rule("baddbmm", unless=_of_halves)
def addmm(c: Call, x: Array, a: Array, b: Array, beta: Any = 1, alpha: Any = 1) -> Array:
    """``beta * x + alpha * (a @ b)``; a NaN in ``x`` does not count where beta is zero."""
    out = _times(c, a, b)
    if alpha != 1:
        out = c.map(lambda p, n: t.multiplied(p, n, out.dtype), out, operand(alpha, c.dtype))
    if beta == 0:
        return out
    x = operand(x, c.dtype)
    scaled = x if beta == 1 else c.map(lambda v, n: t.multiplied(v, n, x.dtype), x, operand(beta, c.dtype))
    return c.map(lambda p, v: t.added(p, v, out.dtype), out, scaled)


@rule("linear", unless=_of_halves, places=_panels(1, transposed=True))
def linear(c: Call, x: Array, weight: Array, bias: Array | None = None) -> Array:
    """``x @ weight.T + bias``; the weight is what the node wants placed first, if anything."""
    placed = c.placed()
    if placed is not None and x.ndim > 0:
        shape = x.shape
        out = _by_panels(c, x if x.ndim > 1 else reshaped(c.program, x, (1, *shape)), placed, weight.shape[0])
        out = out if x.ndim > 1 else reshaped(c.program, out, (weight.shape[0],))
    else:
        out = _without_panels(c, x, weight)
    return out if bias is None else c.map(lambda p, v: p + v, out, operand(bias, c.dtype))


def _without_panels(c: Call, x: Array, weight: Array) -> Array:
    matrix = weight if weight.ndim == 2 else reshaped(c.program, weight, (1, *weight.shape))
    rows = reshaped(c.program, x, (dims.product(x.shape[:-1]), x.shape[-1]))
    out = product(c, rows, permuted(c.program, c.stored(cast(matrix, c.dtype)), (1, 0)), c.dtype)
    shape = (*x.shape[:-1], *((matrix.shape[0],) if weight.ndim == 2 else ()))
    return out if out.shape == shape else reshaped(c.program, out, shape)


_ROWS = 6
"""Of a tile of a group, whose last one is computed whole: half of it, in the mean, for nothing."""
_RANKS = 2, 3
"""Of rows, and of one matrix for each group."""
_WHOLE = 1 << 20
"""A depth at which no inner dimension is cut."""


def _not_groups(node: Node) -> str | None:
    x, matrices, ends, *others = node.args
    assert isinstance(x, Value)
    assert isinstance(matrices, Value)
    known = matrices.tensor.is_static and 0 not in matrices.tensor.shape
    ranks = x.tensor.rank, matrices.tensor.rank
    if not known or ranks != _RANKS or ends is None or any(a is not None for a in others):
        return "products of groups other than of rows with matrices of a known size"
    return _of_halves(node)


def _panels_of_groups(node: Node) -> tuple[Wanted, ...]:
    value = node.args[1]
    assert isinstance(value, Value)
    return ((1, _of_groups()),) if value.tensor.dtype is DType.f32 else ()


def _of_groups() -> Layout:
    """``[panels, groups, inner, width]``."""
    return Layout((0, 1, 2), panel_width())


@rule("_grouped_mm", "transformers.grouped_mm_fallback.default", unless=_not_groups, places=_panels_of_groups)
def products_of_groups(
    c: Call, x: Array, matrices: Array, ends: Array, bias: None = None, out_dtype: None = None
) -> Array:
    """Rows from one end to the next, by the matrix of their group; zeros behind the last, where ATen has anything."""
    groups, inner, columns = matrices.shape
    rows, left = x.shape[0], c.stored(cast(x, c.dtype))
    panels = c.placed() or laid_out(c.program, cast(matrices, c.dtype), _of_groups())
    schedule = msgspec.structs.replace(c.schedule, rows=_ROWS, copy="never", depth=_WHOLE)

    def write(k: Kernel, out: Strided) -> None:
        count, zero = t.index(k.size(rows)), t.index(0)

        def begin(group: Any) -> Any:
            """The first row of a group, which is the end of the one before it: within the rows, whatever is said."""
            end = t.cast(k.element(ends, [t.maximum(t.index(group - 1), zero)]), DType.i64)
            return k.settled(t.select(t.index(group) > zero, t.minimum(t.maximum(end, zero), count), zero))

        with k.loop(k.size(groups)) as group:
            first, end = begin(group), begin(group + 1)
            height = k.settled(t.maximum(end - first, zero))
            tile = Tile(k, height, columns, (inner,), c.dtype, panel_width(), schedule)
            tile.write(
                left=lambda i, kk: k.element(left, [first + i, *kk]),
                right=lambda jo, kk, j: k.element(panels, [jo, group, *kk, j]),
                row=lambda i: [first + i],
                done=lambda place, j, value: k.write(out, [*place, j], value),
                cheap=True,
                work=k.size(dims.product((rows, inner, columns))),
            )
        last = begin(k.size(groups))
        with k.loop(count - last) as i, k.loop(k.size(columns)) as j:
            k.write(out, [last + i, j], k.number(0, c.dtype))

    return c.program.kernel((rows, columns), c.dtype, write)
