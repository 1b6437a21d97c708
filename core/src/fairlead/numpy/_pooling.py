"""Pooling and its gradients, in any number of dimensions.

Averages are sums along one dimension after the other, each a product with a matrix of zeros and ones; maxima are looked
for place by place.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fairlead.numpy._dtypes import Array, wide
from fairlead.numpy._indexing import checked
from fairlead.numpy._table import Call, op

Sizes = Sequence[int]


class Windows(NamedTuple):
    """Along one dimension, where the window of each output starts and ends, and the step inside it.

    ``extent`` is what a window counts for, its part of the padding included.
    """

    start: Array
    end: Array
    step: int
    extent: Array


def sliding(n: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> Windows:
    """The windows of a kernel; with ``ceil_mode`` the last may hang over, but starts before the right padding."""
    free = n + 2 * padding - dilation * (kernel - 1) - 1
    count = (free + (stride - 1 if ceil_mode else 0)) // stride + 1
    if ceil_mode and (count - 1) * stride >= n + padding:
        count -= 1
    start = np.arange(max(count, 0)) * stride - padding
    end = start + dilation * (kernel - 1) + 1
    return Windows(start, np.minimum(end, n), dilation, np.minimum(end, n + padding) - start)


def adaptive(n: int, count: int) -> Windows:
    """Windows that share out n elements among ``count`` outputs, overlapping where they have to."""
    at = np.arange(count)
    start, end = at * n // max(count, 1), -((-(at + 1) * n) // max(count, 1))
    return Windows(start, end, 1, end - start)


def _rank(call: Call) -> int:
    """How many dimensions an op pools, as its name says."""
    return next(rank for rank in (2, 3) if f"{rank}d" in call.node.op)


def _full(sizes: Sizes | int, rank: int) -> tuple[int, ...]:
    """A size for each dimension; ATen's defaults are one number for all."""
    sizes = (sizes,) if isinstance(sizes, int) else tuple(sizes)
    return sizes * rank if len(sizes) == 1 else sizes


def _all_sliding(
    spatial: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil_mode: bool
) -> list[Windows]:
    rank = len(spatial)
    kernel = _full(kernel, rank)
    stride = _full(stride, rank) if stride else kernel
    rest = (kernel, stride, _full(padding, rank), _full(dilation, rank))
    return [sliding(*sizes, ceil_mode) for sizes in zip(spatial, *rest, strict=True)]


def _matrix(w: Windows, n: int) -> Array:
    """One where an element is in the window of an output."""
    at = np.arange(n)
    return ((at >= w.start[:, None]) & (at < w.end[:, None])).astype(np.float64)


def along_each(x: Array, matrices: Sequence[Array]) -> Array:
    """The product with a matrix along each of the last dimensions."""
    for d, matrix in zip(range(-len(matrices), 0), matrices, strict=True):
        x = np.moveaxis(np.moveaxis(x, d, -1) @ matrix.T, -1, d)
    return x


def _outer(sizes: Sequence[Array]) -> Array:
    out = np.ones(())
    for size in sizes:
        out = np.multiply.outer(out, size)
    return out


def _averages(windows: Sequence[Windows], spatial: Sizes, include_pad: bool, divisor: int | None) -> Any:
    """The sums of the windows as matrices, and what each is divided by."""
    matrices = [_matrix(w, n) for w, n in zip(windows, spatial, strict=True)]
    if divisor is not None:
        return matrices, float(divisor)
    return matrices, _outer([w.extent for w in windows] if include_pad else [m.sum(1) for m in matrices])


@op("avg_pool2d", "avg_pool3d")
def _avg_pool(
    call: Call,
    x: Array,
    kernel: Sizes,
    stride: Sizes = (),
    padding: Sizes = (0,),
    ceil_mode: bool = False,
    include_pad: bool = True,
    divisor: int | None = None,
) -> Array:
    spatial = x.shape[-_rank(call) :]
    windows = _all_sliding(spatial, kernel, stride, padding, (1,), ceil_mode)
    matrices, count = _averages(windows, spatial, include_pad, divisor)
    out = along_each(wide(x).astype(np.float64), matrices) / count
    return np.trunc(out) if call.dtype.is_integer else out


@op("avg_pool2d_backward", "avg_pool3d_backward")
def _avg_pool_backward(
    call: Call,
    grad: Array,
    x: Array,
    kernel: Sizes,
    stride: Sizes,
    padding: Sizes,
    ceil_mode: bool,
    include_pad: bool,
    divisor: int | None,
) -> Array:
    spatial = x.shape[-_rank(call) :]
    windows = _all_sliding(spatial, kernel, stride, padding, (1,), ceil_mode)
    matrices, count = _averages(windows, spatial, include_pad, divisor)
    return along_each(wide(grad) / count, [m.T for m in matrices])


@op("_adaptive_avg_pool2d", "_adaptive_avg_pool3d")
def _adaptive_avg_pool(call: Call, x: Array, size: Sizes) -> Array:
    spatial = x.shape[-len(size) :]
    windows = [adaptive(n, count) for n, count in zip(spatial, size, strict=True)]
    matrices, count = _averages(windows, spatial, False, None)
    return along_each(wide(x), matrices) / count


