"""Which ATen operators compute what an op of the IR does, under whatever name."""

from __future__ import annotations

import functools

__all__ = ["relatives"]

_FAMILIES = (
    "mm bmm addmm baddbmm addbmm addmv mv dot vdot inner linear matmul _addmm_activation mkldnn_linear"
    " mkl_linear _mkl_linear chain_matmul linalg_multi_dot tensordot einsum addr outer ger",
    "convolution convolution_overrideable _convolution mkldnn_convolution thnn_conv2d _slow_conv2d_forward"
    " slow_conv3d slow_conv3d_forward slow_conv_dilated2d slow_conv_dilated3d slow_conv_transpose2d"
    " slow_conv_transpose3d _conv_depthwise2d conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d"
    " _nnpack_spatial_convolution mkldnn_rnn_layer",
    "convolution_backward _convolution_double_backward _slow_conv2d_backward conv_depthwise3d",
    "scaled_dot_product_attention _scaled_dot_product_flash_attention_for_cpu"
    " _scaled_dot_product_attention_math _scaled_dot_product_fused_attention_overrideable",
    "scaled_dot_product_attention_backward _scaled_dot_product_flash_attention_for_cpu_backward",
    "relu relu6 clamp clamp_min maximum threshold hardtanh",
    "silu swish sigmoid",
    "_softmax softmax _safe_softmax",
    "_log_softmax log_softmax",
    "native_layer_norm layer_norm rms_norm _fused_rms_norm",
    "native_group_norm group_norm",
    "native_batch_norm batch_norm _native_batch_norm_legit _native_batch_norm_legit_no_training"
    " _batch_norm_with_update _batch_norm_no_update cudnn_batch_norm",
    "add sub rsub subtract add_relu",
    "mul multiply square",
    "div divide true_divide floor_divide reciprocal",
    "sum nansum",
    "mean nanmean",
    "amax max",
    "amin min",
    "embedding index_select index gather take",
    "cat concat concatenate stack",
    "pow square",
    "max_pool2d_with_indices max_pool2d mkldnn_max_pool2d",
    "avg_pool2d",
    "_adaptive_avg_pool2d adaptive_avg_pool2d mkldnn_adaptive_avg_pool2d",
)


@functools.cache
def _by_name() -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for family in _FAMILIES:
        names = frozenset(family.split())
        for name in names:
            found[name] = found.get(name, frozenset()) | names
    return found


@functools.cache
def relatives(op: str) -> frozenset[str]:
    """The names, without overloads, of the operators that compute the same as an op of the IR, its own among them.

    >>> sorted(relatives("aten.add.Tensor"))
    ['add', 'add_relu', 'rsub', 'sub', 'subtract']
    """
    namespace, _, rest = op.partition(".")
    name = rest.partition(".")[0]
    return _by_name().get(name, frozenset()) | ({name} if namespace in ("aten", "nn") else frozenset())
