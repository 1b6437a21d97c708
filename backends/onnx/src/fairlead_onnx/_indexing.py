"""Rules that read and write at computed places."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

from fairlead.ir import Dim, DType, Value
from fairlead.ir.dims import product
from fairlead_onnx._call import Call
from fairlead_onnx._creation import filled, iota
from fairlead_onnx._logic import is_nan, select
from fairlead_onnx._ranges import within
from fairlead_onnx._rules import rule
from fairlead_onnx._writer import Declined, Ref, Writer

__all__: list[str] = []


@rule("aten.embedding.default")
def embedding(c: Call) -> Ref:
    w, table, size = c.writer, c.tensor(0), c.type(0).shape[0]
    places = _places(c, 1, size)
    rows = w.op("Gather", table, places, axis=0)
    w.looked_up[rows.name] = table, places, size
    return rows


@rule("aten.embedding_dense_backward.default")
def embedding_backward(c: Call) -> Ref:
    """Arguments: grad, indices, number of rows, padding index, scale by frequency."""
    if c.args[4]:
        raise Declined("an embedding gradient scaled by frequency")
    w, grad, places = c.writer, c.tensor(0, c.dtype), _places(c, 1, c.out.shape[0], guard=True)
    rank, padding = c.rank(1), c.number(3)
    if 0 in c.type(0).shape:
        raise Declined("the gradient of an empty lookup")
    _need_few(w, c.type(0).shape)
    column = w.op("Unsqueeze", places, w.ints(rank))
    if padding >= 0:
        hidden = w.same("Equal", column, w.number(int(padding), DType.i64), result=DType.bool)
        grad = w.select(hidden, w.number(0.0, grad.dtype), grad)
    zeros = filled(w, w.number(0.0, grad.dtype), c.out.shape)
    return _added(w, zeros, c.out.shape, 1, column, grad)


@rule("aten.index_select.default")
def index_select(c: Call) -> Ref:
    w, x, places = c.writer, c.tensor(0), _places(c, 2, _along(c))
    if c.rank(0) == 0:
        return w.reshape(x, c.out.shape)
    if c.rank(2) == 0:
        places = w.op("Unsqueeze", places, w.ints(0))
    return w.op("Gather", x, places, axis=c.axis(1))


@rule("aten.gather.default")
def gather(c: Call) -> Ref:
    w = c.writer
    if not c.rank(0):
        return filled(w, c.tensor(0), c.out.shape)
    if not c.rank(2):
        picked = w.op("Gather", c.tensor(0), w.op("Reshape", _places(c, 2, _along(c)), w.ints(-1)), axis=0)
        return w.reshape(picked, c.out.shape)
    return w.op("GatherElements", c.tensor(0), _places(c, 2, _along(c), guard=True), axis=c.axis(1))


@rule("aten.scatter.src", "aten.scatter.value", "aten.scatter_add.default", "aten.scatter.reduce")
def scatter(c: Call) -> Ref:
    """Arguments: self, dim, index, src, and for one of them the reduction."""
    names = {"aten.scatter_add.default": "add", "aten.scatter.reduce": str(c.args[4]) if len(c.args) > 4 else ""}
    reduction = {"add": "add", "multiply": "mul"}.get(names.get(c.node.op, ""), "none")
    return c.tensor(0, c.dtype) if 0 in c.type(2).shape else _Scatter(c).into(c.tensor(0, c.dtype), reduction)


@rule("aten.scatter_reduce.two")
def scatter_reduce(c: Call) -> Ref:
    """Arguments: self, dim, index, src, reduction, and whether self takes part."""
    w, x, kind, takes_part = c.writer, c.tensor(0, c.dtype), str(c.args[4]), bool(c.args[5])
    if 0 in c.type(2).shape:
        return x
    start = {"sum": 0, "prod": 1, "mean": 0, "amax": -math.inf, "amin": math.inf}[kind]
    if kind in ("amax", "amin", "mean") and not x.dtype.is_floating:
        raise Declined(f"scatter_reduce {kind!r} of integers")
    places = _Scatter(c)
    if not takes_part:
        x = places.into(x, "none", w.number(start, x.dtype))
    if kind in ("sum", "prod"):
        return places.into(x, {"sum": "add", "prod": "mul"}[kind])
    if kind == "mean":
        ones = filled(w, w.number(1.0, x.dtype), c.type(0).shape)
        one = w.number(1.0, x.dtype)
        count = places.into(ones if takes_part else w.same("Mul", ones, w.number(0.0, x.dtype)), "add", one)
        return w.same("Div", places.into(x, "add"), w.same("Max", count, one))
    nan = w.number(math.nan, x.dtype)
    zero = w.number(0.0, x.dtype)
    lost = w.cast(is_nan(w, places.source), x.dtype)
    seen = places.into(w.cast(is_nan(w, x), x.dtype), "add", lost)
    out = places.into(x, {"amax": "max", "amin": "min"}[kind])
    return w.select(w.same("Less", zero, seen, result=DType.bool), nan, out)


class _Scatter:
    """Writes at the places of a call, whose index has elements. One of a 0-d tensor has one place."""

    def __init__(self, c: Call) -> None:
        w = c.writer
        self._call, self._axis = c, c.axis(1)
        flat = not c.rank(0) or not c.rank(2)
        if flat and (c.rank(0) > 1 or c.rank(2) > 1):
            raise Declined("a scatter of tensors of different ranks")
        self._flat = flat
        self._places = self._whole(_places(c, 2, _along(c), guard=True))
        self.source = w.op("Reshape", c.tensor(3, c.dtype), w.ints(-1)) if flat else _source(c)

    def _whole(self, ref: Ref) -> Ref:
        w = self._call.writer
        return w.op("Reshape", ref, w.ints(-1)) if self._flat else ref

    def into(self, x: Ref, reduction: str, source: Ref | None = None) -> Ref:
        """``x`` with the source, or a number, or another tensor of its shape, at the places."""
        w, c = self._call.writer, self._call
        if reduction != "none":
            _need_few(w, c.type(2).shape)
        source = self.source if source is None else source
        if w.is_number(source):
            source = filled(w, source, (1,) if self._flat else c.type(2).shape)
        dtype = x.dtype if reduction == "none" else w.kernel_dtype("ScatterElements", x.dtype)
        flags: dict[str, Any] = {} if reduction == "none" else {"reduction": reduction}
        whole = self._whole(w.cast(x, dtype))
        out = w.op("ScatterElements", whole, self._places, w.cast(source, dtype), axis=self._axis, **flags)
        out = w.cast(out, x.dtype)
        return w.reshape(out, c.out.shape) if self._flat else out


def _source(c: Call) -> Ref:
    """The source, cut to the size of the index; a number is spread over it."""
    w, index = c.writer, c.type(2).shape
    source = c.tensor(3, c.dtype)
    given = c.args[3]
    if not isinstance(given, Value) or given.tensor.rank == 0:
        return filled(w, source, index)
    cut = [i for i, (have, want) in enumerate(zip(given.tensor.shape, index, strict=True)) if have != want]
    return (
        w.op("Slice", source, w.ints(*[0] * len(cut)), w.shape([index[i] for i in cut]), w.ints(*cut))
        if cut
        else source
    )


@rule("aten.masked_scatter.default")
def masked_scatter(c: Call) -> Ref:
    """The elements of the source, in order, where the mask holds; eager raises where they are too few."""
    w, count = c.writer, math.prod(c.static(2))
    if count < math.prod(c.static(0)):
        raise Declined("masked_scatter of a source that may have too few elements")
    mask = c.tensor(1, DType.bool)
    if c.type(1).shape != c.out.shape:
        mask = w.cast(w.op("Expand", w.cast(mask, DType.i32), w.shape(c.out.shape)), DType.bool)
    held = w.op("Reshape", w.cast(mask, DType.i64), w.ints(-1))
    before = w.same("Sub", w.op("CumSum", held, w.number(0, DType.i64)), held)
    places = w.extremum("Min", before, w.number(count - 1, DType.i64))
    flat = w.op("Reshape", c.tensor(2, c.dtype), w.ints(-1))
    picked = w.reshape(w.op("Gather", flat, places, axis=0), c.out.shape)
    return select(w, mask, picked, c.tensor(0, c.dtype))


@rule("aten.index.Tensor")
def index(c: Call) -> Ref:
    """Advanced indexing. The indexed dimensions are moved to the front, where GatherND reads them.

    Where the runtime's GatherND is avoided, adjacent ones are one where they are.
    """
    w, x, rank = c.writer, c.tensor(0), c.rank(0)
    places = _index_tensors(c)
    axes = sorted(places)
    if 0 in c.type(0).shape:
        raise Declined("indexing an empty tensor")
    if len(axes) == 1:
        return w.op("Gather", x, _to_i64(c, places[axes[0]], c.type(0).shape[axes[0]]), axis=axes[0])
    indices, is_avoided = [places[a] for a in axes], "GatherND" in w.target.avoided
    if is_avoided and axes == list(range(axes[0], axes[0] + len(axes))):
        return _gathered_flat(c, x, list(c.type(0).shape), indices, axes[0])
    front = (*axes, *(d for d in range(rank) if d not in axes))
    if front != tuple(range(rank)):
        x = w.op("Transpose", x, perm=front)
    if is_avoided:
        out = _gathered_flat(c, x, [c.type(0).shape[d] for d in front], indices)
    else:
        out = w.op("GatherND", x, _stacked(c, indices, axes, guard=True))
    return _placed_back(w, out, axes, _broadcast_rank(places.values()), c.out.rank)


def _gathered_flat(c: Call, x: Ref, shape: Sequence[Dim], indices: Sequence[Value], first: int = 0) -> Ref:
    """GatherND as one Gather: the indexed dimensions of ``shape``, from the ``first`` on, as one, row-major."""
    w, end = c.writer, first + len(indices)
    at: Ref | None = None
    for dim, index in zip(shape[first:end], indices, strict=True):
        size = w.scalar(w.dim(dim))
        place = _to_i64(c, index, dim)
        negative = w.same("Less", place, w.number(0, DType.i64), result=DType.bool)
        place = w.select(negative, w.same("Add", place, size), place)
        at = place if at is None else w.same("Add", w.same("Mul", at, size), place)
    assert at is not None
    whole = w.reshape(x, (*shape[:first], product(shape[first:end]), *shape[end:]))
    return w.op("Gather", whole, at, axis=first)


def _placed_back(w: Writer, out: Ref, axes: list[int], index_rank: int, rank: int) -> Ref:
    """Adjacent indices stand where the first of them was, others in front, as in NumPy."""
    first = axes[0]
    if axes != list(range(first, first + len(axes))) or first == 0:
        return out
    order = (*range(index_rank, index_rank + first), *range(index_rank), *range(index_rank + first, rank))
    return w.op("Transpose", out, perm=order)


@rule("aten.index_put.default", "aten._unsafe_index_put.default")
def index_put(c: Call) -> Ref:
    """Arguments: self, indices, values, accumulate."""
    w, rank = c.writer, c.rank(0)
    masked = _single_mask(c)
    if masked is not None:
        return masked
    places = _index_tensors(c)
    axes = sorted(places)
    if 0 in c.type(0).shape:
        raise Declined("indexing an empty tensor")
    if axes != list(range(axes[0], axes[0] + len(axes))):
        raise Declined("index_put with separated indices")
    rest = [d for d in range(rank) if d not in axes]
    front = (*axes, *rest)
    moved = front != tuple(range(rank))
    x = w.op("Transpose", c.tensor(0), perm=front) if moved else c.tensor(0)
    where = _stacked(c, [places[a] for a in axes], axes, guard=True)
    index_shape = _broadcast_shape(places.values())
    updates = _updates(c, axes[0], index_shape, [c.type(0).shape[d] for d in rest])
    if c.args[3]:
        _need_few(w, (*index_shape, *(c.type(0).shape[d] for d in rest)))
        dtype = w.kernel_dtype("ScatterND add", x.dtype)
        shape = [c.type(0).shape[d] for d in front]
        out = w.cast(_added(w, w.cast(x, dtype), shape, len(axes), where, w.cast(updates, dtype)), x.dtype)
    else:
        out = w.op("ScatterND", x, where, updates)
    return w.op("Transpose", out, perm=tuple(front.index(d) for d in range(rank))) if moved else out


def _need_few(w: Writer, shape: Sequence[Dim]) -> None:
    """Raises `Declined` where the runtime, which combines one number after another, would take longer than torch."""
    count, most = product(shape), w.target.most_added
    if isinstance(count, int) and 0 < most < count:
        raise Declined(
            f"slower than eager here: {w.target.name} combines {count} numbers with those at computed places one by one"
        )


def _added(w: Writer, x: Ref, shape: Sequence[Dim], count: int, where: Ref, updates: Ref) -> Ref:
    """ScatterND that adds: ``x`` of this shape with the updates added at ``where``, places along ``count`` dimensions.

    As ScatterElements where threads of the runtime's ScatterND overwrite what the others add to one place.
    """
    if "ScatterND add" not in w.target.avoided:
        return w.op("ScatterND", x, where, updates, reduction="add")
    rows = w.op("Reshape", _row_numbers(w, shape[:count], where), w.ints(-1, 1))
    inner = product(shape[count:])
    flat = w.op("Reshape", updates, w.shape((-1, inner)))
    places = w.op("Expand", rows, w.op("Shape", flat, dtype=DType.i64))
    whole = w.reshape(x, (product(shape[:count]), inner))
    return w.reshape(w.op("ScatterElements", whole, places, flat, axis=0, reduction="add"), shape)


def _row_numbers(w: Writer, sizes: Sequence[Dim], where: Ref) -> Ref:
    """Places along several dimensions, the last of ``where``, as places along one: row-major; out of range stay so."""
    if len(sizes) == 1:
        return where
    static = [size for size in sizes if isinstance(size, int)]
    if len(static) < len(sizes):
        raise Declined("adding at several indices along dimensions of dynamic sizes")
    end, zero = w.ints(*static), w.number(0, DType.i64)
    negative = w.same("Less", where, zero, result=DType.bool)
    where = w.select(negative, w.same("Add", where, end), where)
    low = w.same("Less", where, zero, result=DType.bool)
    wrong = w.op("Or", low, w.op("Not", w.same("Less", where, end, result=DType.bool)))
    steps = [math.prod(static[k + 1 :]) for k in range(len(static))]
    row = w.op("ReduceSum", w.same("Mul", where, w.ints(*steps)), w.ints(-1), keepdims=0)
    outside = w.op("ReduceMax", w.cast(wrong, DType.i64), w.ints(-1), keepdims=0)
    return w.select(w.cast(outside, DType.bool), w.number(math.prod(static), DType.i64), row)


def _single_mask(c: Call) -> Ref | None:
    """``x[mask] = number`` is a select."""
    given = cast("tuple[Value | None, ...]", c.args[1])
    if len(given) != 1 or given[0] is None or given[0].tensor.dtype is not DType.bool:
        return None
    values = cast(Value, c.args[2])
    if values.tensor.rank and values.tensor.shape != (1,):
        raise Declined("index_put of many values at a mask")
    if c.args[3]:
        raise Declined("index_put that accumulates at a mask")
    w = c.writer
    mask = c.operand(given[0])
    extra = c.rank(0) - given[0].tensor.rank
    if extra:
        mask = w.op("Unsqueeze", mask, w.ints(*range(given[0].tensor.rank, c.rank(0))))
    return select(w, mask, c.tensor(2, c.dtype), c.tensor(0))


def _updates(c: Call, first: int, index_shape: tuple[Dim, ...], rest: list[Dim]) -> Ref:
    """The values, spread over indices and the dimensions behind them, in the order of ScatterND."""
    w = c.writer
    values, shape = c.tensor(2, c.dtype), c.type(2).shape
    head, tail = rest[:first], rest[first:]
    full = (*head, *index_shape, *tail)
    if shape != full:
        values = w.op("Expand", values, w.shape(full)) if full else values
    if not first:
        return values
    order = (*range(first, first + len(index_shape)), *range(first), *range(first + len(index_shape), len(full)))
    return w.op("Transpose", values, perm=order)


def _index_tensors(c: Call) -> dict[int, Value]:
    given = cast("tuple[Value | None, ...]", c.args[1])
    places = {i: v for i, v in enumerate(given) if v is not None}
    if not places:
        raise Declined("indexing with nothing")
    if any(v.tensor.dtype in (DType.bool, DType.u8) for v in places.values()):
        raise Declined("indexing with a mask: the size of the result depends on its values")
    return places


def _to_i64(c: Call, value: Value, size: Dim, *, guard: bool = False) -> Ref:
    places, is_static = c.operand(value, DType.i64), value.tensor.is_static
    return within(c.writer, places, size, is_static=is_static, negative=True, guard=guard)


def _stacked(c: Call, indices: list[Value], axes: Sequence[int], *, guard: bool = False) -> Ref:
    """Indices of these dimensions of the first operand, broadcast to one shape, as the last dimension of a tensor."""
    w = c.writer
    shape = _broadcast_shape(indices)
    columns = []
    for value, axis in zip(indices, axes, strict=True):
        ref = _to_i64(c, value, c.type(0).shape[axis], guard=guard)
        if value.tensor.shape != shape:
            ref = w.op("Expand", ref, w.shape(shape))
        columns.append(w.op("Unsqueeze", ref, w.ints(len(shape))))
    return columns[0] if len(columns) == 1 else w.op("Concat", *columns, axis=len(shape))


def _broadcast_rank(values: object) -> int:
    return max(v.tensor.rank for v in cast("list[Value]", values))


def _broadcast_shape(values: object) -> tuple[Dim, ...]:
    shapes = [v.tensor.shape for v in cast("list[Value]", values)]
    rank = max(map(len, shapes))
    padded = [(*[1] * (rank - len(s)), *s) for s in shapes]
    return tuple(next((d for d in column if d != 1), 1) for column in zip(*padded, strict=True))


def _places(c: Call, operand: int, size: Dim, *, guard: bool = False) -> Ref:
    is_static = c.type(operand).is_static
    return within(c.writer, c.tensor(operand, DType.i64), size, is_static=is_static, guard=guard)


def _along(c: Call) -> Dim:
    """The size of the first operand along the dimension that is the second argument."""
    return c.type(0).shape[c.axis(1)] if c.rank(0) else 1


@rule("aten.index_copy.default")
def index_copy(c: Call) -> Ref:
    """Arguments: self, dim, index, source."""
    w, axis, rank = c.writer, c.axis(1), c.rank(0)
    if rank == 0 or 0 in c.type(0).shape or 0 in c.type(2).shape:
        raise Declined("index_copy of 0-d or empty tensors")
    x, source = c.tensor(0), c.tensor(3, c.dtype)
    order = (axis, *(d for d in range(rank) if d != axis))
    places = w.op("Reshape", _places(c, 2, c.type(0).shape[axis], guard=True), w.ints(-1, 1))
    if not axis:
        return w.op("ScatterND", x, places, source)
    out = w.op("ScatterND", w.op("Transpose", x, perm=order), places, w.op("Transpose", source, perm=order))
    return w.op("Transpose", out, perm=tuple(order.index(d) for d in range(rank)))


@rule("aten.unfold.default")
def unfold(c: Call) -> Ref:
    """Windows of a static size: the places of every window, gathered, then moved last."""
    w, axis, (size, step) = c.writer, c.axis(1), (c.ints(2)[0], c.ints(3)[0])
    if c.rank(0) == 0:
        raise Declined("unfold of a 0-d tensor")
    count = c.out.shape[axis]
    starts = w.same("Mul", iota(w, count), w.number(step, DType.i64))
    places = w.same("Add", w.op("Unsqueeze", starts, w.ints(1)), iota(w, size))
    out = w.op("Gather", c.tensor(0), places, axis=axis)
    rank = c.rank(0) + 1
    order = (*(d for d in range(rank) if d != axis + 1), axis + 1)
    return w.op("Transpose", out, perm=order) if order != tuple(range(rank)) else out


@rule("aten.nonzero.default", "aten.masked_select.default", "aten.unique_consecutive.default")
def data_dependent(c: Call) -> Ref:
    raise Declined("the size of the result depends on the values of the operand")
