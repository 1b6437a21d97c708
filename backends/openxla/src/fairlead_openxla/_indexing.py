"""Rules that read and write at computed places. An index that is out of range is an error at the call, as in torch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from fairlead.ir import DType, Node, Value
from fairlead_openxla._call import Call
from fairlead_openxla._numbers import Array, cast, wide
from fairlead_openxla._rules import rule
from fairlead_openxla._views import axis

__all__ = ["checked", "places"]


def checked(c: Call, index: Array, size: int, *, negative: bool = True) -> Array:
    """Indices counted from the front, where none may be out of range."""
    index = index.astype(jnp.int64)
    c.require((index >= (-size if negative else 0)) & (index < size), f"an index is out of range for {size} elements")
    return jnp.where(index < 0, index + size, index) if negative else index


def places(c: Call, index: Array, dim: int, shape: Sequence[int]) -> tuple[Array, ...]:
    """The coordinates that an index names along one dimension."""
    at = axis(dim, len(shape))
    found: list[Array] = [
        np.reshape(np.arange(n), (-1,) + (1,) * (index.ndim - d - 1)) for d, n in enumerate(index.shape)
    ]
    found[at] = checked(c, index, shape[at], negative=False)
    return tuple(found)


def _masks(node: Node) -> str | None:
    """Why an index is none that has a place known before the call."""
    given = [v for v in node.args[1] if isinstance(v, Value)]  # type: ignore[union-attr]
    if not given:
        return "indexing with nothing"
    if any(v.tensor.dtype in (DType.bool, DType.u8) for v in given):
        return "indexing with a mask: the size of the result depends on its values"
    return None


def _key(c: Call, x: Array, indices: tuple[Array | None, ...]) -> tuple[Any, ...]:
    return tuple(slice(None) if index is None else checked(c, index, x.shape[d]) for d, index in enumerate(indices))


@rule("index.Tensor", unless=_masks, takes_complex=True)
def index_(c: Call, x: Array, indices: tuple[Array | None, ...]) -> Array:
    return x.at[_key(c, x, indices)].get(mode="clip")


def _unusable_mask(node: Node) -> str | None:
    """A single mask is a selection where there is one value, or one for every element."""
    reason = _masks(node)
    if reason is None or not _is_single_mask(node):
        return reason
    values = node.args[2]
    assert isinstance(values, Value)
    if math.prod(n if isinstance(n, int) else 2 for n in values.tensor.shape) != 1:
        return "index_put of many values at a mask"
    return "index_put that accumulates at a mask" if node.args[3] else None


def _is_single_mask(node: Node) -> bool:
    given = node.args[1]
    first = given[0] if isinstance(given, tuple) and len(given) == 1 else None
    return isinstance(first, Value) and first.tensor.dtype is DType.bool


@rule("index_put", "_unsafe_index_put", unless=_unusable_mask)
def index_put(c: Call, x: Array, indices: tuple[Array | None, ...], values: Array, accumulate: bool = False) -> Array:
    if _is_single_mask(c.node):
        (mask,) = indices
        assert mask is not None, "a mask is a tensor"
        spread = jnp.reshape(mask, mask.shape + (1,) * (x.ndim - mask.ndim))
        return jnp.where(spread, jnp.reshape(cast(values, c.dtype), ()), x)
    return _written(x, _key(c, x, indices), cast(values, c.dtype), accumulate)


def _written(x: Array, key: tuple[Any, ...], values: Array, accumulate: bool) -> Array:
    """The values at their places, added to what is there with ``accumulate``."""
    if not accumulate:
        return x.at[key].set(values, mode="drop")
    if x.dtype == jnp.bool_:
        return x.at[key].max(values, mode="drop")
    return wide(x).at[key].add(wide(values), mode="drop")


@rule("index_select", takes_complex=True)
def index_select(c: Call, x: Array, dim: int, index: Array) -> Array:
    index = jnp.reshape(index, (-1,))
    if x.ndim == 0:
        checked(c, index, 1, negative=False)
        return x
    at = axis(dim, x.ndim)
    return jnp.take(x, checked(c, index, x.shape[at], negative=False), at, mode="clip")


@rule("gather", takes_complex=True)
def gather(c: Call, x: Array, dim: int, index: Array, sparse: bool = False) -> Array:
    """Along the other dimensions the index may be shorter than what it reads."""
    if x.ndim == 0 or index.ndim == 0:
        place = checked(c, jnp.ravel(index), x.size, negative=False)
        return jnp.reshape(jnp.take(jnp.ravel(x), place, mode="clip"), index.shape)
    return x.at[places(c, index, dim, x.shape)].get(mode="clip")


@rule("index_copy")
def index_copy(c: Call, x: Array, dim: int, index: Array, source: Array) -> Array:
    if x.ndim == 0:
        return jnp.reshape(source, ())
    at = axis(dim, x.ndim)
    rows = checked(c, jnp.reshape(index, (-1,)), x.shape[at], negative=False)
    return x.at[(slice(None),) * at + (rows,)].set(cast(source, c.dtype), mode="drop")


@rule("put")
def put(c: Call, x: Array, index: Array, source: Array, accumulate: bool = False) -> Array:
    place, values = jnp.ravel(checked(c, index, x.size)), jnp.ravel(source)
    return jnp.reshape(_written(jnp.ravel(x), (place,), values, accumulate), x.shape)


@rule("masked_scatter")
def masked_scatter(c: Call, x: Array, mask: Array, source: Array) -> Array:
    """The source's elements, in order, where the mask is true."""
    x, mask = jnp.broadcast_arrays(x, mask)
    order = jnp.cumsum(jnp.ravel(mask)) - 1
    c.require(order < source.size, f"more places than {source.size} elements", RuntimeError)
    if not source.size:
        return x
    taken = jnp.take(jnp.ravel(source), order, mode="clip")
    return jnp.where(mask, jnp.reshape(taken, x.shape), x)


@rule("nonzero_static")
def nonzero_static(c: Call, x: Array, size: int, fill_value: int = -1) -> Array:
    if x.size == 0:
        return jnp.full((size, x.ndim), fill_value, jnp.int64)
    found = jnp.nonzero(x, size=size, fill_value=fill_value)
    return jnp.stack(found, -1).astype(jnp.int64) if found else jnp.zeros((size, 0), jnp.int64)
