"""Losses that capture keeps whole: the negative log-likelihood."""

from __future__ import annotations

import numpy as np

from fairlead.numpy._dtypes import Array, wide
from fairlead.numpy._indexing import checked
from fairlead.numpy._table import Call, op

NONE, MEAN, SUM = range(3)


def _weights(target: Array, classes: int, weight: Array | None, ignored: int) -> tuple[Array, Array]:
    """The class of each sample, and what it counts for: nothing where it is ignored."""
    counts = target != ignored
    target = checked(np.where(counts, target, 0), classes, negative=False)
    return target, counts * (np.ones(target.shape) if weight is None else wide(weight)[target])


@op("nll_loss_forward", "nll_loss2d_forward")
def _nll_loss(
    call: Call, x: Array, target: Array, weight: Array | None, reduction: int, ignored: int
) -> tuple[Array, Array]:
    """The second result is the sum of the weights, zero where nothing is reduced."""
    classes = x.shape[min(x.ndim, 2) - 1]
    rows = np.moveaxis(wide(x), min(x.ndim, 2) - 1, -1)
    at, weights = _weights(target, classes, weight, ignored)
    picked = np.take_along_axis(rows, at[..., None], -1)[..., 0]
    losses = np.where(weights == 0, 0, -picked * weights)
    if reduction == NONE and x.ndim > 1:
        return losses, np.zeros(())
    total = np.sum(losses)
    return total / np.sum(weights) if reduction == MEAN else total, np.sum(weights)


@op("nll_loss_backward", "nll_loss2d_backward")
def _nll_loss_backward(
    call: Call,
    grad: Array,
    x: Array,
    target: Array,
    weight: Array | None,
    reduction: int,
    ignored: int,
    total_weight: Array,
) -> Array:
    dim = min(x.ndim, 2) - 1
    at, weights = _weights(target, x.shape[dim], weight, ignored)
    scale = wide(grad) / (wide(total_weight) if reduction == MEAN else 1)
    out = np.zeros(np.moveaxis(x, dim, -1).shape)
    np.put_along_axis(out, at[..., None], np.where(weights == 0, 0, -weights * scale)[..., None], -1)
    return np.moveaxis(out, -1, dim)
