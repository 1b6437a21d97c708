"""Rules of the gradients of normalisations."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from fairlead_openxla._call import Call
from fairlead_openxla._norms import Batch, column
from fairlead_openxla._numbers import Array, wide
from fairlead_openxla._reductions import mean_of
from fairlead_openxla._rules import rule

__all__: list[str] = []


def _through(grad: Array, normal: Array, rstd: Array, over: tuple[int, ...]) -> Array:
    """The gradient of x of a normalisation by x's own statistics, given that of the normalised x."""
    mean = mean_of(grad, over, keepdims=True)
    return rstd * (grad - mean - normal * mean_of(grad * normal, over, keepdims=True))


@rule("native_layer_norm_backward")
def layer_norm_backward(
    c: Call,
    grad: Array,
    x: Array,
    shape: tuple[int, ...],
    mean: Array,
    rstd: Array,
    weight: Array | None,
    bias: Array | None,
    wanted: tuple[bool, ...],
) -> tuple[Array | None, ...]:
    grad, x = wide(grad), wide(x)
    split = x.ndim - len(shape)
    leading = (*x.shape[:split], *(1,) * len(shape))
    mean, rstd = jnp.reshape(wide(mean), leading), jnp.reshape(wide(rstd), leading)
    normal, outer = (x - mean) * rstd, tuple(range(split))
    inner = grad if weight is None else grad * wide(weight)
    return (
        _through(inner, normal, rstd, tuple(range(split, x.ndim))) if wanted[0] else None,
        jnp.sum(grad * normal, outer) if wanted[1] else None,
        jnp.sum(grad, outer) if wanted[2] else None,
    )


@rule("_fused_rms_norm_backward")
def rms_norm_backward(
    c: Call,
    grad: Array,
    x: Array,
    shape: tuple[int, ...],
    rstd: Array,
    weight: Array | None,
    wanted: tuple[bool, ...],
) -> tuple[Array | None, Array | None]:
    grad, x, rstd = wide(grad), wide(x), wide(rstd)
    split = x.ndim - len(shape)
    inner = grad if weight is None else grad * wide(weight)
    mean = mean_of(inner * x * rstd, tuple(range(split, x.ndim)), keepdims=True)
    of_weight = jnp.sum(grad * x * rstd, tuple(range(split))) if wanted[1] else None
    return rstd * (inner - x * rstd * mean) if wanted[0] else None, of_weight


@rule("native_group_norm_backward")
def group_norm_backward(
    c: Call,
    grad: Array,
    x: Array,
    mean: Array,
    rstd: Array,
    weight: Array | None,
    n: int,
    channels: int,
    size: int,
    groups: int,
    wanted: tuple[bool, ...],
) -> tuple[Array | None, ...]:
    shape, grouped = x.shape, (n, groups, (channels // groups) * size)
    grad, x = jnp.reshape(wide(grad), (n, channels, size)), jnp.reshape(wide(x), grouped)
    mean, rstd = jnp.reshape(wide(mean), (n, groups, 1)), jnp.reshape(wide(rstd), (n, groups, 1))
    normal = (x - mean) * rstd
    inner = grad if weight is None else grad * jnp.reshape(wide(weight), (channels, 1))
    whole = jnp.reshape(normal, (n, channels, size))
    return (
        jnp.reshape(_through(jnp.reshape(inner, grouped), normal, rstd, (2,)), shape) if wanted[0] else None,
        jnp.sum(grad * whole, (0, 2)) if wanted[1] else None,
        jnp.sum(grad, (0, 2)) if wanted[2] else None,
    )


@rule("native_batch_norm_backward", "batch_norm_backward")
def batch_norm_backward(
    c: Call,
    grad: Array,
    x: Array,
    weight: Array | None,
    mean: Array | None,
    var: Array | None,
    saved_mean: Array | None,
    saved_rstd: Array | None,
    training: bool,
    eps: float,
    wanted: tuple[bool, ...],
    reserve: Any = None,
) -> tuple[Array | None, ...]:
    grad, rank = wide(grad), x.ndim
    batch = Batch(x, training, mean, var, eps)
    if training and saved_mean is not None and saved_rstd is not None:
        batch.mean, batch.rstd = column(saved_mean, rank), column(saved_rstd, rank)
    normal = (batch.x - batch.mean) * batch.rstd
    inner = grad if weight is None else grad * column(weight, rank)
    of_input = _through(inner, normal, batch.rstd, batch.over) if training else inner * batch.rstd
    return (
        of_input if wanted[0] else None,
        jnp.sum(grad * normal, batch.over) if wanted[1] else None,
        jnp.sum(grad, batch.over) if wanted[2] else None,
    )


@rule("_weight_norm_interface_backward")
def weight_norm_backward(c: Call, grad: Array, v: Array, g: Array, norm: Array, dim: int) -> tuple[Array | None, ...]:
    """Of ``w = g v / |v|``, where the norm is over all dimensions but one."""
    grad, v, g, norm = wide(grad), wide(v), wide(g), wide(norm)
    inner = jnp.sum(grad * v, tuple(d for d in range(v.ndim) if d != dim), keepdims=True)
    return g / norm * (grad - v * inner / norm**2), inner / norm
