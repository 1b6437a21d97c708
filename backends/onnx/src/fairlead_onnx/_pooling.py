"""Rules of pooling, forward and backward."""

from __future__ import annotations

import math
from typing import cast

from fairlead.ir import DType
from fairlead.ir.dims import product
from fairlead_onnx._call import Call
from fairlead_onnx._creation import filled, iota
from fairlead_onnx._logic import is_nan
from fairlead_onnx._reductions import reduce
from fairlead_onnx._rules import rule
from fairlead_onnx._writer import Declined, Ref, Writer

__all__: list[str] = []


@rule("aten.max_pool2d_with_indices.default", "aten.max_pool3d_with_indices.default")
def max_pool(c: Call) -> tuple[Ref | None, ...]:
    """Arguments: input, kernel, stride, padding, dilation, ceil mode. Results: values, places within a channel."""
    w, space = c.writer, _space(c)
    kernel, stride, padding, dilation = _window(c, space)
    ends = _end_pads(c, kernel, stride, padding, dilation, space)
    x = c.tensor(0)
    w.kernel_dtype("MaxPool", x.dtype)

    def pooled(y: Ref, *dtypes: DType) -> tuple[Ref, ...]:
        pads = (*padding, *ends)
        return w.ops("MaxPool", y, dtypes=dtypes, kernel_shape=kernel, strides=stride, pads=pads, dilations=dilation)

    refs = pooled(x, x.dtype, *([DType.i64] if c.wants(1) else []))
    plane = product(c.type(0).shape[-space:])  # ONNX counts through the whole batch, torch within a channel
    size = w.number(plane, DType.i64) if isinstance(plane, int) else w.scalar(w.dim(plane))
    values, places = refs[0], w.same("Mod", refs[1], size) if c.wants(1) else None
    if "MaxPool" not in w.target.drops_nan:
        return values, places
    if places is None and set(dilation) == {1} and _is_non_negative(w, x):
        pads = (*padding, *ends)
        mean = w.op("AveragePool", x, kernel_shape=kernel, strides=stride, pads=pads, count_include_pad=1)
        return w.select(is_nan(w, mean), mean, values), None
    (last,) = pooled(_numbered_nans(c, space), x.dtype)
    hit = w.same("Less", w.number(0.0, last.dtype), last, result=DType.bool)
    values = w.select(hit, w.number(math.nan, x.dtype), values)
    if w.target.reduces_from_finite:
        none = w.same("Less", last, w.number(0.0, last.dtype), result=DType.bool)
        values = w.select(none, w.number(-math.inf, x.dtype), values)
    if places is not None:
        places = w.select(hit, w.cast(w.same("Sub", last, w.number(1.0, last.dtype)), DType.i64), places)
    return values, places


def _is_non_negative(w: Writer, x: Ref) -> bool:
    """Whether only a NaN makes the mean of a window NaN: no minus infinity can meet an infinity there."""
    producer = w.producer(x)
    return x.dtype is DType.f32 and producer is not None and producer.op in ("Relu", "Sigmoid")


def _numbered_nans(c: Call, space: int) -> Ref:
    """1 more than the place within its channel of each NaN, and 0 elsewhere: in a window, torch takes the last NaN.

    Where nobody asks for the places, 1 for each NaN. Below 0 for minus infinity, where the runtime starts from a finite
    number.
    """
    w, x = c.writer, c.tensor(0)
    number = w.number(1.0, x.dtype)
    if c.wants(1):
        plane = product(c.type(0).shape[-space:])
        if isinstance(plane, int) and plane >= 2**24:
            raise Declined("the places of the largest in a plane that f32 cannot count")
        counted = w.same("Add", w.cast(iota(w, plane), x.dtype), number)
        number = w.reshape(counted, c.type(0).shape[-space:])
    rest = w.number(0.0, x.dtype)
    if w.target.reduces_from_finite:
        lowest = w.same("Equal", x, w.number(-math.inf, x.dtype), result=DType.bool)
        rest = w.select(lowest, w.number(-1.0, x.dtype), rest)
    return w.select(is_nan(w, x), number, rest)


