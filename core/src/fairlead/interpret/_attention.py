"""Attention in plain steps, for devices whose own kernels keep other things for the backward than the CPU's do."""

from __future__ import annotations

import torch

__all__ = ["attention", "attention_backward"]


def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    causal: bool,
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The output and the logsumexp of each row, which is zero for a row that the mask shuts out altogether."""
    scores = _scores(query, key, mask, causal, scale)
    peak = scores.amax(-1, keepdim=True)
    peak = torch.where(peak == float("-inf"), torch.zeros_like(peak), peak)
    weights = torch.exp(scores - peak)
    total = weights.sum(-1, keepdim=True)
    total = torch.where(total == 0, torch.ones_like(total), total)
    out = (weights / total) @ _shared(value, query)
    return out.to(query.dtype), (total.log() + peak).squeeze(-1)


def attention_backward(
    grad: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    out: torch.Tensor,
    logsumexp: torch.Tensor,
    mask: torch.Tensor | None,
    causal: bool,
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The gradients of query, key and value (arXiv:2205.14135, appendix B.2)."""
    weights = torch.exp(_scores(query, key, mask, causal, scale) - logsumexp.unsqueeze(-1))
    wide = _wide(grad)
    row = (wide * _wide(out)).sum(-1, keepdim=True)
    grad_scores = weights * (wide @ _shared(value, query).mT - row) * scale
    grad_query = grad_scores @ _shared(key, query)
    grad_key = _summed(grad_scores.mT @ _wide(query), key)
    grad_value = _summed(weights.mT @ wide, value)
    return grad_query.to(query.dtype), grad_key.to(key.dtype), grad_value.to(value.dtype)


def _scores(
    query: torch.Tensor, key: torch.Tensor, mask: torch.Tensor | None, causal: bool, scale: float
) -> torch.Tensor:
    scores = _wide(query) @ _shared(key, query).mT * scale
    if mask is not None:
        scores = scores + mask.to(scores.dtype)
    if causal:
        kept = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        scores = scores.masked_fill(~kept, float("-inf"))
    return scores


def _wide(x: torch.Tensor) -> torch.Tensor:
    return x.float() if x.itemsize < 4 else x


def _shared(x: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
    """Keys or values, once for each head of the query that shares them."""
    times = query.shape[1] // x.shape[1] if x.shape[1] else 1
    return _wide(x) if times == 1 else _wide(x).repeat_interleave(times, 1)


def _summed(gradient: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """The gradient of what several heads share."""
    if gradient.shape[1] == x.shape[1]:
        return gradient
    groups = gradient.reshape(gradient.shape[0], x.shape[1], -1, *gradient.shape[2:])
    return groups.sum(2)
