"""Rules that reduce dimensions, or run along one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax

from fairlead.ir import DType
from fairlead_openxla._arithmetic import divided
from fairlead_openxla._call import Call
from fairlead_openxla._numbers import Array, cast, constant, dtype_of, operand, wide
from fairlead_openxla._rules import Rule, rule
from fairlead_openxla._views import axes, axis

__all__ = ["count_of", "mean_of", "norm_of"]


def count_of(x: Array, over: tuple[int, ...]) -> int:
    """How many elements are reduced to one."""
    return math.prod(x.shape[d] for d in over)


def mean_of(x: Array, over: tuple[int, ...], *, keepdims: bool = False) -> Array:
    """The sum over the count, which is rounded once."""
    total = jnp.sum(x, over, keepdims=keepdims)
    return divided(total, constant(count_of(x, over), dtype_of(total)))


def _addends(x: Array, dtype: DType) -> Array:
    """The operand of a sum: f32 in f64, since XLA adds one number after the other."""
    x = operand(x, dtype)
    return x.astype(jnp.float64) if dtype is DType.f32 else x


@rule("sum.dim_IntList", takes_complex=True)
def sum_(c: Call, x: Array, dims: Any = None, keepdim: bool = False, dtype: Any = None) -> Array:
    x = _addends(x, c.dtype)
    return jnp.sum(x, axes(dims, x.ndim), keepdims=keepdim, dtype=x.dtype)


@rule("mean.dim")
def mean(c: Call, x: Array, dims: Any = None, keepdim: bool = False, dtype: Any = None) -> Array:
    x = _addends(x, c.dtype)
    return mean_of(x, axes(dims, x.ndim), keepdims=keepdim)


@rule("prod")
def prod(c: Call, x: Array, dtype: Any = None) -> Array:
    x = operand(x, c.dtype)
    return jnp.prod(x, dtype=x.dtype)


@rule("prod.dim_int")
def prod_along(c: Call, x: Array, dim: int, keepdim: bool = False, dtype: Any = None) -> Array:
    x = operand(x, c.dtype)
    return jnp.prod(x, axes(dim, x.ndim), keepdims=keepdim, dtype=x.dtype)


def _extreme(function: Callable[..., Array]) -> Rule:
    def write(c: Call, x: Array, dims: Any = (), keepdim: bool = False) -> Array:
        return function(x, axes(dims, x.ndim), keepdims=keepdim)

    return write


rule("amax")(_extreme(jnp.max))
rule("amin")(_extreme(jnp.min))


def _truth(function: Callable[..., Array]) -> Rule:
    def write(c: Call, x: Array, dims: Any = None, keepdim: bool = False) -> Array:
        return function(cast(x, DType.bool), axes(dims, x.ndim, empty_is_all=False), keepdims=keepdim)

    return write


rule("any.dims", takes_complex=True)(_truth(jnp.any))
rule("all.dims", takes_complex=True)(_truth(jnp.all))


def _with_place(function: Callable[..., Array]) -> Rule:
    """The extreme and the first place that has it; a NaN is more extreme than any number."""

    def write(c: Call, x: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
        if x.ndim == 0:
            return x, jnp.zeros((), jnp.int64)
        at = function(x, axis(dim, x.ndim), keepdims=True)
        values = jnp.take_along_axis(x, at, axis(dim, x.ndim), mode="clip")
        return (values, at) if keepdim else (jnp.squeeze(values, dim), jnp.squeeze(at, dim))

    return write


rule("max.dim")(_with_place(jnp.argmax))
rule("min.dim")(_with_place(jnp.argmin))


def _place(function: Callable[..., Array]) -> Rule:
    def write(c: Call, x: Array, dim: int | None = None, keepdim: bool = False) -> Array:
        if dim is None or x.ndim == 0:
            return jnp.reshape(function(jnp.ravel(x)), c.shape())
        return function(x, axis(dim, x.ndim), keepdims=keepdim)

    return write


rule("argmax")(_place(jnp.argmax))
rule("argmin")(_place(jnp.argmin))


def _variance(x: Array, over: tuple[int, ...], correction: Any, keepdim: bool) -> tuple[Array, Array]:
    """Squared distances from the mean over the count less the correction, and the mean."""
    mean = mean_of(x, over, keepdims=True)
    total = jnp.sum(jnp.square(x - mean), over, keepdims=keepdim)
    free = max(count_of(x, over) - (1 if correction is None else correction), 0)
    return divided(total, constant(free, dtype_of(x))), (mean if keepdim else jnp.reshape(mean, total.shape))


@rule("var.correction")
def var(c: Call, x: Array, dims: Any = None, correction: Any = None, keepdim: bool = False) -> Array:
    return _variance(wide(x), axes(dims, x.ndim), correction, keepdim)[0]


@rule("var_mean.correction")
def var_mean(c: Call, x: Array, dims: Any = None, correction: Any = None, keepdim: bool = False) -> tuple[Array, Array]:
    return _variance(wide(x), axes(dims, x.ndim), correction, keepdim)


@rule("linalg_vector_norm")
def vector_norm(c: Call, x: Array, order: Any = 2, dims: Any = None, keepdim: bool = False, dtype: Any = None) -> Array:
    return norm_of(jnp.abs(_addends(x, c.dtype)), float(order), axes(dims, x.ndim), keepdim)


def norm_of(size: Array, order: float, over: tuple[int, ...], keepdim: bool) -> Array:
    """The p-norm of absolute values: the largest for infinity, the number of those that are not zero for 0.

    Powers do not overflow: they are of numbers that are divided by the largest.
    """
    if order == math.inf:
        return jnp.max(size, over, keepdims=keepdim, initial=0)
    if order == -math.inf:
        return jnp.min(size, over, keepdims=keepdim)
    if order == 0:
        return jnp.sum((size != 0).astype(size.dtype), over, keepdims=keepdim)
    if order == 1:
        return jnp.sum(size, over, keepdims=keepdim)
    peak = jnp.max(size, over, keepdims=True, initial=0)
    peak = jnp.where((peak == 0) | ~jnp.isfinite(peak), 1, peak)
    share = jnp.square(size / peak) if order == 2 else (size / peak) ** order
    sums = jnp.sum(share, over, keepdims=True)
    total = (jnp.sqrt(sums) if order == 2 else sums ** (1 / order)) * peak
    return total if keepdim else jnp.squeeze(total, over)


@rule("cumsum")
def cumsum(c: Call, x: Array, dim: int, dtype: Any = None) -> Array:
    x = operand(x, c.dtype)
    return jnp.cumsum(x, axis(dim, x.ndim), dtype=x.dtype) if x.ndim else x


@rule("cumprod")
def cumprod(c: Call, x: Array, dim: int, dtype: Any = None) -> Array:
    x = operand(x, c.dtype)
    return jnp.cumprod(x, axis(dim, x.ndim), dtype=x.dtype) if x.ndim else x


def _running(is_better: Callable[[Array, Array], Array]) -> Rule:
    """The extreme so far and where it is: the last of equals, and a NaN for good."""

    def later(a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
        takes = (b[0] != b[0]) | (is_better(b[0], a[0]) & (a[0] == a[0]))
        return jnp.where(takes, b[0], a[0]), jnp.where(takes, b[1], a[1])

    def write(c: Call, x: Array, dim: int) -> tuple[Array, Array]:
        if x.ndim == 0 or x.size == 0:
            return x, jnp.zeros(x.shape, jnp.int64)
        at = axis(dim, x.ndim)
        places = lax.broadcasted_iota(jnp.int64, x.shape, at)
        values, where = lax.associative_scan(later, (x, places), axis=at)
        return values, where

    return write


rule("cummax")(_running(lambda b, a: b >= a))
rule("cummin")(_running(lambda b, a: b <= a))


@rule("_softmax")
def softmax(c: Call, x: Array, dim: int, half_to_float: Any = False) -> Array:
    x = wide(x)
    over = axes(dim, x.ndim)
    e = jnp.exp(x - jnp.max(x, over, keepdims=True))
    return e / jnp.sum(e, over, keepdims=True)


@rule("_safe_softmax")
def safe_softmax(c: Call, x: Array, dim: int, dtype: Any = None) -> Array:
    """A row of -inf alone is zero."""
    x = operand(x, c.dtype)
    masked = jnp.all(x == -math.inf, axes(dim, x.ndim), keepdims=True)
    return jnp.where(masked, 0, softmax(c, jnp.where(masked, 0, x), dim))


@rule("_log_softmax")
def log_softmax(c: Call, x: Array, dim: int, half_to_float: Any = False) -> Array:
    x = wide(x)
    over = axes(dim, x.ndim)
    shifted = x - jnp.max(x, over, keepdims=True)
    return shifted - jnp.log(jnp.sum(jnp.exp(shifted), over, keepdims=True))


@rule("_softmax_backward_data")
def softmax_backward(c: Call, grad: Array, y: Array, dim: int, dtype: Any) -> Array:
    grad, y = wide(grad), wide(y)
    return y * (grad - jnp.sum(grad * y, axes(dim, y.ndim), keepdims=True))


@rule("_log_softmax_backward_data")
def log_softmax_backward(c: Call, grad: Array, y: Array, dim: int, dtype: Any) -> Array:
    grad, y = wide(grad), wide(y)
    return grad - jnp.exp(y) * jnp.sum(grad, axes(dim, y.ndim), keepdims=True)
