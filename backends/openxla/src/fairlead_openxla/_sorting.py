"""Rules that sort, and that look a value up in what is sorted. A NaN is larger than any number."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from fairlead.ir import Node, Value
from fairlead_openxla._call import Call
from fairlead_openxla._numbers import Array, cast, promoted
from fairlead_openxla._rules import rule
from fairlead_openxla._views import axis

__all__: list[str] = []


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
