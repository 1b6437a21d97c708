"""Rules that move elements and do not compute."""

from __future__ import annotations

from typing import cast

from fairlead.ir import Dim, DimExpr, DType, Value
from fairlead.ir.dims import add as add_dims
from fairlead_onnx._call import Call, as_dim
from fairlead_onnx._rules import rule
from fairlead_onnx._writer import Declined, Ref, Writer

__all__ = ["LAST", "take_slice"]

LAST = 2**63 - 1
"""The end of a slice that goes to the end."""


@rule("aten.view.default", "aten.reshape.default", "aten._unsafe_view.default")
def view(c: Call) -> Ref:
    source, target = c.type(0).shape, c.out.shape
    if source == target:
        return c.tensor(0)
    symbolic = [d for d in target if not isinstance(d, int)]
    if len(symbolic) > 1 and 0 not in target:
        kept = [0 if i < len(source) and source[i] == d and not isinstance(d, int) else d for i, d in enumerate(target)]
        open_ = [d for d in kept if not isinstance(d, int)]
        if len(open_) <= 1:  # 0 copies the dimension of the input, -1 is inferred
            return c.writer.op("Reshape", c.tensor(0), c.writer.ints(*(d if isinstance(d, int) else -1 for d in kept)))
    return c.writer.reshape(c.tensor(0), target)


@rule("aten.permute.default")
def permute(c: Call) -> Ref:
    rank = c.rank(0)
    order = tuple(d % rank for d in c.ints(1)) if rank else ()
    return c.tensor(0) if order == tuple(range(rank)) else c.writer.op("Transpose", c.tensor(0), perm=order)


@rule("aten.expand.default")
def expand(c: Call) -> Ref:
    source, target = c.type(0).shape, c.out.shape
    if source == target:
        return c.tensor(0)
    padded = (*(None for _ in range(len(target) - len(source))), *source)
    needed: list[Dim] = [1 if have == want else want for have, want in zip(padded, target, strict=True)]
    x = c.tensor(0)
    if x.dtype is DType.bool or x.dtype in (DType.u8, DType.i8, DType.i16):
        wide = c.writer.kernel_dtype("Expand", x.dtype)
        return c.writer.cast(c.writer.op("Expand", c.writer.cast(x, wide), c.writer.shape(needed)), x.dtype)
    return c.writer.op("Expand", x, c.writer.shape(needed))


@rule("aten.unsqueeze.default")
def unsqueeze(c: Call) -> Ref:
    return c.writer.op("Unsqueeze", c.tensor(0), c.writer.ints(cast(int, c.args[1]) % (c.rank(0) + 1)))


@rule("aten.squeeze.dims")
def squeeze(c: Call) -> Ref:
    shape = c.type(0).shape
    dims = [d for d in c.axes(1) if c.rank(0) and shape[d] == 1] if c.args[1] else []
    return c.writer.op("Squeeze", c.tensor(0), c.writer.ints(*dims)) if dims else c.tensor(0)


@rule("aten.select.int")
def select(c: Call) -> Ref:
    return c.writer.op("Gather", c.tensor(0), c.operand(c.args[2], DType.i64), axis=c.axis(1))


@rule("aten.unbind.int")
def unbind(c: Call) -> tuple[Ref | None, ...]:
    axis = c.axis(1)
    return tuple(
        None if r is None else c.writer.op("Gather", c.tensor(0), c.writer.number(i, DType.i64), axis=axis)
        for i, r in enumerate(c.node.results)
    )


@rule("aten.slice.Tensor")
def slice_(c: Call) -> Ref:
    axis = c.axis(1)
    start = 0 if c.args[2] is None else as_dim(c.args[2], c.node.op)
    end = LAST if c.args[3] is None else as_dim(c.args[3], c.node.op)
    step = as_dim(c.args[4], c.node.op)
    if (start, step) == (0, 1) and c.out.shape == c.type(0).shape:
        return c.tensor(0)
    return take_slice(c.writer, c.tensor(0), axis, start, end, step)


def take_slice(w: Writer, x: Ref, axis: int, start: Dim, end: Dim, step: Dim = 1) -> Ref:
    """``x[start:end:step]`` along an axis."""
    return w.op("Slice", x, w.dim(start), w.dim(end), w.ints(axis), w.dim(step))


@rule("aten.split_with_sizes.default")
def split_with_sizes(c: Call) -> tuple[Ref | None, ...]:
    x = c.tensor(0)
    axis = c.axis(2)
    wanted = [i for i, r in enumerate(c.node.results) if r is not None]
    if len(wanted) > 1 and "Split" not in c.writer.target.avoided:
        return c.writer.ops("Split", x, c.writer.shape(c.dims(1)), dtypes=[x.dtype] * len(c.node.results), axis=axis)
    starts: list[Dim] = [0]
    for size in c.dims(1):
        starts.append(add_dims(starts[-1], size))
    return tuple(
        take_slice(c.writer, x, axis, starts[i], starts[i + 1]) if i in wanted else None
        for i in range(len(c.node.results))
    )


