"""Rules of tensors that are made of numbers."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from fairlead.ir import DType
from fairlead_openxla._call import Call
from fairlead_openxla._numbers import Array, cast, constant, jax_dtype
from fairlead_openxla._rules import rule

__all__: list[str] = []


@rule("full", "full_like", takes_complex=True)
def full(c: Call, size: Any, value: Any, *rest: Any) -> Array:
    return jnp.broadcast_to(cast(value, c.dtype), c.shape())


@rule("empty.memory_format", takes_complex=True)
def empty(c: Call, *rest: Any) -> Array:
    """What is promised to be anything is zero."""
    return jnp.zeros(c.shape(), jnp.bool_)


@rule("arange.start_step")
def arange(c: Call, start: Any, end: Any, step: Any = 1, *rest: Any) -> Array:
    """Counted in f64, for halves in f32, and rounded at the end. Source: accscalar_t of arange in ATen."""
    (count,) = c.shape()
    if c.dtype.is_integer:
        steps = lax.iota(jnp.int64, count)
        return constant(int(start), DType.i64) + steps * constant(int(step), DType.i64)
    wide = DType.f32 if c.dtype in (DType.f16, DType.bf16) else DType.f64
    return constant(start, wide) + lax.iota(jax_dtype(wide), count) * constant(step, wide)


@rule("tril_indices", "triu_indices")
def triangle_indices(c: Call, rows: int, columns: int, offset: int = 0, *rest: Any) -> Array:
    indices = jnp.tril_indices if c.node.op == "aten.tril_indices.default" else jnp.triu_indices
    return jnp.stack(indices(rows, offset, columns))