@op("_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward")
def _adaptive_avg_pool_backward(call: Call, grad: Array, x: Array) -> Array:
    rank = _rank(call)
    spatial = x.shape[-rank:]
    windows = [adaptive(n, count) for n, count in zip(spatial, grad.shape[-rank:], strict=True)]
    matrices, count = _averages(windows, spatial, False, None)
    return along_each(wide(grad) / count, [m.T for m in matrices])


def _largest(x: Array, windows: Sequence[Windows]) -> tuple[Array, Array]:
    """The largest element of each window, the first of equals or the last NaN, and its place in the flat dimensions."""
    spatial = x.shape[-len(windows) :]
    flat = wide(x).reshape(*x.shape[: -len(windows)], math.prod(spatial))
    counts = [int(np.max(-((w.start - w.end) // w.step), initial=0)) for w in windows]
    shape = tuple(len(w.start) for w in windows)
    best = np.zeros((*flat.shape[:-1], math.prod(shape)), flat.dtype)
    where = np.full(best.shape, -1, np.int64)
    for place in itertools.product(*map(range, counts)):
        at, valid = np.zeros(shape, np.int64), np.ones(shape, bool)
        for d, (w, k, n) in enumerate(zip(windows, place, spatial, strict=True)):
            index = w.start + k * w.step
            column = (-1,) + (1,) * (len(shape) - d - 1)
            valid &= np.reshape((index >= 0) & (index < w.end), column)
            at = at * n + np.reshape(np.clip(index, 0, max(n - 1, 0)), column)
        at, valid = np.ravel(at), np.ravel(valid)
        value = flat[..., at]
        better = valid & ((where < 0) | (value > best) | np.isnan(value))
        best, where = np.where(better, value, best), np.where(better, at, where)
    out = (*x.shape[: -len(windows)], *shape)
    return best.reshape(out), where.reshape(out)


@op("max_pool2d_with_indices", "max_pool3d_with_indices")
def _max_pool(
    call: Call,
    x: Array,
    kernel: Sizes,
    stride: Sizes = (),
    padding: Sizes = (0,),
    dilation: Sizes = (1,),
    ceil_mode: bool = False,
) -> tuple[Array, Array]:
    spatial = x.shape[-_rank(call) :]
    return _largest(x, _all_sliding(spatial, kernel, stride, padding, dilation, ceil_mode))


@op("adaptive_max_pool2d", "adaptive_max_pool3d")
def _adaptive_max_pool(call: Call, x: Array, size: Sizes) -> tuple[Array, Array]:
    spatial = x.shape[-len(size) :]
    return _largest(x, [adaptive(n, count) for n, count in zip(spatial, size, strict=True)])


def _spread(values: Array, at: Array, shape: Sizes, rank: int, *, add: bool) -> Array:
    """The values at their places in the flat last dimensions, zero elsewhere."""
    lead, size = tuple(shape[:-rank]), math.prod(shape[-rank:])
    rows = np.zeros((math.prod(lead), size), values.dtype)
    at = checked(np.reshape(at, (len(rows), math.prod(at.shape[-rank:]))), size, negative=False)
    row = np.arange(len(rows))[:, None]
    if add:
        np.add.at(rows, (row, at), np.reshape(values, at.shape))
    else:
        rows[row, at] = np.reshape(values, at.shape)
    return np.reshape(rows, tuple(shape))


@op(
    "max_pool2d_with_indices_backward", "max_pool3d_with_indices_backward", "adaptive_max_pool2d_backward",
    "adaptive_max_pool3d_backward", "fractional_max_pool2d_backward", "fractional_max_pool3d_backward",
)  # fmt: skip
def _max_pool_backward(call: Call, grad: Array, x: Array, *rest: Any) -> Array:
    return _spread(wide(grad), rest[-1], x.shape, _rank(call), add=True)


@op("max_unpool2d", "max_unpool3d")
def _max_unpool(call: Call, x: Array, at: Array, size: Sizes, *rest: Any) -> Array:
    rank = len(size)
    return _spread(x, at, (*x.shape[:-rank], *size), rank, add=False)


def fractional(n: int, count: int, kernel: int, sample: float) -> Windows:
    """Windows at steps that are drawn: Graham, "Fractional max-pooling" (arXiv:1412.6071)."""
    alpha = (n - kernel) / (count - 1) if count > 1 else 0.0
    start = ((np.arange(count) + sample) * alpha).astype(np.int64) - int(sample * alpha)
    start[-1:] = n - kernel
    return Windows(start, start + kernel, 1, np.full(count, kernel))


@op("fractional_max_pool2d", "fractional_max_pool3d")
def _fractional_max_pool(call: Call, x: Array, kernel: Sizes, size: Sizes, samples: Array) -> tuple[Array, Array]:
    """The samples of a channel are of the last dimension first in two dimensions, and of the first one in three."""
    rank = len(size)
    planes = np.reshape(x, (-1, *x.shape[-rank:]))
    drawn = np.reshape(wide(samples), (-1, rank))
    drawn = drawn[:, ::-1] if rank == 2 else drawn
    shape = (*x.shape[:-rank], *size)
    if len(planes) == 0:
        return np.empty(shape), np.empty(shape, np.int64)
    parts = [
        _largest(plane, [fractional(*a) for a in zip(plane.shape, size, kernel, drawn[i], strict=True)])
        for i, plane in enumerate(planes)
    ]
    return tuple(np.reshape(np.stack(p), shape) for p in zip(*parts, strict=True))  # type: ignore[return-value]
