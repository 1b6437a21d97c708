"""Rules that move elements and do not compute."""

from __future__ import annotations

import itertools
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from fairlead.ir import Node, Value
from fairlead_openxla._call import Call
from fairlead_openxla._images import as_declared, channels_last, in_order
from fairlead_openxla._numbers import Array, cast, jax_dtype
from fairlead_openxla._rules import rule

__all__ = ["axis", "axes"]


def axis(dim: int, rank: int) -> int:
    """A dimension counted from the front; a 0-d tensor has one, as everywhere in ATen."""
    count = max(rank, 1)
    if not -count <= dim < count:
        raise IndexError(f"there is no dimension {dim} of {rank}")
    return dim % count


def axes(dims: Any, rank: int, *, empty_is_all: bool = True) -> tuple[int, ...]:
    """Dimensions counted from the front; none given are all of them."""
    if dims is None or (empty_is_all and not isinstance(dims, int) and not dims):
        return tuple(range(rank))
    named = (dims,) if isinstance(dims, int) else dims
    return tuple(axis(d, rank) for d in named)[:rank]


@rule("view", "reshape", "_unsafe_view", takes_complex=True)
def view(c: Call, x: Array, *rest: Any) -> Array:
    return jnp.reshape(x, c.shape())


@rule("permute", takes_complex=True)
def permute(c: Call, x: Array, order: tuple[int, ...]) -> Array:
    return jnp.transpose(x, tuple(d % x.ndim for d in order))


@rule("expand", takes_complex=True)
def expand(c: Call, x: Array, *rest: Any) -> Array:
    return jnp.broadcast_to(x, c.shape())


@rule("unsqueeze", "squeeze.dims", takes_complex=True)
def reshape(c: Call, x: Array, *rest: Any) -> Array:
    return jnp.reshape(x, c.shape())


@rule("select.int", takes_complex=True)
def select(c: Call, x: Array, dim: int, index: Any) -> Array:
    return lax.index_in_dim(x, index, axis(dim, x.ndim), keepdims=False)


def window(x: Array, dim: int, start: int | None, end: int | None, step: int) -> tuple[slice, ...]:
    """The key of a slice of one dimension, whose bounds may be beyond it."""
    return (slice(None),) * axis(dim, x.ndim) + (slice(start, end, step),)