def _space(c: Call) -> int:
    space = 3 if "3d" in c.node.op else 2
    if c.rank(0) != space + 2:
        raise Declined("pooling without a batch dimension")
    if 0 in c.type(0).shape:
        raise Declined("pooling of an empty tensor")
    return space


def _window(c: Call, space: int) -> tuple[tuple[int, ...], ...]:
    kernel = c.ints(1, space)
    stride = c.ints(2, space) or kernel
    return kernel, stride, c.ints(3, space), c.ints(4, space)


def _end_pads(
    c: Call,
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    space: int,
) -> tuple[int, ...]:
    """The padding behind, which grows in ceil mode until the last window fits."""
    if not c.args[5]:
        return padding
    size = c.static(0)[-space:]
    count = cast("tuple[int, ...]", c.out.shape[-space:])
    ends = []
    for n, m, k, s, p, d in zip(size, count, kernel, stride, padding, dilation, strict=True):
        end = max(p, (m - 1) * s + d * (k - 1) + 1 - n - p)
        if end >= k:
            raise Declined("ceil mode whose last window is all padding")
        ends.append(end)
    return tuple(ends)


@rule("aten.max_pool2d_with_indices_backward.default")
def max_pool_backward(c: Call) -> Ref:
    """Arguments: grad, input, kernel, stride, padding, dilation, ceil mode, places."""
    if c.rank(1) != 4 or 0 in c.type(0).shape:
        raise Declined("pooling of an empty tensor or without a batch dimension")
    w, shape, small = c.writer, c.type(1).shape, c.type(0).shape
    planes = (*shape[:2], product(shape[2:]))
    zeros = filled(w, w.number(0.0, c.dtype), planes)
    points = (*small[:2], product(small[2:]))
    grad, places = w.reshape(c.tensor(0), points), w.reshape(c.tensor(7), points)
    summed = w.op("ScatterElements", zeros, places, grad, axis=2, reduction="add")
    return w.reshape(summed, shape)


@rule("aten.avg_pool2d.default", "aten.avg_pool3d.default")
def avg_pool(c: Call) -> Ref:
    """Arguments: input, kernel, stride, padding, ceil mode, count padding, divisor."""
    w, space = c.writer, _space(c)
    kernel = c.ints(1, space)
    stride = c.ints(2, space) or kernel
    padding = c.ints(3, space)
    if c.args[4]:
        _refuse_partial_windows(c, kernel, stride, padding, space)
    x, divisor = c.tensor(0), c.args[6]
    w.kernel_dtype("AveragePool", x.dtype)
    counted = int(bool(c.args[5]) or divisor is not None)
    pads = (*padding, *padding)
    out = w.op("AveragePool", x, kernel_shape=kernel, strides=stride, pads=pads, count_include_pad=counted)
    if divisor is None:
        return out
    return w.same("Mul", out, w.number(cast(int, product(kernel)) / float(c.number(6)), x.dtype))


def _refuse_partial_windows(
    c: Call, kernel: tuple[int, ...], stride: tuple[int, ...], padding: tuple[int, ...], space: int
) -> None:
    for n, m, k, s, p in zip(c.static(0)[-space:], c.out.shape[-space:], kernel, stride, padding, strict=True):
        if m != (n + 2 * p - k) // s + 1:
            raise Declined("average pooling in ceil mode with a last window that is cut off")


@rule("aten._adaptive_avg_pool2d.default")
def adaptive_avg_pool(c: Call) -> Ref:
    """As the means of rows, and of columns: a product with a matrix of averages would spread a NaN over all of them."""
    w, x, rank = c.writer, c.tensor(0), c.rank(0)
    sizes = c.ints(1)
    if sizes == (1, 1):
        return reduce(w, "ReduceMean", x, (rank - 2, rank - 1))
    if 0 in c.static(0):
        raise Declined("pooling of an empty tensor")
    for axis, size, count in zip((rank - 2, rank - 1), c.static(0)[-2:], sizes, strict=True):
        if size != count:
            x = w.op("Concat", *_means(w, x, axis, _adaptive_windows(size, count)), axis=axis)
    return x


