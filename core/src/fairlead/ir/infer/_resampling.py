"""Images of another size, and at the points of a grid."""

from __future__ import annotations

from fairlead.ir._types import TensorType
from fairlead.ir.infer._rule import Dims, Results, Rule, require
from fairlead.ir.infer._sizes import like, same, with_shape
from fairlead.ir.infer._spatial import Mask, resized


def resampled_1(self: TensorType, output_size: Dims, scales: float | None) -> Results:
    """An image of another size, by the nearest elements."""
    return with_shape(self, resized(self, output_size))


def resampled_2(self: TensorType, output_size: Dims, scales_h: float | None, scales_w: float | None) -> Results:
    """An image of another size, by the nearest elements."""
    return with_shape(self, resized(self, output_size))


def resampled_3(
    self: TensorType, output_size: Dims, scales_d: float | None, scales_h: float | None, scales_w: float | None
) -> Results:
    """An image of another size, by the nearest elements."""
    return with_shape(self, resized(self, output_size))


def interpolated_1(self: TensorType, output_size: Dims, align_corners: bool, scales: float | None) -> Results:
    """An image of another size, by what is between elements."""
    return with_shape(self, resized(self, output_size))


def interpolated_2(
    self: TensorType, output_size: Dims, align_corners: bool, scales_h: float | None, scales_w: float | None
) -> Results:
    """An image of another size, by what is between elements."""
    return with_shape(self, resized(self, output_size))


def interpolated_3(
    self: TensorType,
    output_size: Dims,
    align_corners: bool,
    scales_d: float | None,
    scales_h: float | None,
    scales_w: float | None,
) -> Results:
    """An image of another size, by what is between elements."""
    return with_shape(self, resized(self, output_size))


def resampled_backward_1(grad_output: TensorType, output_size: Dims, input_size: Dims, scales: float | None) -> Results:
    """A gradient for each element of the image that was resized."""
    return with_shape(grad_output, input_size)


def resampled_backward_2(
    grad_output: TensorType, output_size: Dims, input_size: Dims, scales_h: float | None, scales_w: float | None
) -> Results:
    """A gradient for each element of the image that was resized."""
    return with_shape(grad_output, input_size)


def resampled_backward_3(
    grad_output: TensorType,
    output_size: Dims,
    input_size: Dims,
    scales_d: float | None,
    scales_h: float | None,
    scales_w: float | None,
) -> Results:
    """A gradient for each element of the image that was resized."""
    return with_shape(grad_output, input_size)


def interpolated_backward_1(
    grad_output: TensorType, output_size: Dims, input_size: Dims, align_corners: bool, scales: float | None
) -> Results:
    """A gradient for each element of the image that was resized."""
    return with_shape(grad_output, input_size)


def interpolated_backward_2(
    grad_output: TensorType,
    output_size: Dims,
    input_size: Dims,
    align_corners: bool,
    scales_h: float | None,
    scales_w: float | None,
) -> Results:
    """A gradient for each element of the image that was resized."""
    return with_shape(grad_output, input_size)


def interpolated_backward_3(
    grad_output: TensorType,
    output_size: Dims,
    input_size: Dims,
    align_corners: bool,
    scales_d: float | None,
    scales_h: float | None,
    scales_w: float | None,
) -> Results:
    """A gradient for each element of the image that was resized."""
    return with_shape(grad_output, input_size)


def grid_sample(
    input: TensorType,  # noqa: A002 - ATen's name
    grid: TensorType,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
) -> Results:
    """The image at the points of a grid, whose last dimension is a point."""
    require(input.rank == grid.rank and grid.rank in (4, 5), f"there are {input.rank} and {grid.rank} dimensions")
    same(grid.shape[-1], grid.rank - 2, "the size of points and the dimensions of the image")
    batch = same(input.shape[0], grid.shape[0], "the batches")
    return with_shape(input, (batch, input.shape[1], *grid.shape[1:-1]))


def grid_sample_backward(
    grad_output: TensorType,
    input: TensorType,  # noqa: A002 - ATen's name
    grid: TensorType,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
    output_mask: Mask,
) -> Results:
    """A gradient for the image, where the mask asks for it, and one for the grid."""
    require(len(output_mask) == 2, f"the mask has {len(output_mask)} entries for 2 results")
    return like(input) if output_mask[0] else None, like(grid)


_BY_COUNT: dict[str, tuple[tuple[Rule, Rule], ...]] = {
    "nearest": (
        (resampled_1, resampled_backward_1),
        (resampled_2, resampled_backward_2),
        (resampled_3, resampled_backward_3),
    ),
    "linear": (
        (interpolated_1, interpolated_backward_1),
        (interpolated_2, interpolated_backward_2),
        (interpolated_3, interpolated_backward_3),
    ),
}
_UPSAMPLES = {
    "upsample_nearest1d": ("nearest", 1),
    "upsample_nearest2d": ("nearest", 2),
    "upsample_nearest3d": ("nearest", 3),
    "upsample_linear1d": ("linear", 1),
    "upsample_bilinear2d": ("linear", 2),
    "upsample_bicubic2d": ("linear", 2),
    "_upsample_bilinear2d_aa": ("linear", 2),
    "upsample_trilinear3d": ("linear", 3),
}


def _upsamples() -> dict[str, Rule]:
    rules: dict[str, Rule] = {}
    for name, (kind, count) in _UPSAMPLES.items():
        forward, backward = _BY_COUNT[kind][count - 1]
        rules[f"aten.{name}.default"] = forward
        rules[f"aten.{name}_backward.default"] = backward
    return rules


RULES: dict[str, Rule] = {
    **_upsamples(),
    **{f"aten.grid_sampler_{n}d.default": grid_sample for n in (2, 3)},
    **{f"aten.grid_sampler_{n}d_backward.default": grid_sample_backward for n in (2, 3)},
}
