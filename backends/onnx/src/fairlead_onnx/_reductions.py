"""Rules that fold dimensions: sums, extrema, arguments, scans, sorting."""

from __future__ import annotations

import functools
import math
import sys
from typing import cast

from fairlead.ir import DType
from fairlead.ir.dims import add as add_dims
from fairlead.ir.dims import product
from fairlead_onnx._call import Call, Rule, as_dim
from fairlead_onnx._creation import filled, iota
from fairlead_onnx._logic import is_nan
from fairlead_onnx._ranges import guarded
from fairlead_onnx._rules import rule
from fairlead_onnx._target import DOMAIN
from fairlead_onnx._writer import Declined, Ref, Writer

__all__ = ["everywhere", "extreme", "reduce", "reduced_long"]


def reduce(w: Writer, op: str, x: Ref, axes: tuple[int, ...], *, keep: bool = True) -> Ref:
    """One of ONNX's reductions over ``axes``; the element itself where there are none."""
    return w.same_axes(op, x, axes, keep) if axes else x


_LONG, _LONG_TOGETHER = 2**13, 2**16
"""Sums of more terms, along one dimension or several, are taken in two steps where the runtime adds serially. Norms,
which it fuses, have fewer. A prime number of terms has no parts."""


def reduced_long(c: Call, op: str, x: Ref, axes: tuple[int, ...], *, keep: bool) -> Ref:
    """A sum or mean of as many terms as the first operand has: of many as that of parts, which rounds less."""
    w, shape = c.writer, c.type(0).shape
    if "ReduceSum" in w.target.avoided and any(isinstance(shape[a], str) for a in axes):
        return _reduced_of_any_size(c, op, x, axes, keep=keep)
    sizes = [n for n in (shape[a] for a in axes) if isinstance(n, int)]
    size = math.prod(sizes) if len(sizes) == len(axes) else 0  # 0 where it is not known
    is_long = size > (_LONG if len(axes) == 1 else _LONG_TOGETHER)
    if not w.target.sums_serially or not is_long or axes != tuple(range(axes[0], axes[-1] + 1)):
        return reduce(w, op, x, axes, keep=keep)
    before, after = shape[: axes[0]], shape[axes[-1] + 1 :]
    count = next(n for n in range(math.isqrt(size), 0, -1) if size % n == 0)
    parts = w.reshape(x, (*before, count, size // count, *after))
    sums = reduce(w, op, parts, (axes[0] + 1,), keep=False)
    apart = w.reshape(sums, (*before, 1, count, *after))  # so that no runtime makes one sum of the two
    out = reduce(w, op, apart, (axes[0], axes[0] + 1), keep=False)
    return w.reshape(out, (*before, *(1 for _ in axes), *after)) if keep else out


def _reduced_of_any_size(c: Call, op: str, x: Ref, axes: tuple[int, ...], *, keep: bool) -> Ref:
    """A sum or mean of the first operand, which may be of nothing, with a zero added along each size that may be 0."""
    w, shape = c.writer, list(c.type(0).shape)
    count = _degrees(c, product(shape[a] for a in axes), 0.0)
    for axis in axes:
        if isinstance(shape[axis], str):
            zero = filled(w, w.number(0.0, x.dtype), (*shape[:axis], 1, *shape[axis + 1 :]))
            x = w.op("Concat", x, zero, axis=axis)
            shape[axis] = add_dims(shape[axis], 1)
    total = reduce(w, "ReduceSum", x, axes, keep=keep)
    return total if op == "ReduceSum" else w.same("Div", total, count)


def everywhere(w: Writer, truth: Ref, axes: tuple[int, ...], *, keep: bool = True) -> Ref:
    """Whether a condition holds all along ``axes``."""
    return w.cast(reduce(w, "ReduceMin", w.cast(truth, DType.i32), axes, keep=keep), DType.bool)


def _keep(c: Call, index: int) -> bool:
    return len(c.args) > index and bool(c.args[index])


def _is_empty(c: Call) -> bool:
    return 0 in c.type(0).shape


@rule("aten.sum.dim_IntList", "aten.sum.default")
def total(c: Call) -> Ref:
    if _is_empty(c):
        return filled(c.writer, c.operand(0, c.dtype), c.out.shape)
    axes = c.axes(1) if len(c.args) > 2 else tuple(range(c.rank(0)))
    return _summed(c, axes, keep=len(c.args) > 2 and _keep(c, 2))


def _summed(c: Call, axes: tuple[int, ...], *, keep: bool) -> Ref:
    """Integers wrap at the width of the result.

    ONNX Runtime's ReduceSum of integers adds in f64, and saturates: sums of 64 bits are the last of running sums.
    """
    w, x = c.writer, c.tensor(0, c.dtype)
    if (bags := _bags(c, x, axes, keep=keep)) is not None:
        return bags
    if x.dtype.is_floating:
        return reduced_long(c, "ReduceSum", x, axes, keep=keep)
    if "ReduceSum" in w.target.avoided:
        return _summed_in_f64(c, x, axes, keep=keep)
    x = w.cast(x, DType.i64)
    if c.type(0).dtype is not DType.i64:
        return w.cast(reduce(w, "ReduceSum", x, axes, keep=keep), c.dtype)
    for axis in axes:
        x = w.op("Gather", w.op("CumSum", x, w.number(axis, DType.i64)), w.ints(-1), axis=axis)
    return w.cast(w.op("Squeeze", x, w.ints(*axes)) if axes and not keep else x, c.dtype)


def _bags(c: Call, x: Ref, axes: tuple[int, ...], *, keep: bool) -> Ref | None:
    """The sums over ``axes`` where those add up rows that were looked up, and the runtime does both at once."""
    w, shape = c.writer, c.type(0).shape
    if not w.target.pools or x.dtype is not DType.f32 or x.name not in w.looked_up or keep:
        return None
    if len(shape) != 3 or axes != (1,) or not (isinstance(shape[1], int) and 0 < shape[1] <= _LONG):
        return None
    table, places, size = w.looked_up[x.name]
    return w.op("EmbeddingBag", table, guarded(w, places, size), domain=DOMAIN)


_EXACT = 2**21
"""So many integers of 32 bits have a sum that f64 holds."""


def _summed_in_f64(c: Call, x: Ref, axes: tuple[int, ...], *, keep: bool) -> Ref:
    """A sum of integers, those of 64 bits as halves of 32 bits."""
    w, dtype, sizes = c.writer, c.type(0).dtype, [c.type(0).shape[a] for a in axes]
    count = math.prod(n for n in sizes if isinstance(n, int)) if all(isinstance(n, int) for n in sizes) else math.inf
    if count > _EXACT and dtype not in (DType.bool, DType.u8, DType.i8):
        raise Declined(f"{w.target.name} adds integers in floating point, and these may be too many")

    def added(part: Ref) -> Ref:
        return w.cast(reduce(w, "ReduceSum", w.cast(part, DType.f64), axes, keep=keep), DType.i64)

    if dtype is not DType.i64:
        return w.wrapped(added(x), c.dtype)
    base = w.number(2**32, DType.i64)
    low = w.same("Mod", x, base)
    high = w.same("Div", w.same("Sub", x, low), base)
    return w.cast(w.same("Add", w.same("Mul", added(high), base), added(low)), c.dtype)


@rule("aten.mean.dim", "aten.mean.default")
def mean(c: Call) -> Ref:
    if _is_empty(c):
        return filled(c.writer, c.operand(float("nan"), c.dtype), c.out.shape)
    w, x = c.writer, c.tensor(0, c.dtype)
    axes = c.axes(1) if len(c.args) > 2 else tuple(range(c.rank(0)))
    keep = len(c.args) > 2 and _keep(c, 2)
    if (bags := _bags(c, x, axes, keep=keep)) is not None:
        return w.same("Div", bags, w.cast(w.scalar(w.dim(c.type(0).shape[1])), DType.f32))
    return reduced_long(c, "ReduceMean", x, axes, keep=keep)


@rule("aten.prod.dim_int", "aten.prod.default")
def prod(c: Call) -> Ref:
    if _is_empty(c):
        return filled(c.writer, c.operand(1, c.dtype), c.out.shape)
    given = len(c.args) > 2 and isinstance(c.args[1], int)
    axes = c.axes(1) if given else tuple(range(c.rank(0)))
    keep = given and _keep(c, 2)
    if not c.dtype.is_floating:
        return _multiplied(c, axes, keep=keep)
    return reduce(c.writer, "ReduceProd", c.tensor(0, c.dtype), axes, keep=keep)


_FEW = 16
"""So many integers along a dimension are multiplied one by one."""


def _multiplied(c: Call, axes: tuple[int, ...], *, keep: bool) -> Ref:
    """A product of few integers one by one: runtimes multiply them in floating point, which does not wrap."""
    w, x, sizes = c.writer, c.tensor(0, c.dtype), [c.type(0).shape[a] for a in axes]
    for axis, size in zip(axes, sizes, strict=True):
        if not isinstance(size, int) or size > _FEW:
            raise Declined(f"{w.target.name} multiplies integers in floating point, and these may be too many")
        first, *others = (w.op("Gather", x, w.ints(n), axis=axis) for n in range(size))
        x = functools.reduce(lambda a, b: w.same("Mul", a, b), others, first)
    return w.op("Squeeze", x, w.ints(*axes)) if axes and not keep else x


@rule("aten.any.dims", "aten.any.dim", "aten.any.default")
def any_(c: Call) -> Ref:
    return _truth(c, "ReduceMax", empty=False)


@rule("aten.all.dims", "aten.all.dim", "aten.all.default")
def all_(c: Call) -> Ref:
    return _truth(c, "ReduceMin", empty=True)


def _truth(c: Call, op: str, *, empty: bool) -> Ref:
    w = c.writer
    if _is_empty(c):
        return w.cast(filled(w, w.number(empty, DType.bool), c.out.shape), c.dtype)
    axes = c.axes(1) if len(c.args) > 1 else tuple(range(c.rank(0)))
    folded = reduce(w, op, w.cast(w.cast(c.tensor(0), DType.bool), DType.i32), axes, keep=_keep(c, 2))
    return w.cast(w.cast(folded, DType.bool), c.dtype)


@rule("aten.amax.default")
def amax(c: Call) -> Ref:
    return extreme(c, "ReduceMax", c.tensor(0), c.axes(1), keep=_keep(c, 2))


@rule("aten.amin.default")
def amin(c: Call) -> Ref:
    return extreme(c, "ReduceMin", c.tensor(0), c.axes(1), keep=_keep(c, 2))


@rule("aten.max.default")
def max_all(c: Call) -> Ref:
    return extreme(c, "ReduceMax", c.tensor(0), tuple(range(c.rank(0))), keep=False)


@rule("aten.min.default")
def min_all(c: Call) -> Ref:
    return extreme(c, "ReduceMin", c.tensor(0), tuple(range(c.rank(0))), keep=False)


def extreme(c: Call, op: str, x: Ref, axes: tuple[int, ...], *, keep: bool) -> Ref:
    """The largest or smallest element, or a NaN where there is one: runtimes ignore it unless it comes first."""
    if _is_empty(c):
        raise Declined("the extremum of an empty tensor")
    w = c.writer
    if axes and not x.dtype.is_floating and (op in w.target.avoided or not w.has(op, x.dtype)):
        return _ranked_extreme(c, op, axes, keep=keep)
    out = reduce(w, op, x, axes, keep=keep)
    if not x.dtype.is_floating or not axes:
        return out
    if w.target.reduces_from_finite:
        worst = w.number(-math.inf if op == "ReduceMax" else math.inf, x.dtype)
        out = w.select(everywhere(w, w.same("Equal", x, worst, result=DType.bool), axes, keep=keep), worst, out)
    return w.select(_has_nan(w, x, axes, keep=keep), w.number(float("nan"), x.dtype), out)


def _ranked_extreme(c: Call, op: str, axes: tuple[int, ...], *, keep: bool) -> Ref:
    """As the first of all that are sorted, where a reduction computes in floats and loses digits of integers."""
    w, x, axis = c.writer, c.tensor(0), axes[0]
    if len(axes) > 1:
        if len(axes) < c.rank(0):
            raise Declined(f"{w.target.name} reduces integers to an extremum along one or all dimensions")
        x, axis = w.op("Reshape", x, w.ints(-1)), 0
    wide = w.kernel_dtype("TopK", x.dtype)
    first, _ = w.ops(
        "TopK",
        w.cast(x, wide),
        w.ints(1),
        dtypes=(wide, DType.i64),
        axis=axis,
        largest=int(op == "ReduceMax"),
        sorted=1,
    )
    return w.cast(first if keep and len(axes) == 1 else w.reshape(first, c.out.shape), x.dtype)


def _has_nan(w: Writer, x: Ref, axes: tuple[int, ...], *, keep: bool) -> Ref:
    return w.cast(reduce(w, "ReduceMax", w.cast(is_nan(w, x), DType.i32), axes, keep=keep), DType.bool)


@rule("aten.max.dim")
def max_dim(c: Call) -> tuple[Ref | None, ...]:
    return _extreme_and_place(c, "Max")


@rule("aten.min.dim")
def min_dim(c: Call) -> tuple[Ref | None, ...]:
    return _extreme_and_place(c, "Min")


def _extreme_and_place(c: Call, op: str) -> tuple[Ref | None, ...]:
    axis, keep = c.axis(1), _keep(c, 2)
    values = extreme(c, f"Reduce{op}", c.tensor(0), (axis,) if c.rank(0) else (), keep=keep) if c.wants(0) else None
    places = _place(c, f"Arg{op}", axis, keep=keep) if c.wants(1) else None
    return values, places


@rule("aten.argmax.default")
def argmax(c: Call) -> Ref:
    return _argument(c, "ArgMax")


@rule("aten.argmin.default")
def argmin(c: Call) -> Ref:
    return _argument(c, "ArgMin")


def _argument(c: Call, op: str) -> Ref:
    if c.args[1] is not None:
        return _place(c, op, c.axis(1), keep=_keep(c, 2))
    flat = c.writer.op("Reshape", c.exact(0), c.writer.ints(-1))
    place = _place_of(c.writer, op, flat, 0, keep=False)
    return c.writer.reshape(place, c.out.shape) if _keep(c, 2) else place


def _place(c: Call, op: str, axis: int, *, keep: bool) -> Ref:
    if _is_empty(c):
        raise Declined("the place of the extremum of an empty tensor")
    if c.rank(0) == 0:
        return c.operand(0, DType.i64)
    return _place_of(c.writer, op, c.exact(0), axis, keep=keep)


def _place_of(w: Writer, op: str, x: Ref, axis: int, *, keep: bool) -> Ref:
    """The first place of the extremum; the first NaN where there is one."""
    wide = w.kernel_dtype(op, x.dtype)
    place = w.op(op, w.cast(x, wide), dtype=DType.i64, axis=axis, keepdims=int(keep))
    if not x.dtype.is_floating:
        return place
    nan = w.cast(is_nan(w, x), wide)
    first = w.op("ArgMax", nan, dtype=DType.i64, axis=axis, keepdims=int(keep))
    return w.select(_has_nan(w, x, (axis,), keep=keep), first, place)


@rule("aten.var.correction")
def var(c: Call) -> Ref:
    return _variance(c)[0]


@rule("aten.var_mean.correction")
def var_mean(c: Call) -> tuple[Ref | None, ...]:
    return _variance(c)


def _variance(c: Call) -> tuple[Ref, Ref]:
    if _is_empty(c):
        nothing = filled(c.writer, c.operand(math.nan, c.dtype), c.out.shape)
        return nothing, nothing
    w, axes, keep = c.writer, c.axes(1), _keep(c, 3)
    correction = 1 if c.args[2] is None else c.number(2)
    x = c.tensor(0, c.dtype)
    average = reduce(w, "ReduceMean", x, axes)
    centred = w.same("Sub", x, average)
    squares = reduce(w, "ReduceSum", w.same("Mul", centred, centred), axes, keep=keep)
    count = product(c.type(0).shape[a] for a in axes)
    variance = w.same("Div", squares, _degrees(c, count, correction))
    if not keep and axes:
        average = w.op("Squeeze", average, w.ints(*axes))
    return variance, average


def _degrees(c: Call, count: int | str, correction: float) -> Ref:
    if isinstance(count, int):
        return c.operand(float(max(count - correction, 0)), c.dtype)
    w = c.writer
    number = w.cast(w.scalar(w.dim(count)), c.dtype)
    return w.same("Max", w.same("Sub", number, c.operand(float(correction), c.dtype)), w.number(0.0, c.dtype))


@rule("aten.logsumexp.default")
def logsumexp(c: Call) -> Ref:
    if _is_empty(c):
        raise Declined("logsumexp of an empty tensor")
    w, axes, x = c.writer, c.axes(1), c.tensor(0, c.dtype)
    if not axes:
        return x
    top = reduce(w, "ReduceMax", x, axes)
    infinite = w.op("IsInf", top, dtype=DType.bool)
    top = w.select(infinite, w.number(0.0, x.dtype), top)
    sums = reduce(w, "ReduceSum", w.same("Exp", w.same("Sub", x, top)), axes)
    out = w.same("Add", w.same("Log", sums), top)
    return out if _keep(c, 2) else w.op("Squeeze", out, w.ints(*axes))


@rule("aten.cumsum.default")
def cumsum(c: Call) -> Ref:
    x = c.tensor(0, c.dtype)
    if c.rank(0) == 0:
        return x
    wide = c.writer.kernel_dtype("CumSum", x.dtype)
    out = c.writer.op("CumSum", c.writer.cast(x, wide), c.writer.number(c.axis(1), DType.i64))
    return c.writer.cast(out, x.dtype)


def _sorted(arguments: int) -> Rule:
    def write(c: Call) -> tuple[Ref | None, ...]:
        dim, descending = c.args[arguments], bool(c.args[arguments + 1])
        rank = c.rank(0)
        if rank == 0:
            return c.tensor(0), c.operand(0, DType.i64)
        axis = cast(int, dim) % rank
        if c.wants(1) and "TopK of equals" in c.writer.target.avoided:
            return _sorted_by_comparing(c, axis, descending=descending)
        return _ranked(c, c.type(0).shape[axis], axis, largest=descending)

    return write


_MOST_COMPARED = 2**20
"""So many pairs are compared in less time than a switch to another runtime takes."""


def _sorted_by_comparing(c: Call, axis: int, *, descending: bool) -> tuple[Ref | None, ...]:
    """Each element with each, for a runtime that sorts, but not equal elements in their order."""
    w, type_ = c.writer, c.type(0)
    shape = type_.shape
    size = shape[axis]
    pairs = math.prod(d for d in shape if isinstance(d, int)) * (size if isinstance(size, int) else 0)
    if type_.dtype.is_floating or not type_.is_static or axis != len(shape) - 1 or not 0 < pairs <= _MOST_COMPARED:
        raise Declined(f"{w.target.name}'s TopK does not keep equal elements in order")
    x = c.tensor(0)
    own, other = w.op("Unsqueeze", x, w.ints(-1)), w.op("Unsqueeze", x, w.ints(-2))
    places = iota(w, size)
    earlier = w.same("Less", places, w.op("Unsqueeze", places, w.ints(-1)), result=DType.bool)
    smaller, larger = (own, other) if descending else (other, own)
    is_equal = w.same("Equal", own, other, result=DType.bool)
    before = w.op("Or", w.same("Less", smaller, larger, result=DType.bool), w.op("And", is_equal, earlier))
    inner = (len(shape),)
    ranks = w.op("Unsqueeze", reduce(w, "ReduceSum", w.cast(before, DType.i64), inner, keep=False), w.ints(-2))
    is_there = w.same("Equal", ranks, w.op("Unsqueeze", places, w.ints(-1)), result=DType.bool)
    found = reduce(w, "ReduceSum", w.select(is_there, places, w.number(0, DType.i64)), inner, keep=False)
    return w.op("GatherElements", x, found, axis=axis), found


rule("aten.sort.default")(_sorted(1))
rule("aten.sort.stable")(_sorted(2))


@rule("aten.histc.default")
def histc(c: Call) -> Ref:
    """How many elements are in each of some bins of one width, the last of which has both its ends."""
    w, type_ = c.writer, c.type(0)
    bins, low, high = cast(int, c.args[1]), float(c.number(2)), float(c.number(3))
    if not low < high:
        raise Declined("bins between the extremes of the operand")
    if type_.dtype is not DType.f32:
        raise Declined(f"bins of {type_.dtype}")
    size = product(type_.shape)
    if not isinstance(size, int) or size * bins > _MOST_COMPARED:
        raise Declined("bins of many elements, each compared with each bin")
    x = w.op("Reshape", c.tensor(0), w.ints(-1))
    start, width = w.number(low, x.dtype), w.number(high - low, x.dtype)
    scaled = w.same("Div", w.same("Mul", w.same("Sub", x, start), w.number(float(bins), x.dtype)), width)
    place = w.same("Min", w.same("Floor", scaled), w.number(float(bins - 1), x.dtype))
    end = w.number(high, x.dtype)
    is_counted = w.op("Not", w.op("Or", *(w.same("Less", *p, result=DType.bool) for p in ((x, start), (end, x)))))
    at = w.op("Unsqueeze", w.cast(iota(w, bins), x.dtype), w.ints(1))
    found = w.op("And", w.same("Equal", place, at, result=DType.bool), is_counted)
    return reduce(w, "ReduceSum", w.cast(found, x.dtype), (1,), keep=False)


@rule("aten.topk.default")
def topk(c: Call) -> tuple[Ref | None, ...]:
    if c.rank(0) == 0:
        return c.tensor(0), c.operand(0, DType.i64)
    return _ranked(c, as_dim(c.args[1], c.node.op), c.axis(2), largest=bool(c.args[3]))


_LARGEST = {DType.f32: (2 - 2.0**-23) * 2.0**127, DType.f64: sys.float_info.max}


_BEYOND_F32 = 2.0**200
"""Stands for an infinity among numbers of f32 in f64, far from the ends of that."""


def _ranked(c: Call, count: int | str, axis: int, *, largest: bool) -> tuple[Ref, Ref]:
    if _is_empty(c) or count == 0:
        raise Declined("sorting an empty tensor")
    w, x = c.writer, c.exact(0)
    padded = "TopK" in w.target.avoided
    if padded and x.dtype in (DType.f64, DType.i64):
        raise Declined(f"{w.target.name} takes the ends of the range of {x.dtype} for places that are not there")
    wide = w.kernel_dtype("TopK", x.dtype)
    if padded:
        wide = DType.f64 if x.dtype.is_floating else DType.i64
    keys = w.cast(x, wide)
    if padded and x.dtype.is_floating:
        end = w.number(_BEYOND_F32, wide)
        keys = w.same("Min", w.same("Max", keys, w.same("Neg", end)), end)
        keys = w.select(is_nan(w, x), w.number(2 * _BEYOND_F32, wide), keys)
    elif x.dtype.is_floating:  # runtimes leave the place of a NaN open, torch has it above infinity
        top = w.number(_LARGEST[x.dtype], x.dtype)
        finite = w.select(w.same("Less", top, x, result=DType.bool), top, x)
        keys = w.select(is_nan(w, x), w.number(math.inf, x.dtype), finite)
    values, places = w.ops(
        "TopK", keys, w.dim(count), dtypes=(wide, DType.i64), axis=axis, largest=int(largest), sorted=1
    )
    if x.dtype.is_floating:
        values = w.op("GatherElements", x, places, axis=axis)
    return w.cast(values, x.dtype), places
