"""Rules that write along a dimension, with sums, products and extremes where several values meet in one place."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from fairlead.ir import DType
from fairlead_openxla._call import Call
from fairlead_openxla._indexing import checked, places
from fairlead_openxla._numbers import Array, cast, wide
from fairlead_openxla._rules import rule
from fairlead_openxla._views import axis

__all__: list[str] = []

_METHODS = {
    "sum": "add", "add": "add", "mean": "add", "prod": "multiply", "multiply": "multiply", "amax": "max", "amin": "min",
}  # fmt: skip


def _at(c: Call, x: Array, dim: int, index: Array) -> tuple[Array, tuple[Array, ...]]:
    """The target with at least one dimension, and the places in it."""
    if x.ndim == 0:
        return jnp.reshape(x, (1,)), (checked(c, jnp.ravel(index), 1, negative=False),)
    return x, places(c, jnp.reshape(index, index.shape or (1,)), dim, x.shape)


def _source(source: Any, index: Array, dtype: DType) -> Array:
    """The source, cut to the size of the index."""
    source = cast(source, dtype)
    if source.ndim == 0:
        return source
    return source[tuple(slice(n) for n in index.shape)] if index.ndim else jnp.ravel(source)[:1]


@rule("scatter.src", "scatter.value", takes_complex=True)
def scatter(c: Call, x: Array, dim: int, index: Array, source: Any) -> Array:
    if index.size == 0:
        return x
    out, key = _at(c, x, dim, index)
    return jnp.reshape(out.at[key].set(_source(source, index, c.dtype), mode="drop"), x.shape)


@rule("scatter_add")
def scatter_add(c: Call, x: Array, dim: int, index: Array, source: Array) -> Array:
    return scatter_reduce(c, x, dim, index, source, "sum")


@rule("scatter.reduce", "scatter_reduce.two")
def scatter_reduce(
    c: Call, x: Array, dim: int, index: Array, source: Any, reduce: str, include_self: bool = True
) -> Array:
    if index.size == 0:
        return x
    out, key = _at(c, x, dim, index)
    return jnp.reshape(_reduced(out, key, _source(source, index, c.dtype), reduce, include_self), x.shape)


@rule("index_reduce")
def index_reduce(
    c: Call, x: Array, dim: int, index: Array, source: Array, reduce: str, include_self: bool = True
) -> Array:
    """Whole slices, at the indices along a dimension."""
    target = jnp.reshape(x, x.shape or (1,))
    at = axis(dim, x.ndim)
    rows = checked(c, jnp.reshape(index, (-1,)), target.shape[at], negative=False)
    key = (slice(None),) * at + (rows,)
    source = jnp.reshape(cast(source, c.dtype), source.shape or (1,))
    return jnp.reshape(_reduced(target, key, source, reduce, include_self), x.shape)


def _reduced(x: Array, key: tuple[Any, ...], source: Array, reduce: str, include_self: bool) -> Array:
    truth = x.dtype == jnp.bool_
    x, source = (cast(a, DType.i64) if truth else wide(a) for a in (x, source))
    start = x if include_self else x.at[key].set(_neutral(reduce, x), mode="drop")
    out = getattr(start.at[key], _METHODS[reduce])(source, mode="drop")
    if reduce != "mean":
        return out
    count = jnp.full(x.shape, int(include_self), jnp.int64).at[key].add(1, mode="drop")
    count = jnp.maximum(count, 1)
    return jnp.floor_divide(out, count) if jnp.issubdtype(x.dtype, jnp.integer) else out / count.astype(out.dtype)


def _neutral(reduce: str, x: Array) -> Any:
    match reduce:
        case "sum" | "add" | "mean":
            return 0
        case "prod" | "multiply":
            return 1
    if jnp.issubdtype(x.dtype, jnp.integer):
        limits = jnp.iinfo(x.dtype)
        return limits.min if reduce == "amax" else limits.max
    return -jnp.inf if reduce == "amax" else jnp.inf
