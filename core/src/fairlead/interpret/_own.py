"""Ops of our own, and one that only newer releases of torch have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from fairlead.interpret import _attention as _steps
from fairlead.interpret._targets import Target


def _bernoulli(size: Sequence[int], p: float, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return torch.empty(size, dtype=dtype, device=device).bernoulli_(p)


def _attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    dropout: float,
    causal: bool,
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    if query.device.type != "cpu":
        return _steps.attention(query, key, value, mask, causal, scale)
    query, key, value = map(_last_contiguous, (query, key, value))
    return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default(  # type: ignore[no-any-return]
        query, key, value, dropout, causal, attn_mask=mask, scale=scale
    )


def _attention_backward(
    grad: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    out: torch.Tensor,
    logsumexp: torch.Tensor,
    mask: torch.Tensor | None,
    dropout: float,
    causal: bool,
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    if query.device.type != "cpu":
        return _steps.attention_backward(grad, query, key, value, out, logsumexp, mask, causal, scale)
    grad, query, key, value, out = map(_last_contiguous, (grad, query, key, value, out))
    return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default(  # type: ignore[no-any-return]
        grad, query, key, value, out, logsumexp, dropout, causal, attn_mask=mask, scale=scale
    )


def _lstm(
    data: torch.Tensor,
    hx: torch.Tensor,
    cx: torch.Tensor,
    weight_ih: torch.Tensor,
    weight_hh: torch.Tensor,
    bias_ih: torch.Tensor | None,
    bias_hh: torch.Tensor | None,
    reverse: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """In reverse it is the same over turned steps. Compilers that take it apart make zeros of float32 for no biases."""
    gates = [weight_ih.new_zeros(weight_ih.shape[0]) if b is None else b for b in (bias_ih, bias_hh)]
    data, hx, cx = ((data.flip(0) if reverse else data).contiguous(), hx.contiguous(), cx.contiguous())
    out, hy, cy = torch.ops.aten.lstm.input(
        data, [hx, cx], [weight_ih, weight_hh, *gates], True, 1, 0.0, False, False, False
    )
    return out.flip(0) if reverse else out, hy, cy


def _rms_norm(
    x: torch.Tensor, shape: Sequence[int], weight: torch.Tensor | None, eps: float | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """As ``aten._fused_rms_norm``, which torch has since 2.9 and computes in the same steps."""
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    eps = torch.finfo(wide.dtype).eps if eps is None else eps
    rstd = torch.rsqrt(wide.square().mean(tuple(range(-len(shape), 0)), keepdim=True) + eps)
    out = wide * rstd
    return (out if weight is None else out * weight).to(x.dtype), rstd


def _last_contiguous(x: torch.Tensor) -> torch.Tensor:
    """The flash kernels read rows: the last dimension has to be dense."""
    return x if x.stride(-1) == 1 or x.shape[-1] == 1 else x.contiguous()


OWN: Mapping[str, Target] = {
    "aten._fused_rms_norm.default": Target(_rms_norm, (None,) * 4, several=True),
    "nn.bernoulli.default": Target(_bernoulli, (None,) * 4, several=False),
    "nn.lstm": Target(_lstm, (None,) * 8, several=True),
    "nn.scaled_dot_product_attention": Target(_attention, (None,) * 7, several=True),
    "nn.scaled_dot_product_attention_backward": Target(_attention_backward, (None,) * 10, several=True),
}
