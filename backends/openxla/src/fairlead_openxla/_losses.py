"""Rules of the negative log-likelihood, forward and backward."""

from __future__ import annotations

import jax.numpy as jnp

from fairlead_openxla._call import Call
from fairlead_openxla._indexing import checked
from fairlead_openxla._numbers import Array, wide
from fairlead_openxla._rules import rule

__all__: list[str] = []

_NONE, _MEAN = 0, 1


def _classes(c: Call, x: Array, target: Array, weight: Array | None, ignored: int) -> tuple[int, Array, Array, Array]:
    """The dimension of the classes, which samples count, the class of each, and what it counts for."""
    dim = min(x.ndim, 2) - 1
    kept = target != ignored
    at = checked(c, jnp.where(kept, target, 0), x.shape[dim], negative=False)
    weights = jnp.ones(target.shape, x.dtype) if weight is None else jnp.take(wide(weight), at, mode="clip")
    return dim, kept, at, jnp.where(kept, weights, 0)


@rule("nll_loss_forward", "nll_loss2d_forward")
def nll_loss(
    c: Call, x: Array, target: Array, weight: Array | None, reduction: int, ignored: int
) -> tuple[Array, Array]:
    """The second result is the sum of the weights, zero where nothing is reduced."""
    x = wide(x)
    dim, kept, at, weights = _classes(c, x, target, weight, ignored)
    picked = jnp.squeeze(jnp.take_along_axis(x, jnp.expand_dims(at, dim), dim, mode="clip"), dim)
    losses = jnp.where(kept, -picked * weights, 0)
    if reduction == _NONE and x.ndim > 1:
        return losses, jnp.zeros((), x.dtype)
    total, counted = jnp.sum(losses), jnp.sum(weights)
    return (total / counted if reduction == _MEAN else total), counted


@rule("nll_loss_backward", "nll_loss2d_backward")
def nll_loss_backward(
    c: Call,
    grad: Array,
    x: Array,
    target: Array,
    weight: Array | None,
    reduction: int,
    ignored: int,
    total_weight: Array,
) -> Array:
    x = wide(x)
    dim, kept, at, weights = _classes(c, x, target, weight, ignored)
    scale = wide(grad) / wide(total_weight) if reduction == _MEAN else wide(grad)
    rows = jnp.expand_dims(jnp.where(kept, -weights * scale, 0), dim)
    classes = jnp.reshape(jnp.arange(x.shape[dim]), (-1,) + (1,) * (x.ndim - dim - 1))
    return jnp.where(classes == jnp.expand_dims(at, dim), rows, 0)