def _means(w: Writer, x: Ref, axis: int, windows: list[tuple[int, int]]) -> list[Ref]:
    slices = (w.op("Slice", x, w.ints(start), w.ints(end), w.ints(axis)) for start, end in windows)
    return [reduce(w, "ReduceMean", part, (axis,)) for part in slices]


@rule("aten._adaptive_avg_pool2d_backward.default")
def adaptive_avg_pool_backward(c: Call) -> Ref:
    w, grad, rank = c.writer, c.tensor(0), c.rank(0)
    if 0 in c.static(0):
        raise Declined("pooling of an empty tensor")
    windows = {
        axis: [list(range(*window)) for window in _adaptive_windows(c.static(1)[axis], c.static(0)[axis])]
        for axis in (rank - 2, rank - 1)
    }
    for axis, places in windows.items():
        grad = w.same("Div", grad, _lengths(w, places, rank - 1 - axis, grad.dtype))
    for axis, places in windows.items():
        grad = _summed_groups(w, grad, axis, _inverted(places, c.static(1)[axis]))
    return grad


def _inverted(windows: list[list[int]], size: int) -> list[list[int]]:
    """The windows of each place."""
    return [[i for i, window in enumerate(windows) if place in window] for place in range(size)]


def _summed_groups(w: Writer, x: Ref, axis: int, groups: list[list[int]]) -> Ref:
    """The sum of each group of places along an axis, groups of one size at a time.

    A product with a matrix of zeros and ones would bring a NaN or an infinity into every group.
    """
    parts: list[Ref] = []
    order: list[int] = []
    for length in sorted({len(g) for g in groups}):
        chosen = [i for i, g in enumerate(groups) if len(g) == length]
        order += chosen
        places = w.const([p for i in chosen for p in groups[i]], DType.i64, (len(chosen), length))
        parts.append(reduce(w, "ReduceSum", w.op("Gather", x, places, axis=axis), (axis + 1,), keep=False))
    if len(parts) == 1:
        return parts[0]
    together = w.op("Concat", *parts, axis=axis)
    return w.op("Gather", together, w.ints(*(order.index(i) for i in range(len(groups)))), axis=axis)


def _lengths(w: Writer, windows: list[list[int]], behind: int, dtype: DType) -> Ref:
    """The length of each window along an axis with ``behind`` others behind it."""
    return w.const([float(len(g)) for g in windows], dtype, (len(windows), *[1] * behind))


def _adaptive_windows(size: int, count: int) -> list[tuple[int, int]]:
    """Where each window starts and ends. Source: the start and end index of ATen's adaptive pooling."""
    return [(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]


@rule("aten.avg_pool2d_backward.default")
def avg_pool_backward(c: Call) -> Ref:
    """The gradient of the input, as two products with window matrices.

    Arguments: grad, input, kernel, stride, padding, ceil mode, count padding, divisor.
    """
    w, grad = c.writer, c.tensor(0)
    size, count = c.static(1)[-2:], c.static(0)[-2:]
    if 0 in c.static(0):
        raise Declined("pooling of an empty tensor")
    kernel = c.ints(2, 2)
    stride, padding = c.ints(3, 2) or kernel, c.ints(4, 2)
    counted, divisor = bool(c.args[6]), c.args[7]
    sides = [
        w.const(
            _windows(size[i], count[i], (kernel[i], stride[i], padding[i]), counted, divisor is not None),
            grad.dtype,
            (count[i], size[i]),
        )
        for i in range(2)
    ]
    out = w.same("MatMul", w.same("MatMul", w.op("Transpose", sides[0], perm=(1, 0)), grad), sides[1])
    return out if divisor is None else w.same("Div", out, w.number(float(c.number(7)), grad.dtype))


def _windows(size: int, count: int, window: tuple[int, int, int], counted: bool, plain: bool) -> list[float]:
    """A row for each window with one over its length (or one) where it reads. Source: ATen's avg_pool2d_backward."""
    kernel, stride, padding = window
    values: list[float] = []
    for i in range(count):
        start = i * stride - padding
        end = min(start + kernel, size + padding)
        length = end - start
        start, end = max(start, 0), min(end, size)
        weight = 1.0 if plain else 1 / (length if counted else end - start)
        values += [weight if start <= j < end else 0.0 for j in range(size)]
    return values