@rule("aten.cat.default")
def cat(c: Call) -> Ref:
    parts = cast("tuple[Value, ...]", c.args[0])
    parts = tuple(
        p for p in parts if p.tensor.shape != (0,) or c.out.rank == 1
    )  # torch lets empty 1-D tensors join anything
    refs = [c.operand(p, c.dtype) for p in parts]
    if len(refs) == 1:
        return refs[0]
    w, axis = c.writer, cast(int, c.args[1]) % c.out.rank
    if f"Concat of {len(refs)}" in w.target.avoided and len({p.tensor.shape for p in parts}) == 1:
        rows = [w.op("Unsqueeze", ref, w.ints(axis)) for ref in refs]
        return w.reshape(w.op("Concat", *rows, axis=axis), c.out.shape)
    return w.op("Concat", *refs, axis=axis)


@rule("aten.stack.default")
def stack(c: Call) -> Ref:
    axis = cast(int, c.args[1]) % c.out.rank
    parts = [
        c.writer.op("Unsqueeze", c.operand(p, c.dtype), c.writer.ints(axis))
        for p in cast("tuple[Value, ...]", c.args[0])
    ]
    return c.writer.op("Concat", *parts, axis=axis)


@rule("aten.flip.default")
def flip(c: Call) -> Ref:
    if not c.rank(0) or not c.args[1]:
        return c.tensor(0)
    axes = c.axes(1)
    n, w = len(axes), c.writer
    return w.op("Slice", c.tensor(0), w.ints(*[-1] * n), w.ints(*[-LAST] * n), w.ints(*axes), w.ints(*[-1] * n))


