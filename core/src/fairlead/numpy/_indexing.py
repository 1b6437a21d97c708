"""Reading and writing by indices. An index that is out of range is an error; negative ones count from the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fairlead.numpy._dtypes import Array, wide
from fairlead.numpy._table import Call, op
from fairlead.numpy._views import axis

Indices = Sequence[Array | None]


def checked(index: Array, size: int, negative: bool = True) -> Array:
    """Indices counted from the front; an IndexError where one is out of range."""
    index = index.astype(np.int64)
    low = -size if negative else 0
    wrong = (index < low) | (index >= size)
    if np.any(wrong):
        raise IndexError(f"the index {int(index[wrong][0])} is out of range for {size} elements")
    return np.where(index < 0, index + size, index)


def _key(x: Array, indices: Indices) -> tuple[Any, ...]:
    """The key as NumPy takes it: masks as positions, missing indices as whole dimensions."""
    key: list[Any] = []
    for index in indices:
        if index is None:
            key.append(slice(None))
        elif index.dtype in (np.bool_, np.uint8):
            sizes = x.shape[len(key) : len(key) + index.ndim]
            if index.shape != sizes:
                raise IndexError(f"a mask of shape {list(index.shape)} for dimensions of {list(sizes)}")
            key += np.nonzero(index) if index.ndim else [np.flatnonzero(index)]
        else:
            key.append(checked(index, x.shape[len(key)]))
    return tuple(key)


@op("index.Tensor")
def _index(call: Call, x: Array, indices: Indices) -> Array:
    if not any(i is not None for i in indices):
        return x
    return x[_key(x, indices)]


@op("index_put")
def _index_put(call: Call, x: Array, indices: Indices, values: Array, accumulate: bool = False) -> Array:
    """Where one place is named twice, one of its values is written, or with ``accumulate`` the sum of all is added."""
    out = np.array(wide(x)) if accumulate else np.array(x)
    key = _key(x, indices)
    if accumulate:
        add = np.logical_or if out.dtype.kind == "b" else np.add
        add.at(out, key, wide(values))
    else:
        out[key] = values
    return out


@op("index_select")
def _index_select(call: Call, x: Array, dim: int, index: Array) -> Array:
    index = np.reshape(index, (-1,))
    if x.ndim == 0:
        checked(index, 1, negative=False)
        return x
    return np.take(x, checked(index, x.shape[dim], negative=False), dim)


@op("gather")
def _gather(call: Call, x: Array, dim: int, index: Array, sparse_grad: bool = False) -> Array:
    return picked_along(x, dim, index)


def picked_along(x: Array, dim: int, index: Array) -> Array:
    """The elements that an index names along one dimension; along the others it may be shorter than the array.

    An index of nothing may have any rank.
    """
    if index.size == 0:
        return np.empty(index.shape, x.dtype)
    if x.ndim == 0 or index.ndim == 0:
        return np.reshape(np.ravel(x)[checked(np.ravel(index), x.size)], index.shape)
    return x[places(index, dim, x.shape)]


def places(index: Array, dim: int, shape: Sequence[int]) -> tuple[Array, ...]:
    """The coordinates that an index names along one dimension."""
    dim = axis(dim, len(shape))
    found = list(np.indices(index.shape, sparse=True))
    found[dim] = checked(index, shape[dim])
    return tuple(found)


@op("put")
def _put(call: Call, x: Array, index: Array, source: Array, accumulate: bool = False) -> Array:
    out = np.array(np.ravel(wide(x) if accumulate else x))
    place, values = np.ravel(checked(index, x.size)), np.ravel(source)
    if accumulate:
        np.add.at(out, place, wide(values))
    else:
        out[place] = values
    return np.reshape(out, x.shape)


@op("nonzero")
def _nonzero(call: Call, x: Array) -> Array:
    return np.argwhere(x) if x.ndim else np.zeros((int(bool(x)), 0), np.int64)


@op("nonzero_static")
def _nonzero_static(call: Call, x: Array, size: int, fill_value: int = -1) -> Array:
    found = np.argwhere(x)
    out = np.full((size, x.ndim), fill_value, np.int64)
    out[: len(found)] = found[:size]
    return out


@op("masked_select")
def _masked_select(call: Call, x: Array, mask: Array) -> Array:
    x, mask = np.broadcast_arrays(x, mask)
    return x[mask]


@op("masked_scatter")
def _masked_scatter(call: Call, x: Array, mask: Array, source: Array) -> Array:
    """The source's elements, in order, where the mask is true."""
    x, mask = np.broadcast_arrays(x, mask)
    count = int(np.count_nonzero(mask))
    if count > source.size:
        raise ValueError(f"{source.size} elements for {count} places")
    out = np.array(x)
    out[mask] = np.ravel(source)[:count]
    return out


@op("masked_scatter_backward")
def _masked_scatter_backward(call: Call, grad: Array, mask: Array, sizes: Sequence[int]) -> Array:
    grad, mask = np.broadcast_arrays(grad, mask)
    out = np.zeros(int(np.prod(sizes, dtype=np.int64)), grad.dtype)
    taken = grad[mask]
    out[: len(taken)] = taken
    return np.reshape(out, sizes)
