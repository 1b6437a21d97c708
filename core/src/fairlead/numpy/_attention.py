"""Scaled dot-product attention, forward and backward, on whole matrices (Dao et al. 2022, arXiv:2205.14135)."""

from __future__ import annotations

import numpy as np

from fairlead.numpy._dtypes import Array, wide
from fairlead.numpy._table import Call, op


def _scores(query: Array, key: Array, mask: Array | None, causal: bool, scale: float) -> Array:
    scores = query @ np.swapaxes(key, -1, -2) * scale
    scores = scores if mask is None else scores + wide(mask)
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=np.bool_), scores, -np.inf)
    return scores


def _shared(x: Array, heads: int) -> Array:
    """Keys or values once for each query head: consecutive heads share one."""
    return np.repeat(x, heads // x.shape[1], 1) if x.shape[1] != heads else x


def _summed(grad: Array, heads: int) -> Array:
    """The gradient of a head that several query heads share."""
    batch, count, rows, n = grad.shape
    return grad if count == heads else grad.reshape(batch, heads, count // heads, rows, n).sum(2)


@op("nn.scaled_dot_product_attention")
def _attention(
    call: Call,
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None,
    dropout: float,
    causal: bool,
    scale: float,
) -> tuple[Array, Array]:
    """Rows that the mask shuts out altogether are zero, and so is their logsumexp."""
    _no_dropout(dropout)
    heads = query.shape[1]
    scores = _scores(wide(query), _shared(wide(key), heads), mask, causal, scale)
    peak = np.max(scores, -1, keepdims=True, initial=-np.inf)
    peak = np.where(peak == -np.inf, 0, peak)
    e = np.exp(scores - peak)
    total = np.sum(e, -1, keepdims=True)
    total = np.where(total == 0, 1, total)
    return (e / total) @ _shared(wide(value), heads), (np.log(total) + peak)[..., 0]


@op("nn.scaled_dot_product_attention_backward")
def _attention_backward(
    call: Call,
    grad: Array,
    query: Array,
    key: Array,
    value: Array,
    out: Array,
    logsumexp: Array,
    mask: Array | None,
    dropout: float,
    causal: bool,
    scale: float,
) -> tuple[Array, Array, Array]:
    _no_dropout(dropout)
    grad, query, out = wide(grad), wide(query), wide(out)
    heads, keys = query.shape[1], key.shape[1]
    key, value = _shared(wide(key), heads), _shared(wide(value), heads)
    weights = np.exp(_scores(query, key, mask, causal, scale) - wide(logsumexp)[..., None])
    row = np.sum(grad * out, -1, keepdims=True)
    grad_scores = weights * (grad @ np.swapaxes(value, -1, -2) - row) * scale
    grad_key = np.swapaxes(grad_scores, -1, -2) @ query
    grad_value = np.swapaxes(weights, -1, -2) @ grad
    return grad_scores @ key, _summed(grad_key, keys), _summed(grad_value, keys)


def _no_dropout(p: float) -> None:
    if p != 0:
        raise ValueError("attention with dropout keeps no mask that could be drawn again")