@rule("aten.roll.default")
def roll(c: Call) -> Ref:
    w, x, shifts = c.writer, c.tensor(0), c.ints(1)
    dims = c.ints(2) if c.args[2] else ()
    if not dims:
        (shift,) = shifts
        flat = _rolled(w, w.op("Reshape", x, w.ints(-1)), 0, shift, None)
        return w.reshape(flat, c.out.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        axis = dim % c.rank(0)
        x = _rolled(w, x, axis, shift, c.out.shape[axis])
    return x


def _rolled(w: Writer, x: Ref, axis: int, shift: int, size: Dim | None) -> Ref:
    if not isinstance(size, int):
        raise Declined("roll of a dynamic or flattened dimension")
    shift = shift % size if size else 0
    if shift == 0:
        return x
    return w.op("Concat", take_slice(w, x, axis, -shift, LAST), take_slice(w, x, axis, 0, -shift), axis=axis)


@rule("aten.repeat.default")
def repeat(c: Call) -> Ref:
    w, x, times = c.writer, c.tensor(0), c.dims(1)
    extra = len(times) - c.rank(0)
    if extra:
        x = w.reshape(x, (*[1] * extra, *c.type(0).shape))
    if x.dtype not in (DType.f32, DType.f64, DType.i32, DType.i64, DType.bool):
        return w.cast(w.op("Tile", w.cast(x, DType.i32), w.shape(times)), x.dtype)
    return w.op("Tile", x, w.shape(times)) if times else x


@rule("aten.constant_pad_nd.default")
def constant_pad(c: Call) -> Ref:
    w, rank = c.writer, c.rank(0)
    given = c.dims(1)
    pads: list[Dim] = [0] * (2 * rank)
    for i in range(len(given) // 2):
        pads[rank - 1 - i] = given[2 * i]
        pads[2 * rank - 1 - i] = given[2 * i + 1]
    x, value = c.tensor(0), c.operand(c.args[2], c.dtype)
    if any(isinstance(p, int) and p < 0 for p in pads):
        x, pads = _cropped(c, x, pads)
    wide = w.kernel_dtype("Pad", x.dtype)
    return w.cast(w.op("Pad", w.cast(x, wide), w.shape(pads), w.cast(value, wide)), x.dtype)


def _cropped(c: Call, x: Ref, pads: list[Dim]) -> tuple[Ref, list[Dim]]:
    """Negative pads as slices, which every runtime has."""
    rank = len(pads) // 2
    for axis in range(rank):
        before, after = pads[axis], pads[axis + rank]
        if not (isinstance(before, int) and isinstance(after, int)):
            raise Declined("a pad that mixes negative and symbolic sizes")
        if before < 0 or after < 0:
            x = take_slice(c.writer, x, axis, max(-before, 0), after if after < 0 else LAST)
    return x, [max(p, 0) for p in pads if isinstance(p, int)]


@rule("aten.diagonal.default")
def diagonal(c: Call) -> Ref:
    offset, first, second = c.ints(1)[0], c.axis(2), c.axis(3)
    rows, columns = c.static(0)[first], c.static(0)[second]
    w, rank = c.writer, c.rank(0)
    rest = [d for d in range(rank) if d not in (first, second)]
    x = w.op("Transpose", c.tensor(0), perm=(first, second, *rest))
    length = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    if length == 0:
        raise Declined("an empty diagonal")
    where = [i for k in range(length) for i in (k - min(offset, 0), k + max(offset, 0))]
    picked = w.op("GatherND", x, w.const(where, DType.i64, (length, 2)))
    return picked if not rest else w.op("Transpose", picked, perm=(*range(1, len(rest) + 1), 0))


@rule("aten.diagonal_scatter.default")
def diagonal_scatter(c: Call) -> Ref:
    """Arguments: self, src, offset, and the two dimensions. The diagonal is the last dimension of src."""
    w, rank, shape = c.writer, c.rank(0), c.static(0)
    offset, first, second = c.ints(2)[0], c.axis(3), c.axis(4)
    rows, columns = shape[first], shape[second]
    length = c.static(1)[-1]
    if 0 in shape or length == 0:
        return c.tensor(0)
    rest = [d for d in range(rank) if d not in (first, second)]
    order = (*rest, first, second)
    outer = [shape[d] for d in rest]
    flat = w.reshape(w.op("Transpose", c.tensor(0), perm=order), (*outer, rows * columns))
    both = w.op("Concat", flat, c.tensor(1, c.dtype), axis=len(rest))
    taken = {(i - min(offset, 0)) * columns + i + max(offset, 0): rows * columns + i for i in range(length)}
    places = w.ints(*(taken.get(i, i) for i in range(rows * columns)))
    out = w.reshape(w.op("Gather", both, places, axis=len(rest)), (*outer, rows, columns))
    return w.op("Transpose", out, perm=tuple(order.index(d) for d in range(rank)))


@rule("aten.tril.default")
def tril(c: Call) -> Ref:
    return _triangle(c, upper=0)


@rule("aten.triu.default")
def triu(c: Call) -> Ref:
    return _triangle(c, upper=1)


def _triangle(c: Call, *, upper: int) -> Ref:
    w, x = c.writer, c.tensor(0)
    wide = w.kernel_dtype("Trilu", x.dtype)
    return w.cast(w.op("Trilu", w.cast(x, wide), c.operand(c.args[1], DType.i64), upper=upper), x.dtype)


@rule("aten.select_scatter.default")
def select_scatter(c: Call) -> Ref:
    axis, index = c.axis(2), as_dim(c.args[3], c.node.op)
    w = c.writer
    patch = w.op("Unsqueeze", c.tensor(1, c.dtype), w.ints(axis))
    if isinstance(index, int) and index < 0:
        index = _plus(c.type(0).shape[axis], index)
    return _patched(c, patch, axis, index, _plus(index, 1))


@rule("aten.slice_scatter.default")
def slice_scatter(c: Call) -> Ref:
    if c.args[5] != 1:
        return _every_few(c)
    axis = c.axis(2)
    size = c.type(0).shape[axis]
    start = _bound(c.args[3], size, 0, c.node.op)
    return _patched(c, c.tensor(1, c.dtype), axis, start, _plus(start, c.type(1).shape[axis]))


def _every_few(c: Call) -> Ref:
    """Of both tensors, one behind the other, the rows that the result has."""
    axis, step = c.axis(2), c.ints(5)[0]
    size, count = c.static(0)[axis], c.static(1)[axis]
    start = _bound(c.args[3], size, 0, c.node.op)
    assert isinstance(start, int)
    taken = {start + i * step: size + i for i in range(count)}
    both = c.writer.op("Concat", c.tensor(0), c.tensor(1, c.dtype), axis=axis)
    return c.writer.op("Gather", both, c.writer.ints(*(taken.get(i, i) for i in range(size))), axis=axis)


def _bound(given: object, size: Dim, default: Dim, op: str) -> Dim:
    if given is None:
        return default
    bound = as_dim(cast("int | DimExpr", given), op)
    if isinstance(bound, int) and bound < 0:
        bound = _plus(size, bound)
        bound = max(bound, 0) if isinstance(bound, int) else bound
    return min(bound, size) if isinstance(bound, int) and isinstance(size, int) else bound


def _plus(a: Dim, b: Dim) -> Dim:
    return add_dims(a, b)


def _patched(c: Call, patch: Ref, axis: int, start: Dim, end: Dim) -> Ref:
    """The operand with ``start`` to ``end`` along an axis replaced."""
    w, x, size = c.writer, c.tensor(0), c.type(0).shape[axis]
    parts = [] if start == 0 else [take_slice(w, x, axis, 0, start)]
    parts.append(patch)
    if end != size:
        parts.append(take_slice(w, x, axis, end, LAST))
    return w.op("Concat", *parts, axis=axis) if len(parts) > 1 else patch


@rule("aten.as_strided.default")
def as_strided(c: Call) -> Ref:
    raise Declined("as_strided reads memory, not elements")