@rule("slice.Tensor", takes_complex=True)
def slice_(c: Call, x: Array, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Array:
    return x[window(x, dim, start, end, step)]


@rule("split_with_sizes", takes_complex=True)
def split_with_sizes(c: Call, x: Array, sizes: tuple[int, ...], dim: int = 0) -> tuple[Array, ...]:
    ends = np.cumsum((0, *sizes)).tolist()
    at = axis(dim, x.ndim)
    return tuple(lax.slice_in_dim(x, a, b, axis=at) for a, b in itertools.pairwise(ends))


@rule("unbind.int", takes_complex=True)
def unbind(c: Call, x: Array, dim: int = 0) -> tuple[Array, ...]:
    at = axis(dim, x.ndim)
    return tuple(lax.index_in_dim(x, i, at, keepdims=False) for i in range(x.shape[at]))


@rule("cat", takes_complex=True)
def cat(c: Call, tensors: tuple[Array, ...], dim: int = 0) -> Array:
    """Torch lets empty 1-d tensors join anything."""
    parts = [cast(t, c.dtype) for t in [t for t in tensors if t.shape != (0,)] or tensors[:1]]
    at = axis(dim, parts[0].ndim)
    if not c.is_image:
        return jnp.concatenate(parts, at)
    at = in_order(range(parts[0].ndim)).index(at)
    return as_declared(jnp.concatenate(list(map(channels_last, parts)), at))


@rule("stack", takes_complex=True)
def stack(c: Call, tensors: tuple[Array, ...], dim: int = 0) -> Array:
    return jnp.stack([cast(t, c.dtype) for t in tensors], dim)


@rule("flip", takes_complex=True)
def flip(c: Call, x: Array, dims: tuple[int, ...]) -> Array:
    return lax.rev(x, axes(dims, x.ndim, empty_is_all=False))


@rule("roll", takes_complex=True)
def roll(c: Call, x: Array, shifts: Any, dims: Any = ()) -> Array:
    return jnp.roll(x, shifts, axes(dims, x.ndim)) if dims else jnp.reshape(jnp.roll(jnp.ravel(x), shifts), x.shape)


@rule("repeat", takes_complex=True)
def repeat(c: Call, x: Array, times: tuple[int, ...]) -> Array:
    return jnp.tile(x, times)


@rule("constant_pad_nd", takes_complex=True)
def constant_pad(c: Call, x: Array, pad: tuple[int, ...], value: Any = 0) -> Array:
    """Two numbers a dimension, the last dimension first; negative ones cut away."""
    config = [(0, 0, 0)] * x.ndim
    for i in range(len(pad) // 2):
        config[x.ndim - 1 - i] = (pad[2 * i], pad[2 * i + 1], 0)
    if not c.is_image:
        return lax.pad(x, cast(value, c.dtype), config)
    return as_declared(lax.pad(channels_last(x), cast(value, c.dtype), in_order(config)))


@rule("diagonal", takes_complex=True)
def diagonal(c: Call, x: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
    return jnp.diagonal(x, offset, dim1, dim2)


@rule("tril", takes_complex=True)
def tril(c: Call, x: Array, k: int = 0) -> Array:
    return jnp.tril(x, k)


@rule("triu", takes_complex=True)
def triu(c: Call, x: Array, k: int = 0) -> Array:
    return jnp.triu(x, k)


@rule("unfold", takes_complex=True)
def unfold(c: Call, x: Array, dim: int, size: int, step: int) -> Array:
    """Windows of one dimension, which becomes their number; their elements come last."""
    if x.ndim == 0:
        return jnp.reshape(x, (1,))[:size]
    at = axis(dim, x.ndim)
    places = np.arange(c.shape()[at])[:, None] * step + np.arange(size)
    return jnp.moveaxis(jnp.take(x, places, at, mode="clip"), at + 1, -1)


@rule("select_scatter", takes_complex=True)
def select_scatter(c: Call, x: Array, source: Array, dim: int, index: int) -> Array:
    return x.at[(slice(None),) * axis(dim, x.ndim) + (index,)].set(cast(source, c.dtype))


@rule("slice_scatter", takes_complex=True)
def slice_scatter(
    c: Call, x: Array, source: Array, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Array:
    source, at = cast(source, c.dtype), axis(dim, x.ndim)
    if step == 1:
        return x.at[window(x, dim, start, end, step)].set(source)
    return _every_few(x, source, at, range(x.shape[at])[start:end:step])


def _every_few(x: Array, source: Array, at: int, places: range) -> Array:
    """The operand with these places along a dimension replaced: a choice, which XLA fuses, where a scatter is none."""
    if not places:
        return x
    size = x.shape[at]
    edges = [(0, 0, 0)] * x.ndim
    edges[at] = (places.start, size - 1 - places[-1], places.step - 1)
    taken = np.zeros(size, bool)
    taken[places.start : places.stop : places.step] = True
    mask = jnp.broadcast_to(np.expand_dims(taken, [d for d in range(x.ndim) if d != at]), x.shape)
    return jnp.where(mask, lax.pad(source, jnp.zeros((), x.dtype), edges), x)


@rule("diagonal_scatter", takes_complex=True)
def diagonal_scatter(c: Call, x: Array, source: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
    rows, columns = axis(dim1, x.ndim), axis(dim2, x.ndim)
    count = source.shape[-1]
    where = [np.arange(count) + max(-offset, 0), np.arange(count) + max(offset, 0)]
    front = jnp.moveaxis(x, (rows, columns), (0, 1)).at[tuple(where)].set(jnp.moveaxis(cast(source, c.dtype), -1, 0))
    return jnp.moveaxis(front, (0, 1), (rows, columns))


def _joins_bytes(node: Node) -> str | None:
    value, result = node.args[0], node.results[0]
    assert isinstance(value, Value)
    if result is not None and value.tensor.dtype.itemsize != result.tensor.dtype.itemsize:
        return "a view of bytes as elements of another size"
    if "bool" in (value.tensor.dtype, result and result.tensor.dtype):
        return "a view of bytes as bools"
    return None


@rule("view.dtype", unless=_joins_bytes)
def view_dtype(c: Call, x: Array, dtype: Any) -> Array:
    return lax.bitcast_convert_type(x, jax_dtype(dtype))
