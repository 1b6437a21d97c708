"""Shapes: views, joins, repetitions, and what reads memory by the declared strides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fairlead.ir import DType
from fairlead.numpy._dtypes import Array, cast, number, numpy_dtype
from fairlead.numpy._table import Call, op


def axis(dim: int, rank: int) -> int:
    """A dimension counted from the front; a number has one dimension here, as everywhere in ATen."""
    rank = max(rank, 1)
    if not -rank <= dim < rank:
        raise IndexError(f"there is no dimension {dim} of {rank}")
    return dim % rank


@op("view")
def _view(call: Call, x: Array, size: Sequence[int]) -> Array:
    return np.reshape(x, tuple(size))


@op("permute")
def _permute(call: Call, x: Array, order: Sequence[int]) -> Array:
    return np.transpose(x, tuple(order))


@op("expand")
def _expand(call: Call, x: Array, size: Sequence[int], implicit: bool = False) -> Array:
    lead = len(size) - x.ndim
    full = [x.shape[i - lead] if n == -1 else n for i, n in enumerate(size)]
    return np.broadcast_to(x, tuple(full))


@op("unsqueeze")
def _unsqueeze(call: Call, x: Array, dim: int) -> Array:
    return np.expand_dims(x, dim)


@op("squeeze.dims")
def _squeeze(call: Call, x: Array, dims: int | Sequence[int] | None = None) -> Array:
    if dims is None:
        return np.squeeze(x)
    named = [axis(d, x.ndim) for d in ([dims] if isinstance(dims, int) else dims)]
    return np.squeeze(x, tuple({d for d in named if x.ndim and x.shape[d] == 1}))


@op("select.int")
def _select(call: Call, x: Array, dim: int, index: int) -> Array:
    return np.take(x, index, axis(dim, x.ndim))


def window(x: Array, dim: int, start: int | None, end: int | None, step: int) -> tuple[slice, ...]:
    """The index of a slice of one dimension, whose bounds may be beyond it."""
    return (slice(None),) * axis(dim, x.ndim) + (slice(start, end, step),)


@op("slice.Tensor")
def _slice(
    call: Call, x: Array, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Array:
    return x[window(x, dim, start, end, step)]


@op("split_with_sizes")
def _split(call: Call, x: Array, sizes: Sequence[int], dim: int = 0) -> tuple[Array, ...]:
    if sum(sizes) != x.shape[dim]:
        raise ValueError(f"the sizes {list(sizes)} do not add up to {x.shape[dim]}")
    return tuple(np.split(x, np.cumsum(sizes)[:-1], dim)) if sizes else ()


@op("unbind.int")
def _unbind(call: Call, x: Array, dim: int = 0) -> tuple[Array, ...]:
    return tuple(np.moveaxis(x, dim, 0))


@op("diagonal")
def _diagonal(call: Call, x: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
    return np.diagonal(x, offset, dim1, dim2)


@op("unfold")
def _unfold(call: Call, x: Array, dim: int, size: int, step: int) -> Array:
    if x.ndim == 0:
        return np.reshape(x, (1,))[:size]
    windows = np.lib.stride_tricks.sliding_window_view(x, size, axis(dim, x.ndim)) if size else None
    if windows is None:
        shape = list(x.shape)
        shape[dim] = x.shape[dim] // step + 1
        return np.empty((*shape, 0), x.dtype)
    return windows[window(x, dim, None, None, step)]


def _addresses(shape: Sequence[int], strides: Sequence[int], offset: int = 0) -> Array:
    """For each element its distance from the start of memory."""
    found = np.full((), offset, np.int64)
    for size, stride in zip(shape, strides, strict=True):
        found = found[..., None] + np.arange(size) * stride
    return found


def _memory(x: Array, strides: Sequence[int]) -> Array:
    """The memory that an array lies in by its declared strides; what no element is in reads zero."""
    addresses = _addresses(x.shape, strides)
    memory = np.zeros(int(addresses.max(initial=-1)) + 1, x.dtype)
    memory[addresses] = x
    return memory


@op("as_strided")
def _as_strided(call: Call, x: Array, size: Sequence[int], strides: Sequence[int], offset: int | None = None) -> Array:
    return _memory(x, call.strides(0))[_addresses(size, strides, offset or 0)]


@op("as_strided_scatter")
def _as_strided_scatter(
    call: Call, x: Array, source: Array, size: Sequence[int], strides: Sequence[int], offset: int | None = None
) -> Array:
    memory = _memory(x, call.strides(0))
    memory[_addresses(size, strides, offset or 0)] = source
    return memory[_addresses(x.shape, call.strides(0))]


@op("view.dtype")
def _view_dtype(call: Call, x: Array, dtype: DType) -> Array:
    if x.ndim and x.shape[-1] > 1 and call.strides(0)[-1] != 1 and x.itemsize != dtype.itemsize:
        raise ValueError("the last dimension is not dense, so that its elements cannot be joined or parted")
    return np.ascontiguousarray(x).reshape(x.shape).view(numpy_dtype(dtype))


@op("repeat")
def _repeat(call: Call, x: Array, repeats: Sequence[int]) -> Array:
    return np.tile(x, tuple(repeats))


@op("flip")
def _flip(call: Call, x: Array, dims: Sequence[int]) -> Array:
    return np.flip(x, tuple(dims)) if x.ndim else x


@op("cat")
def _cat(call: Call, tensors: Sequence[Array], dim: int = 0) -> Array:
    parts = [t for t in tensors if t.shape != (0,)] or list(tensors[:1])
    return np.concatenate([cast(t, call.dtype) for t in parts], dim)


def with_part(x: Array, index: Any, source: Array) -> Array:
    """A copy with one part replaced."""
    out = np.array(x)
    out[index] = source
    return out


@op("select_scatter")
def _select_scatter(call: Call, x: Array, source: Array, dim: int, index: int) -> Array:
    return with_part(x, (slice(None),) * axis(dim, x.ndim) + (index,), cast(source, call.dtype))


@op("slice_scatter")
def _slice_scatter(
    call: Call, x: Array, source: Array, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Array:
    return with_part(x, window(x, dim, start, end, step), cast(source, call.dtype))


@op("diagonal_scatter")
def _diagonal_scatter(call: Call, x: Array, source: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
    where = np.diagonal(np.arange(x.size).reshape(x.shape), offset, dim1, dim2)
    return with_part(np.ravel(x), where, source).reshape(x.shape)


@op("constant_pad_nd")
def _constant_pad(call: Call, x: Array, pad: Sequence[int], value: Any = 0) -> Array:
    """Two numbers a dimension, the last dimension first; negative ones cut away."""
    before, after = [0] * x.ndim, [0] * x.ndim
    for i in range(len(pad) // 2):
        before[-1 - i], after[-1 - i] = pad[2 * i], pad[2 * i + 1]
    shape = tuple(n + b + a for n, b, a in zip(x.shape, before, after, strict=True))
    out = np.full(shape, cast(number(value), call.dtype))
    inner = tuple(slice(max(b, 0), n + b) for n, b in zip(x.shape, before, strict=True))
    taken = tuple(slice(max(-b, 0), n - max(-a, 0)) for n, b, a in zip(x.shape, before, after, strict=True))
    out[inner] = x[taken]
    return out
