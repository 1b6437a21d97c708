"""Rules of matrix products, in the precision of their element type unless less is accepted; halves add up in f32."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

from fairlead.ir import DType
from fairlead_openxla._call import Call
from fairlead_openxla._layouts import FEW_ROWS, cuts, matrix, shares_lines, turns
from fairlead_openxla._numbers import Array, cast, dtype_of, operand, wider
from fairlead_openxla._releases import turns_products
from fairlead_openxla._rules import rule
from fairlead_openxla._target import on_cpu, precision

__all__ = ["is_small", "product"]

_SMALL = 256
"""The sizes of two matrices together, below which wider factors cost next to nothing."""


def product(x: Array, y: Array, dtype: DType) -> Array:
    """``x @ y`` in what ``dtype`` is computed in."""
    x, y, target = _factors(x, y, dtype)
    return jnp.matmul(x, y, precision=precision(), preferred_element_type=target.dtype)


def _columns(x: Array, blocks: Sequence[Array], dtype: DType) -> Array:
    """``x @ y`` where ``y`` lies in blocks of columns: a product each."""
    return jnp.concatenate([product(x, block, dtype) for block in blocks], -1)


def _factors(x: Array, y: Array, dtype: DType) -> tuple[Array, Array, Array]:
    """The factors, halves as they are, and an array of the element type of the sums.

    Small matrices of halves are widened on CUDA, where XLA may multiply their elements, and round each product. A
    barrier has it not take them for halves again.
    """
    x, y = cast(x, dtype), cast(y, dtype)
    if not on_cpu() and wider(dtype) != dtype and is_small(x, y):
        x, y = lax.optimization_barrier((cast(x, wider(dtype)), cast(y, wider(dtype))))
    if dtype.is_integer:
        x, y = x.astype(jnp.int64), y.astype(jnp.int64)
        return x, y, x
    return x, y, cast(x, wider(dtype))


def is_small(x: Array, y: Array) -> bool:
    """Whether XLA may keep the product of two matrices from the vendor's library."""
    return bool(sum(x.shape[-2:]) + sum(y.shape[-2:]) < _SMALL)


@rule("bmm", "mv", "dot", takes_complex=True)
def bmm(c: Call, x: Array, y: Array) -> Array:
    return product(x, y, c.dtype)


@rule("mm", takes_complex=True, places=matrix(1))
def mm(c: Call, x: Array, y: Array) -> Array:
    return _times(c, x, 1, y)


@rule("addmm", takes_complex=True, places=matrix(2))
@rule("baddbmm", takes_complex=True)
def addmm(c: Call, x: Array, a: Array, b: Array, beta: Any = 1, alpha: Any = 1) -> Array:
    """``beta * x + alpha * (a @ b)``; a NaN in ``x`` does not count where beta is zero."""
    out = _times(c, a, 2, b)
    if alpha != 1:
        out = out * cast(alpha, dtype_of(out))
    if beta == 0:
        return out
    x = operand(x, c.dtype)
    return out + (x if beta == 1 else x * operand(beta, c.dtype))


@rule("linear", takes_complex=True, places=matrix(1, transposed=True))
def linear(c: Call, x: Array, weight: Array, bias: Array | None = None) -> Array:
    if not on_cpu():
        out = product(x, jnp.swapaxes(weight, -1, -2) if weight.ndim > 1 else weight, c.dtype)
    elif placed := c.placed():
        out = _columns(x, placed, c.dtype)
    elif (turned := c.turned(1)) is not None:
        out = _along(x, turned, c.dtype)
    else:
        out = _across(x, weight, c.dtype) if weight.ndim == 2 else product(x, weight, c.dtype)
    return out if bias is None else out + operand(bias, c.dtype)


def _times(c: Call, x: Array, index: int, y: Array) -> Array:
    """``x @ y`` where ``y`` is the operand of this index, however it lies."""
    if not on_cpu():
        return product(x, y, c.dtype)
    turned = c.turned(index)
    if turned is not None and turns(math.prod(x.shape[:-1]), *y.shape):
        return _across(x, turned, c.dtype)
    if placed := c.placed():
        return _columns(x, placed, c.dtype)
    return _along(x, y, c.dtype) if turned is None else _across(x, turned, c.dtype)


def _along(x: Array, y: Array, dtype: DType) -> Array:
    """``x @ y`` where the rows of ``y`` are in order: cut, which is a copy, where they share lines (`matrix`)."""
    is_cut = y.ndim == 2 and shares_lines(y.shape[1], y.dtype.itemsize) and math.prod(x.shape[:-1]) >= FEW_ROWS
    if not is_cut:
        return product(x, y, dtype)
    return _columns(x, jnp.split(y, cuts(y.shape[1], y.dtype.itemsize), 1), dtype)


def _across(x: Array, weight: Array, dtype: DType) -> Array:
    """``x @ weight.T`` where the rows of ``weight`` are in order.

    Eigen is several times slower where the factor on the right has its columns in order, as ``weight.T`` has. So the
    smaller factor is turned around, and the product with it; barriers keep XLA from putting the two turns together.
    """
    if not turns_products():
        return product(x, weight.T, dtype)
    rows, (columns, inner) = math.prod(x.shape[:-1]), weight.shape
    if rows * (inner + columns) >= inner * columns:
        return _columns(x, [_turned(block) for block in _cut(weight)], dtype)
    turned = [product(weight, _turned(block), dtype) for block in _cut(jnp.reshape(x, (rows, inner)))]
    out = jnp.concatenate([lax.optimization_barrier(block).T for block in turned])
    return jnp.reshape(out, (*x.shape[:-1], columns))


def _turned(x: Array) -> Array:
    return lax.optimization_barrier(x.T)


def _cut(x: Array) -> list[Array]:
    return jnp.split(x, cuts(x.shape[0], x.dtype.itemsize))
