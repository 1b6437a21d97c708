"""Writing along a dimension, with sums, products and extremes where several values meet in one place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fairlead.numpy._dtypes import Array, cast, number, wide
from fairlead.numpy._indexing import checked, places
from fairlead.numpy._table import Call, op
from fairlead.numpy._views import axis

_FUNCTIONS: dict[str, np.ufunc] = {
    "sum": np.add, "add": np.add, "mean": np.add, "prod": np.multiply, "multiply": np.multiply, "amax": np.maximum,
    "amin": np.minimum,
}  # fmt: skip


def _neutral(reduce: str, dtype: np.dtype[Any]) -> Any:
    if reduce in ("sum", "add", "mean"):
        return 0
    if reduce in ("prod", "multiply"):
        return 1
    low, high = (-np.inf, np.inf) if dtype.kind == "f" else (False, True)
    if dtype.kind in "iu":
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    return low if reduce == "amax" else high


def _at(x: Array, dim: int, index: Array) -> tuple[Array, tuple[Any, ...]]:
    """The target with at least one dimension, and the places in it."""
    if x.ndim == 0:
        return np.reshape(x, (1,)), (np.ravel(checked(index, 1)),)
    return x, places(np.reshape(index, index.shape or (1,)), dim, x.shape)


def _source(source: Array, index: Array) -> Array:
    source = np.asarray(source)
    if source.ndim == 0:
        return source
    return source[tuple(slice(n) for n in index.shape)] if index.ndim else np.ravel(source)[:1]


def _reduced(call: Call, x: Array, at: Callable[[Array], Any], source: Array, reduce: str, include_self: bool) -> Array:
    out = np.array(wide(x))
    key = at(out)
    source = np.asarray(source)
    dtype = out.dtype
    if out.dtype.kind == "b":
        out, source = out.astype(np.int64), source.astype(np.int64)
    if not include_self:
        out[key] = _neutral(reduce, dtype)
    _FUNCTIONS[reduce].at(out, key, wide(source).astype(out.dtype))
    if reduce == "mean":
        count = np.full(out.shape, int(include_self), np.int64)
        np.add.at(count, key, 1)
        count = np.maximum(count, 1)
        out = out // count if out.dtype.kind in "iu" else out / count
    return out


@op("scatter.src")
def _scatter(call: Call, x: Array, dim: int, index: Array, source: Array) -> Array:
    if index.size == 0:
        return x
    out, key = _at(np.array(x), dim, index)
    out[key] = _source(source, index)
    return np.reshape(out, x.shape)


@op("scatter.value")
def _scatter_value(call: Call, x: Array, dim: int, index: Array, value: Any) -> Array:
    return _scatter(call, x, dim, index, cast(number(value), call.dtype))


@op("scatter_add")
def _scatter_add(call: Call, x: Array, dim: int, index: Array, source: Array) -> Array:
    return _scatter_reduce(call, x, dim, index, source, "sum")


@op("scatter.reduce")
def _scatter_named(call: Call, x: Array, dim: int, index: Array, source: Array, reduce: str) -> Array:
    return _scatter_reduce(call, x, dim, index, np.asarray(cast(number(source), call.dtype)), reduce)


@op("scatter_reduce.two")
def _scatter_reduce(
    call: Call, x: Array, dim: int, index: Array, source: Array, reduce: str, include_self: bool = True
) -> Array:
    if index.size == 0:
        return x
    out, key = _at(x, dim, index)
    out = _reduced(call, out, lambda _: key, _source(source, index), reduce, include_self)
    return np.reshape(out, x.shape)


@op("index_reduce")
def _index_reduce(
    call: Call, x: Array, dim: int, index: Array, source: Array, reduce: str, include_self: bool = True
) -> Array:
    """Whole slices, at the indices along a dimension."""
    dim = axis(dim, x.ndim)
    target = np.reshape(x, x.shape or (1,))
    source = np.reshape(source, source.shape or (1,))
    rows = np.reshape(checked(index, target.shape[dim]), (-1,))
    key = (slice(None),) * dim + (rows,)
    return np.reshape(_reduced(call, target, lambda _: key, source, reduce, include_self), x.shape)
