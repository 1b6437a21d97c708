"""Reductions, accumulated in float64, complex128, or wrapping integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fairlead.ir import DType
from fairlead.numpy._dtypes import Array, cast, floating, operand, wide
from fairlead.numpy._table import Call, op
from fairlead.numpy._views import axis

Dims = int | Sequence[int] | None


def axes(x: Array, dims: Dims, empty_is_all: bool = True) -> tuple[int, ...]:
    """The dimensions that are reduced; none given are all of them."""
    if dims is None or (empty_is_all and not isinstance(dims, int) and not dims):
        return tuple(range(x.ndim))
    named = [axis(d, x.ndim) for d in ([dims] if isinstance(dims, int) else dims)]
    return tuple(named) if x.ndim else ()


@op("sum.dim_IntList")
def _sum(call: Call, x: Array, dims: Dims = None, keepdim: bool = False, dtype: DType | None = None) -> Array:
    x = operand(x, call.dtype)
    return np.sum(x, axes(x, dims), keepdims=keepdim, dtype=None if x.dtype.kind in "fc" else x.dtype)


@op("mean.dim")
def _mean(call: Call, x: Array, dims: Dims = None, keepdim: bool = False, dtype: DType | None = None) -> Array:
    x = operand(x, call.dtype)
    over = axes(x, dims)
    count = int(np.prod([x.shape[d] for d in over], dtype=np.int64))
    return np.sum(x, over, keepdims=keepdim) / np.float64(count)


@op("prod")
def _prod_all(call: Call, x: Array, dtype: DType | None = None) -> Array:
    x = operand(x, call.dtype)
    return np.prod(x, dtype=x.dtype)


@op("prod.dim_int")
def _prod(call: Call, x: Array, dim: int, keepdim: bool = False, dtype: DType | None = None) -> Array:
    x = operand(x, call.dtype)
    return np.prod(x, axes(x, dim), keepdims=keepdim, dtype=x.dtype)


def _extreme(function: Callable[..., Array]) -> Callable[..., Array]:
    def rule(call: Call, x: Array, dims: Dims = (), keepdim: bool = False) -> Array:
        x = wide(x)
        return function(x, axis=axes(x, dims), keepdims=keepdim)

    return rule


op("amax")(_extreme(np.max))
op("amin")(_extreme(np.min))


def first_extreme(x: Array, dim: int, largest: bool) -> Array:
    """Where along a dimension the extreme is, the first of equals; a NaN is more extreme than any number."""
    x = wide(x)
    if x.ndim == 0:
        return np.zeros((), np.int64)
    return np.argmax(x, dim) if largest else np.argmin(x, dim)


def _with_index(largest: bool) -> Callable[..., tuple[Array, Array]]:
    def rule(call: Call, x: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
        if x.ndim == 0:
            return x, np.zeros((), np.int64)
        at = np.expand_dims(first_extreme(x, dim, largest), dim)
        values = np.take_along_axis(x, at, dim)
        return (values, at) if keepdim else (np.squeeze(values, dim), np.squeeze(at, dim))

    return rule


op("max.dim")(_with_index(largest=True))
op("min.dim")(_with_index(largest=False))


def _position(largest: bool) -> Callable[..., Array]:
    def rule(call: Call, x: Array, dim: int | None = None, keepdim: bool = False) -> Array:
        if dim is None:
            at = first_extreme(np.ravel(x), 0, largest)
            return np.reshape(at, (1,) * x.ndim) if keepdim else at
        at = first_extreme(x, dim, largest)
        return np.expand_dims(at, dim) if keepdim and x.ndim else at

    return rule


op("argmax")(_position(largest=True))
op("argmin")(_position(largest=False))


@op("any.dims")
def _any(call: Call, x: Array, dims: Dims = None, keepdim: bool = False) -> Array:
    return np.any(cast(x, DType.bool), axes(x, dims, empty_is_all=False), keepdims=keepdim)


@op("all.dims")
def _all(call: Call, x: Array, dims: Dims = None, keepdim: bool = False) -> Array:
    return np.all(cast(x, DType.bool), axes(x, dims, empty_is_all=False), keepdims=keepdim)


def variance(x: Array, over: tuple[int, ...], correction: Any, keepdim: bool) -> tuple[Array, Array]:
    """The mean of squared distances from the mean, over the count less the correction, and the mean."""
    x = floating(x)
    count = int(np.prod([x.shape[d] for d in over], dtype=np.int64))
    mean = np.sum(x, over, keepdims=True) / np.float64(count)
    total = np.sum(np.abs(x - mean) ** 2, over, keepdims=keepdim)
    kept = mean if keepdim else np.reshape(mean, np.sum(x, over).shape)
    return total / np.float64(max(count - (1 if correction is None else correction), 0)), kept


@op("var.correction")
def _var(call: Call, x: Array, dims: Dims = None, correction: Any = None, keepdim: bool = False) -> Array:
    return variance(x, axes(x, dims), correction, keepdim)[0]


@op("var_mean.correction")
def _var_mean(
    call: Call, x: Array, dims: Dims = None, correction: Any = None, keepdim: bool = False
) -> tuple[Array, Array]:
    return variance(x, axes(x, dims), correction, keepdim)


@op("logsumexp")
def _logsumexp(call: Call, x: Array, dims: Dims, keepdim: bool = False) -> Array:
    x = floating(x)
    over = axes(x, dims)
    peak = np.max(x.real, over, keepdims=True, initial=-np.inf)
    peak = np.where(np.isinf(peak), 0, peak)
    total = np.log(np.sum(np.exp(x - peak), over, keepdims=True)) + peak
    return total if keepdim else np.squeeze(total, over)


@op("linalg_vector_norm")
def _vector_norm(
    call: Call, x: Array, order: Any = 2, dims: Dims = None, keepdim: bool = False, dtype: DType | None = None
) -> Array:
    x = np.abs(operand(x, dtype) if dtype is not None else wide(x))
    return vector_norm(x, float(order), axes(x, dims), keepdim)


def vector_norm(size: Array, order: float, over: tuple[int, ...], keepdim: bool) -> Array:
    """The p-norm of absolute values: the largest for infinity, the number of those that are not zero for 0."""
    if order == np.inf:
        return np.max(size, over, keepdims=keepdim, initial=0)
    if order == -np.inf:
        return np.min(size, over, keepdims=keepdim)
    if order == 0:
        return np.sum(size != 0, over, keepdims=keepdim).astype(np.float64)
    peak = np.max(size, over, keepdims=True, initial=0)
    peak = np.where((peak == 0) | ~np.isfinite(peak), 1, peak)
    total = np.sum((size / peak) ** order, over, keepdims=True) ** (1 / order) * peak
    return total if keepdim else np.squeeze(total, over)


@op("dist")
def _dist(call: Call, x: Array, y: Array, order: Any = 2) -> Array:
    gap = np.abs(wide(x) - wide(y))
    return vector_norm(gap, float(order), tuple(range(gap.ndim)), keepdim=False)


@op("count_nonzero.dim_IntList")
def _count_nonzero(call: Call, x: Array, dims: Dims = None) -> Array:
    return np.sum(cast(x, DType.bool), axes(x, dims), dtype=np.int64)


@op("_softmax")
def _softmax(call: Call, x: Array, dim: int, half_to_float: Any = False) -> Array:
    return np.exp(log_softmax(floating(x), dim))


@op("_log_softmax")
def _log_softmax(call: Call, x: Array, dim: int, half_to_float: Any = False) -> Array:
    return log_softmax(floating(x), dim)


def log_softmax(x: Array, dim: int) -> Array:
    """x less the logarithm of the sum of the exponentials; NaN where all are -inf."""
    if x.size == 0 or x.ndim == 0:
        return x - x
    shifted = x - np.max(x, dim, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), dim, keepdims=True))


def _over(x: Array, dim: int) -> tuple[int, ...]:
    return (axis(dim, x.ndim),) if x.ndim else ()


@op("_softmax_backward_data")
def _softmax_backward(call: Call, grad: Array, y: Array, dim: int, dtype: DType) -> Array:
    grad, y = wide(grad), wide(y)
    return y * (grad - np.sum(grad * y, _over(y, dim), keepdims=True))


@op("_log_softmax_backward_data")
def _log_softmax_backward(call: Call, grad: Array, y: Array, dim: int, dtype: DType) -> Array:
    grad, y = wide(grad), wide(y)
    return grad - np.exp(y) * np.sum(grad, _over(y, dim), keepdims=True)
