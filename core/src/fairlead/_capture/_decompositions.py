"""Which ATen ops are taken apart while AOTAutograd traces: an allowlist, never torch's whole table.

An op is on the list when its decomposition is exact for the dtypes it takes in every precision and no backend
gains from seeing it whole. Composites (normalisations, activations, softmax, attention, losses, pooling,
convolutions) are not on it, forward or backward: taking them apart too early costs speed, and for CPU flash attention
it costs correctness, because torch's own entry returns attention weights where the backward expects the logsumexp.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import get_decompositions

from fairlead._capture._fast_paths import FAST_PATHS

_ALLOWED = [
    "_prelu_kernel",
    "_prelu_kernel_backward",
    "_reshape_alias",
    "_safe_softmax",
    "_unsafe_index",
    "_unsafe_index_put",
    "_weight_norm_interface",
    "addcdiv",
    "addcmul",
    "addr",
    "aminmax",
    "arange",
    "argsort",
    "baddbmm",
    "binary_cross_entropy",
    "binary_cross_entropy_backward",
    "binary_cross_entropy_with_logits",
    "celu",
    "channel_shuffle",
    "clamp_max",
    "clamp_min",
    "col2im",
    "copy",
    "count_nonzero",
    "cross",
    "cudnn_batch_norm",
    "deg2rad",
    "diag_embed",
    "diagonal_backward",
    "dot",
    "elu_backward",
    "embedding_backward",
    "eye",
    "fill",
    "floor_divide",
    "frac",
    "glu",
    "glu_backward",
    "hardshrink",
    "hardsigmoid_backward",
    "hardswish_backward",
    "hardtanh_backward",
    "heaviside",
    "huber_loss",
    "huber_loss_backward",
    "index_add",
    "index_copy",
    "index_fill",
    "isfinite",
    "isin",
    "isneginf",
    "isposinf",
    "l1_loss",
    "leaky_relu_backward",
    "lerp",
    "linalg_cross",
    "linspace",
    "log_sigmoid_backward",
    "log_sigmoid_forward",
    "logaddexp",
    "logaddexp2",
    "logit",
    "logit_backward",
    "logspace",
    "masked_fill",
    "max_pool2d",
    "mish_backward",
    "mse_loss",
    "mse_loss_backward",
    "multilabel_margin_loss_forward",
    "mv",
    "nan_to_num",
    "nansum",
    "native_channel_shuffle",
    "native_dropout_backward",
    "new_full",
    "new_ones",
    "new_zeros",
    "norm",
    "ones",
    "ones_like",
    "pixel_shuffle",
    "pixel_unshuffle",
    "rad2deg",
    "reflection_pad1d_backward",
    "reflection_pad2d_backward",
    "reflection_pad3d_backward",
    "renorm",
    "roll",
    "rot90",
    "rsub",
    "select_backward",
    "select_scatter",
    "selu",
    "sgn",
    "sinc",
    "slice_backward",
    "smooth_l1_loss",
    "smooth_l1_loss_backward",
    "soft_margin_loss",
    "soft_margin_loss_backward",
    "softplus_backward",
    "softshrink",
    "special_entr",
    "special_log_ndtr",
    "special_xlog1py",
    "split",
    "square",
    "stack",
    "std",
    "std_mean",
    "sum",
    "t",
    "take",
    "tanh_backward",
    "threshold",
    "trace",
    "transpose",
    "tril",
    "triu",
    "unbind_copy",
    "unfold_backward",
    "unsafe_split",
    "unsafe_split_with_sizes",
    "vdot",
    "xlogy",
    "zero",
    "zeros",
    "zeros_like",
    "_unsafe_masked_index",
    "_unsafe_masked_index_put_accumulate",
]


_KEPT = ("start_step", "dim_IntList", "out")
"""Overloads of allowed ops that stay: the canonical forms of arange and sum, and what writes to its arguments."""


@functools.cache
def table() -> dict[Any, Callable[..., Any]]:
    """The decompositions, by op overload, as AOTAutograd takes them."""
    packets = [getattr(torch.ops.aten, name) for name in _ALLOWED if hasattr(torch.ops.aten, name)]
    found: dict[Any, Callable[..., Any]] = get_decompositions(packets)
    return {op: rule for op, rule in found.items() if not str(op).endswith(_KEPT)} | FAST_PATHS
