"""Normalisations and softmax, forward and backward."""

from __future__ import annotations

from fairlead.ir._types import DType, TensorType
from fairlead.ir.dims import Dim
from fairlead.ir.infer._rule import Dims, Results, Rule, require
from fairlead.ir.infer._sizes import axis_of, like, same, with_shape
from fairlead.ir.infer._spatial import Mask, masked

_REDUCED = (DType.f16, DType.bf16)


def _statistics_dtype(x: TensorType, *others: TensorType | None) -> DType:
    """Of half-precision numbers with float32 weights, and on accelerators always, statistics are float32."""
    if x.dtype in _REDUCED and (x.device != "cpu" or any(t is not None and t.dtype is DType.f32 for t in others)):
        return DType.f32
    return x.dtype


def _channels(x: TensorType) -> Dim:
    require(x.rank >= 2, f"the input has {x.rank} dimensions and no channels")
    return x.shape[1]


def layer_norm(
    input: TensorType,  # noqa: A002 - ATen's name
    normalized_shape: Dims,
    weight: TensorType | None,
    bias: TensorType | None,
    eps: float,
) -> Results:
    """The result, the mean and the reciprocal deviation; each of the last two has ones where it was normalised."""
    count = len(normalized_shape)
    require(0 < count <= input.rank, f"{count} dimensions are normalised, of {input.rank}")
    lead = input.shape[:-count]
    for size, wanted in zip(input.shape[-count:], normalized_shape, strict=True):
        same(size, wanted, "the sizes of input and normalized_shape")
    statistics = with_shape(input, (*lead, *(1,) * count), _statistics_dtype(input, weight))
    return like(input), statistics, statistics


def layer_norm_backward(
    grad_out: TensorType,
    input: TensorType,  # noqa: A002 - ATen's name
    normalized_shape: Dims,
    mean: TensorType,
    rstd: TensorType,
    weight: TensorType | None,
    bias: TensorType | None,
    output_mask: Mask,
) -> Results:
    """A gradient for input, weight and bias, as far as the mask asks for it."""
    plain = with_shape(input, normalized_shape)
    return masked(
        output_mask, like(input), plain if weight is None else like(weight), plain if bias is None else like(bias)
    )


def rms_norm(
    input: TensorType,  # noqa: A002 - ATen's name
    normalized_shape: Dims,
    weight: TensorType | None,
    eps: float | None,
) -> Results:
    """The result and the reciprocal root mean square."""
    count = len(normalized_shape)
    require(0 < count <= input.rank, f"{count} dimensions are normalised, of {input.rank}")
    dtype = DType.f32 if input.dtype in _REDUCED else input.dtype
    return like(input), with_shape(input, (*input.shape[:-count], *(1,) * count), dtype)


def group_norm(
    input: TensorType,  # noqa: A002 - ATen's name
    weight: TensorType | None,
    bias: TensorType | None,
    N: Dim,
    C: Dim,
    HxW: Dim,
    group: int,
    eps: float,
) -> Results:
    """The result, and for each group of channels the mean and the reciprocal deviation."""
    same(_channels(input), C, "the channels")
    require(group > 0, f"there are {group} groups")
    statistics = with_shape(input, (N, group), _statistics_dtype(input, weight))
    return like(input), statistics, statistics


def group_norm_backward(
    grad_out: TensorType,
    input: TensorType,  # noqa: A002 - ATen's name
    mean: TensorType,
    rstd: TensorType,
    weight: TensorType | None,
    N: Dim,
    C: Dim,
    HxW: Dim,
    group: int,
    output_mask: Mask,
) -> Results:
    """A gradient for input, weight and bias, as far as the mask asks for it."""
    channels = with_shape(input, (C,), input.dtype if weight is None else weight.dtype)
    return masked(output_mask, like(input), channels, channels)


def _batch_statistics(x: TensorType, training: bool, *others: TensorType | None) -> TensorType:
    """For each channel; none on the CPU where nothing is learnt."""
    kept = training or x.device != "cpu"
    return with_shape(x, (_channels(x),) if kept else (0,), _statistics_dtype(x, *others))


def batch_norm_in_training(
    input: TensorType,  # noqa: A002 - ATen's name
    weight: TensorType | None,
    bias: TensorType | None,
    running_mean: TensorType,
    running_var: TensorType,
    training: bool,
    momentum: float,
    eps: float,
) -> Results:
    """The result, the batch's mean and reciprocal deviation, and the running ones after this batch."""
    saved = _batch_statistics(input, training, weight, bias, running_mean, running_var)
    return like(input), saved, saved, like(running_mean), like(running_var)


