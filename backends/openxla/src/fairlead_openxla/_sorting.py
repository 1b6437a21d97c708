"""Rules that sort, look a value up in what is sorted, and count by bins. A NaN is larger than any number."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from fairlead.ir import DType, Node, Value
from fairlead.ir.dims import product
from fairlead_openxla._arithmetic import divided
from fairlead_openxla._call import Call
from fairlead_openxla._numbers import Array, cast, constant, promoted
from fairlead_openxla._rules import rule
from fairlead_openxla._views import axis

__all__: list[str] = []

_MOST_COMPARED = 1 << 20
"""So many elements times bins are counted sooner than by torch, which looks at each element once."""


def _sorted(x: Array, dim: int, descending: bool) -> tuple[Array, Array]:
    """The elements in order, equals as they come, and where they were."""
    if x.ndim == 0:
        return x, jnp.zeros((), jnp.int64)
    at = axis(dim, x.ndim)
    places = jnp.argsort(x, at, stable=True, descending=descending)
    return jnp.take_along_axis(x, places, at, mode="clip"), places


@rule("sort")
def sort(c: Call, x: Array, dim: int = -1, descending: bool = False) -> tuple[Array, Array]:
    return _sorted(x, dim, descending)


@rule("sort.stable")
def sort_stable(c: Call, x: Array, stable: Any, dim: int = -1, descending: bool = False) -> tuple[Array, Array]:
    return _sorted(x, dim, descending)


@rule("topk")
def topk(c: Call, x: Array, k: int, dim: int = -1, largest: bool = True, in_order: bool = True) -> tuple[Array, ...]:
    parts = _sorted(x, dim, largest)
    if x.ndim == 0:
        return tuple(jnp.reshape(p, c.shape()) for p in parts)
    first = (slice(None),) * axis(dim, x.ndim) + (slice(k),)
    return tuple(p[first] for p in parts)


@rule("kthvalue")
def kthvalue(c: Call, x: Array, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Array, ...]:
    if x.ndim == 0:
        return x, jnp.zeros((), jnp.int64)
    at = axis(dim, x.ndim)
    parts = (jnp.take(p, jnp.asarray([k - 1]), at, mode="clip") for p in _sorted(x, dim, False))
    return tuple(p if keepdim else jnp.squeeze(p, at) for p in parts)


def _is_batched(node: Node) -> str | None:
    boundaries = node.args[1]
    assert isinstance(boundaries, Value)
    return None if boundaries.tensor.rank == 1 else "boundaries that are no vector"


@rule("bucketize.Tensor", unless=_is_batched)
def bucketize(c: Call, x: Array, boundaries: Array, out_int32: bool = False, right: bool = False) -> Array:
    dtype = promoted(c.node.args[:2])
    return jnp.searchsorted(cast(boundaries, dtype), cast(x, dtype), "right" if right else "left")


def _not_counted(node: Node) -> str | None:
    x, bins, low, high = node.args
    assert isinstance(x, Value), "what is counted is a tensor"
    if not (isinstance(low, int | float) and isinstance(high, int | float) and low < high):
        return "bins between the extremes of the operand"
    if x.tensor.dtype not in (DType.f32, DType.f64):
        return f"bins of {x.tensor.dtype}"
    size = product(x.tensor.shape)
    if isinstance(size, int) and isinstance(bins, int) and size * bins <= _MOST_COMPARED:
        return None
    return "slower than eager here: bins of many elements, each compared with each bin"


@rule("histc", unless=_not_counted)
def histc(c: Call, x: Array, bins: int, low: float, high: float) -> Array:
    """How many elements are in each of some bins of one width, the last of which has both its ends."""
    x = jnp.reshape(x, (-1, 1))
    start, end, count, last = (constant(v, c.dtype) for v in (low, high, bins, bins - 1))
    places = jnp.minimum(jnp.floor(divided((x - start) * count, constant(high - low, c.dtype))), last)
    is_counted = (start <= x) & (x <= end)
    found = is_counted & (places == jnp.arange(bins, dtype=x.dtype))
    return jnp.sum(found, 0, dtype=x.dtype)
