"""Orders: sorting, selection, search, and what is unique."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairlead.numpy._dtypes import Array, number, wide
from fairlead.numpy._table import Call, op
from fairlead.numpy._views import axis


def order(x: Array, dim: int, descending: bool) -> Array:
    """The stable order of the elements along a dimension; NaN counts as larger than every number."""
    x = wide(x)
    if not descending:
        return np.argsort(x, dim, kind="stable")
    # Reversed twice, so that equals keep their order.
    backwards = np.argsort(np.flip(x, dim), dim, kind="stable")
    return np.flip(x.shape[dim] - 1 - backwards, dim)


def _picked(x: Array, at: Array, dim: int) -> tuple[Array, Array]:
    return np.take_along_axis(x, at, dim), at


@op("sort")
def _sort(call: Call, x: Array, dim: int = -1, descending: bool = False) -> tuple[Array, Array]:
    """Stable, which an op that leaves the order of equals open may be."""
    if x.ndim == 0:
        return x, np.zeros((), np.int64)
    return _picked(x, order(x, dim, descending), dim)


@op("sort.stable")
def _sort_stable(
    call: Call, x: Array, stable: bool | None, dim: int = -1, descending: bool = False
) -> tuple[Array, Array]:
    return _sort(call, x, dim, descending)


@op("topk")
def _topk(
    call: Call, x: Array, k: int, dim: int = -1, largest: bool = True, is_sorted: bool = True
) -> tuple[Array, Array]:
    """Sorted in any case, which an op that leaves the order open may be."""
    if x.ndim == 0:
        return x, np.zeros((), np.int64)
    if not 0 <= k <= x.shape[dim]:
        raise ValueError(f"{k} of {x.shape[dim]} elements")
    return _picked(x, np.take(order(x, dim, largest), range(k), dim), dim)


@op("kthvalue")
def _kthvalue(call: Call, x: Array, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Array, Array]:
    if x.ndim == 0:
        return x, np.zeros((), np.int64)
    if not 1 <= k <= x.shape[dim]:
        raise ValueError(f"element {k} of {x.shape[dim]}")
    return _at(x, np.take(order(x, dim, descending=False), [k - 1], dim), dim, keepdim)


def _at(x: Array, at: Array, dim: int, keepdim: bool) -> tuple[Array, Array]:
    values, at = _picked(x, at, dim)
    return (values, at) if keepdim else (np.squeeze(values, dim), np.squeeze(at, dim))


@op("median.dim")
def _median_dim(call: Call, x: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    """The lower of the two middle elements; a NaN where there is one."""
    if x.ndim == 0:
        return x, np.zeros((), np.int64)
    y = wide(x)
    middle = np.take(order(x, dim, descending=False), [(x.shape[dim] - 1) // 2], dim)
    broken = np.isnan(y)
    first = np.expand_dims(np.argmax(broken, dim), dim)
    return _at(x, np.where(np.any(broken, dim, keepdims=True), first, middle), dim, keepdim)


@op("nanmedian.dim")
def _nanmedian_dim(call: Call, x: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
    if x.ndim == 0:
        return x, np.zeros((), np.int64)
    count = np.sum(~np.isnan(wide(x)), dim, keepdims=True)
    at = np.take_along_axis(order(x, dim, descending=False), np.maximum(count - 1, 0) // 2, dim)
    return _at(x, at, dim, keepdim)


@op("median")
def _median(call: Call, x: Array) -> Array:
    return _median_dim(call, np.ravel(x), 0)[0] if x.size else np.nan


@op("nanmedian")
def _nanmedian(call: Call, x: Array) -> Array:
    return _nanmedian_dim(call, np.ravel(x), 0)[0] if x.size else np.nan


@op("mode")
def _mode(call: Call, x: Array, dim: int = -1, keepdim: bool = False) -> tuple[Array, Array]:
    """The most frequent element, the smallest of equally frequent ones, and the last place where it is."""
    if x.ndim == 0:
        return x, np.zeros((), np.int64)
    rows = np.moveaxis(wide(x), axis(dim, x.ndim), -1)
    at = np.zeros(rows.shape[:-1], np.int64)
    for index in np.ndindex(at.shape):
        values, counts = np.unique(rows[index], return_counts=True)
        at[index] = np.flatnonzero(rows[index] == values[np.argmax(counts)])[-1]
    return _at(x, np.expand_dims(at, dim), dim, keepdim)


@op("searchsorted.Tensor")
def _searchsorted(
    call: Call,
    sorted_: Array,
    x: Array,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Array | None = None,
) -> Array:
    where: Any = side or ("right" if right else "left")
    x = wide(np.asarray(number(x)))
    rows = wide(sorted_ if sorter is None else np.take_along_axis(sorted_, sorter, -1))
    if rows.ndim == 1:
        return np.searchsorted(rows, x, where)
    out = np.zeros(x.shape, np.int64)
    for index in np.ndindex(rows.shape[:-1]):
        out[index] = np.searchsorted(rows[index], x[index], where)
    return out


@op("bucketize.Tensor")
def _bucketize(call: Call, x: Array, boundaries: Array, out_int32: bool = False, right: bool = False) -> Array:
    return _searchsorted(call, boundaries, x, out_int32, right)


@op("_unique2")
def _unique(
    call: Call, x: Array, is_sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Array, ...]:
    values, inverse, counts = np.unique(wide(x), return_inverse=True, return_counts=True)
    results = values, np.reshape(inverse, x.shape), counts
    return results[: len(call.node.results)]


@op("unique_dim")
def _unique_dim(
    call: Call, x: Array, dim: int, is_sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Array, Array, Array]:
    values, inverse, counts = np.unique(wide(x), return_inverse=True, return_counts=True, axis=dim)
    return values, np.ravel(inverse), counts


@op("unique_consecutive")
def _unique_consecutive(
    call: Call, x: Array, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> tuple[Array, Array, Array]:
    rows = np.ravel(x) if dim is None else np.moveaxis(x, dim, 0)
    flat = wide(rows).reshape(len(rows), -1)
    starts = np.ones(len(rows), bool)
    starts[1:] = np.any(flat[1:] != flat[:-1], 1)
    inverse = np.cumsum(starts) - 1
    counts = np.diff(np.append(np.flatnonzero(starts), len(rows)))
    values = rows[starts] if dim is None else np.moveaxis(rows[starts], 0, dim)
    return values, np.reshape(inverse, x.shape) if dim is None else inverse, counts


@op("bincount")
def _bincount(call: Call, x: Array, weights: Array | None = None, minlength: int = 0) -> Array:
    return np.bincount(x, None if weights is None else wide(weights), minlength)


@op("histc")
def _histc(call: Call, x: Array, bins: int = 100, low: Any = 0, high: Any = 0) -> Array:
    """The last bin has its upper bound too; what lies outside is not counted."""
    x = np.ravel(wide(x))
    if low == high and x.size:
        low, high = float(np.min(x)), float(np.max(x))
    if low == high:
        low, high = low - 1, high + 1
    inside = x[(x >= low) & (x <= high)]
    place = np.minimum(((inside - low) / (high - low) * bins).astype(np.int64), bins - 1)
    return np.bincount(place, minlength=bins)