def batch_norm_in_inference(
    input: TensorType,  # noqa: A002 - ATen's name
    weight: TensorType | None,
    bias: TensorType | None,
    running_mean: TensorType,
    running_var: TensorType,
    momentum: float,
    eps: float,
) -> Results:
    """The result; the saved statistics are empty on the CPU."""
    saved = _batch_statistics(input, False, weight, bias, running_mean, running_var)
    return like(input), saved, saved


def batch_norm_without_statistics(
    input: TensorType,  # noqa: A002 - ATen's name
    weight: TensorType | None,
    bias: TensorType | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Results:
    """The result, and the batch's mean and reciprocal deviation."""
    saved = _batch_statistics(input, training, weight, bias)
    return like(input), saved, saved


def batch_norm_backward(
    grad_out: TensorType,
    input: TensorType,  # noqa: A002 - ATen's name
    weight: TensorType | None,
    running_mean: TensorType | None,
    running_var: TensorType | None,
    save_mean: TensorType | None,
    save_invstd: TensorType | None,
    train: bool,
    eps: float,
    output_mask: Mask,
) -> Results:
    """A gradient for input, weight and bias, as far as the mask asks for it."""
    channels = with_shape(input, (_channels(input),), input.dtype if weight is None else weight.dtype)
    return masked(output_mask, like(input), channels, channels)


def batch_norm_with_update(
    input: TensorType,  # noqa: A002 - ATen's name
    weight: TensorType | None,
    bias: TensorType | None,
    running_mean: TensorType,
    running_var: TensorType,
    momentum: float,
    eps: float,
) -> Results:
    """The result, the batch's mean and reciprocal deviation, bytes for the backward, and the running statistics."""
    saved = _batch_statistics(input, True, weight, bias, running_mean, running_var)
    return like(input), saved, saved, with_shape(input, (0,), DType.u8), like(running_mean), like(running_var)


def batch_norm_with_update_backward(
    grad_out: TensorType,
    input: TensorType,  # noqa: A002 - ATen's name
    weight: TensorType,
    running_mean: TensorType | None,
    running_var: TensorType | None,
    save_mean: TensorType | None,
    save_var: TensorType | None,
    update: bool,
    eps: float,
    output_mask: Mask,
    reserve: TensorType,
) -> Results:
    """A gradient for input, weight and bias, as far as the mask asks for it."""
    channels = with_shape(input, (_channels(input),), weight.dtype)
    return masked(output_mask, like(input), channels, channels)


def rms_norm_backward(
    grad_out: TensorType,
    input: TensorType,  # noqa: A002 - ATen's name
    normalized_shape: Dims,
    rstd: TensorType,
    weight: TensorType | None,
    output_mask: Mask,
) -> Results:
    """A gradient for input and weight, as far as the mask asks for it."""
    return masked(output_mask, like(input), with_shape(input, normalized_shape) if weight is None else like(weight))


def softmax(self: TensorType, dim: int, half_to_float: bool) -> Results:
    """The dtype stays, unless the op itself converts half precision."""
    axis_of(dim, self.rank)
    return like(self, DType.f32 if half_to_float else self.dtype)


def softmax_backward(grad_output: TensorType, output: TensorType, dim: int, input_dtype: DType) -> Results:
    """A gradient for each element, in the dtype that the softmax was given."""
    return like(grad_output, input_dtype)


def weight_norm_backward(
    grad_w: TensorType, saved_v: TensorType, saved_g: TensorType, saved_norms: TensorType, dim: int
) -> Results:
    """A gradient for direction and length."""
    return like(saved_v), like(saved_g)


def weight_norm(v: TensorType, g: TensorType, dim: int) -> Results:
    """The weight, and the norms of its directions."""
    return like(v), like(g, DType.f32 if g.dtype is DType.bf16 else g.dtype)


RULES: dict[str, Rule] = {
    "aten.native_layer_norm.default": layer_norm,
    "aten.native_layer_norm_backward.default": layer_norm_backward,
    "aten._fused_rms_norm.default": rms_norm,
    "aten._fused_rms_norm_backward.default": rms_norm_backward,
    "aten.native_group_norm.default": group_norm,
    "aten.native_group_norm_backward.default": group_norm_backward,
    "aten._native_batch_norm_legit_functional.default": batch_norm_in_training,
    "aten._native_batch_norm_legit_no_training.default": batch_norm_in_inference,
    "aten._native_batch_norm_legit.no_stats": batch_norm_without_statistics,
    "aten.native_batch_norm_backward.default": batch_norm_backward,
    "aten._batch_norm_with_update_functional.default": batch_norm_with_update,
    "aten.batch_norm_backward.default": batch_norm_with_update_backward,
    "aten._softmax.default": softmax,
    "aten._log_softmax.default": softmax,
    "aten._softmax_backward_data.default": softmax_backward,
    "aten._log_softmax_backward_data.default": softmax_backward,
    "aten._weight_norm_interface.default": weight_norm,
    "aten._weight_norm_interface_backward.default": weight_norm_backward,
}
