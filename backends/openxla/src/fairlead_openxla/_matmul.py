"""Rules of matrix products, in the full precision of their element type; halves are added up in f32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

from fairlead.ir import DType
from fairlead_openxla._call import Call
from fairlead_openxla._layouts import matrix
from fairlead_openxla._numbers import Array, cast, dtype_of, operand, wider
from fairlead_openxla._rules import rule

__all__ = ["product"]


def product(x: Array, y: Array, dtype: DType) -> Array:
    """``x @ y`` in what ``dtype`` is computed in."""
    x, y, target = _factors(x, y, dtype)
    return jnp.matmul(x, y, precision=lax.Precision.HIGHEST, preferred_element_type=target.dtype)


def _columns(x: Array, blocks: Sequence[Array], dtype: DType) -> Array:
    """``x @ y`` where ``y`` lies in blocks of columns: a product each."""
    return jnp.concatenate([product(x, block, dtype) for block in blocks], -1)


def _factors(x: Array, y: Array, dtype: DType) -> tuple[Array, Array, Array]:
    """The factors, halves as they are, and an array of the element type of the sums."""
    x, y = cast(x, dtype), cast(y, dtype)
    if dtype.is_integer:
        x, y = x.astype(jnp.int64), y.astype(jnp.int64)
        return x, y, x
    return x, y, cast(x, wider(dtype))


@rule("bmm", "mv", "dot", takes_complex=True)
def bmm(c: Call, x: Array, y: Array) -> Array:
    return product(x, y, c.dtype)


@rule("mm", takes_complex=True, places=matrix(1))
def mm(c: Call, x: Array, y: Array) -> Array:
    placed = c.placed()
    return _columns(x, placed, c.dtype) if placed else product(x, y, c.dtype)


@rule("addmm", takes_complex=True, places=matrix(2))
@rule("baddbmm", takes_complex=True)
def addmm(c: Call, x: Array, a: Array, b: Array, beta: Any = 1, alpha: Any = 1) -> Array:
    """``beta * x + alpha * (a @ b)``; a NaN in ``x`` does not count where beta is zero."""
    placed = c.placed()
    out = _columns(a, placed, c.dtype) if placed else product(a, b, c.dtype)
    if alpha != 1:
        out = out * cast(alpha, dtype_of(out))
    if beta == 0:
        return out
    x = operand(x, c.dtype)
    return out + (x if beta == 1 else x * operand(beta, c.dtype))


@rule("linear", takes_complex=True, places=matrix(1, transposed=True))
def linear(c: Call, x: Array, weight: Array, bias: Array | None = None) -> Array:
    placed = c.placed()
    out = _columns(x, placed, c.dtype) if placed else _across(x, weight, c.dtype)
    return out if bias is None else out + operand(bias, c.dtype)


def _across(x: Array, weight: Array, dtype: DType) -> Array:
    """``x @ weight.T``, over the last dimensions as they lie."""
    x, weight, target = _factors(x, weight, dtype)
    over = (((x.ndim - 1,), (weight.ndim - 1,)), ((), ()))
    return lax.dot_general(x, weight, over, precision=lax.Precision.HIGHEST, preferred_element_type=target.dtype)
