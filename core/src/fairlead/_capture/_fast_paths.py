"""Inference kernels that fuse a whole layer, written out again: no backend gains from one opaque op.

``nn.TransformerEncoderLayer`` and ``nn.MultiheadAttention`` call them in eval mode. Each function here has the
meaning of its kernel for dense tensors (aten/src/ATen/native/transformers/transformer.cpp and attention.cpp).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

_SOURCE_MASK, _PADDING_MASK = 0, 1


def _heads(x: Tensor, count: int) -> Tensor:
    batch, length, width = x.shape
    return x.view(batch, length, count, width // count).transpose(1, 2)


def _additive(mask: Tensor | None, kind: int | None, like: Tensor) -> Tensor | None:
    """The kernels' mask, true where a position is left out, as something to add to the scores."""
    if mask is None:
        return None
    left_out = mask.to(torch.bool)
    if kind == _PADDING_MASK:
        left_out = left_out[:, None, None, :]
    return torch.zeros_like(left_out, dtype=like.dtype).masked_fill(left_out, float("-inf"))


def _attention(query: Tensor, key: Tensor, value: Tensor, heads: int, mask: Tensor | None, kind: int | None) -> Tensor:
    q, k, v = (_heads(x, heads) for x in (query, key, value))
    out = functional.scaled_dot_product_attention(q, k, v, attn_mask=_additive(mask, kind, q))
    return out.transpose(1, 2).reshape(query.shape)


def _encoder_layer(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    def attend(x: Tensor) -> Tensor:
        q, k, v = torch.split(functional.linear(x, qkv_weight, qkv_bias), embed_dim, -1)
        return functional.linear(_attention(q, k, v, num_heads, mask, mask_type), proj_weight, proj_bias)

    def feed(x: Tensor) -> Tensor:
        inner = functional.linear(x, ffn_weight_1, ffn_bias_1)
        inner = functional.gelu(inner) if use_gelu else functional.relu(inner)
        return functional.linear(inner, ffn_weight_2, ffn_bias_2)

    def first(x: Tensor) -> Tensor:
        return functional.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def second(x: Tensor) -> Tensor:
        return functional.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    if norm_first:
        src = src + attend(first(src))
        return src + feed(second(src))
    src = first(src + attend(src))
    return second(src + feed(src))


def _multi_head(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> Any:
    if need_weights:
        return NotImplemented  # the weights are a result of their own: leave the kernel whole
    weights, biases = torch.split(qkv_weight, embed_dim), torch.split(qkv_bias, embed_dim)
    q, k, v = (functional.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True))
    mixed = _attention(q, k, v, num_head, mask, mask_type)
    return functional.linear(mixed, proj_weight, proj_bias), query.new_empty(0)


FAST_PATHS: dict[Any, Callable[..., Any]] = {
    torch.ops.aten._transformer_encoder_layer_fwd.default: _encoder_layer,
    torch.ops.aten._native_multi_head_attention.default: _multi_head,
}
"""What AOTAutograd traces in place of each kernel."""
