"""Distances between rows, in any p-norm, and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairlead.numpy._dtypes import Array, cast, dtype_of, wide
from fairlead.numpy._reductions import vector_norm
from fairlead.numpy._table import Call, op


def _norms(gap: Array, p: float) -> Array:
    return vector_norm(np.abs(gap), p, (gap.ndim - 1,), keepdim=False)


def _gradient(gap: Array, p: float, distance: Array, grad: Array) -> Array:
    """The gradient of the gap; zero where the distance is."""
    if p == 0:
        return np.zeros(gap.shape)
    if p == np.inf:
        # The distance is rounded to its dtype: so has to be what it is found again by.
        is_largest = cast(np.abs(gap), dtype_of(distance)) == distance[..., None]
        return wide(grad)[..., None] * np.sign(gap) * is_largest
    grad, distance = wide(grad)[..., None], wide(distance)[..., None]
    slope = np.sign(gap) * (np.abs(gap) / np.where(distance == 0, 1, distance)) ** (p - 1)
    return grad * np.where((distance == 0) | (gap == 0), 0, slope)


@op("_cdist_forward")
def _cdist(call: Call, x: Array, y: Array, p: float, mode: Any = None) -> Array:
    return _norms(wide(x)[..., :, None, :] - wide(y)[..., None, :, :], p)


@op("_cdist_backward")
def _cdist_backward(call: Call, grad: Array, x: Array, y: Array, p: float, distance: Array) -> Array:
    """Of the batch that the two make together, or of nothing: then no gradient reaches x, whose shape it has."""
    gap = wide(x)[..., :, None, :] - wide(y)[..., None, :, :]
    if gap.size == 0:
        return np.zeros(x.shape)
    return np.sum(_gradient(gap, p, distance, grad), -2)


@op("_pdist_forward")
def _pdist(call: Call, x: Array, p: float = 2.0) -> Array:
    first, second = np.triu_indices(len(x), 1)
    return _norms(wide(x)[first] - wide(x)[second], p)


@op("_pdist_backward")
def _pdist_backward(call: Call, grad: Array, x: Array, p: float, distance: Array) -> Array:
    first, second = np.triu_indices(len(x), 1)
    part = _gradient(wide(x)[first] - wide(x)[second], p, distance, grad)
    out = np.zeros(x.shape)
    np.add.at(out, first, part)
    np.subtract.at(out, second, part)
    return out
