"""Rules of matrix products, in the full precision of their element type; halves are added up in f32."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from fairlead.ir import DType
from fairlead_openxla._call import Call
from fairlead_openxla._numbers import Array, cast, dtype_of, operand, wider
from fairlead_openxla._rules import rule

__all__ = ["product"]


def product(x: Array, y: Array, dtype: DType) -> Array:
    """``x @ y`` in what ``dtype`` is computed in."""
    x, y, target = _factors(x, y, dtype)
    return jnp.matmul(x, y, precision=lax.Precision.HIGHEST, preferred_element_type=target.dtype)


def _factors(x: Array, y: Array, dtype: DType) -> tuple[Array, Array, Array]:
    """The factors, halves as they are, and an array of the element type of the sums."""
    x, y = cast(x, dtype), cast(y, dtype)
    if dtype.is_integer:
        x, y = x.astype(jnp.int64), y.astype(jnp.int64)
        return x, y, x
    return x, y, cast(x, wider(dtype))


@rule("mm", "bmm", "mv", "dot", takes_complex=True)
def mm(c: Call, x: Array, y: Array) -> Array:
    return product(x, y, c.dtype)


@rule("addmm", "baddbmm", takes_complex=True)
def addmm(c: Call, x: Array, a: Array, b: Array, beta: Any = 1, alpha: Any = 1) -> Array:
    """``beta * x + alpha * (a @ b)``; a NaN in ``x`` does not count where beta is zero."""
    out = product(a, b, c.dtype)
    if alpha != 1:
        out = out * cast(alpha, dtype_of(out))
    if beta == 0:
        return out
    x = operand(x, c.dtype)
    return out + (x if beta == 1 else x * operand(beta, c.dtype))


@rule("linear", takes_complex=True)
def linear(c: Call, x: Array, weight: Array, bias: Array | None = None) -> Array:
    """``x @ weight.T + bias``, over the last dimensions as they lie."""
    x, weight, target = _factors(x, weight, c.dtype)
    over = (((x.ndim - 1,), (weight.ndim - 1,)), ((), ()))
    out = lax.dot_general(x, weight, over, precision=lax.Precision.HIGHEST, preferred_element_type=target.dtype)
    return out if bias is None else out + operand(bias, c.dtype)
