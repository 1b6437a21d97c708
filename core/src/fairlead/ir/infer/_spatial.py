"""Ops on images and the like: convolution, pooling, patches."""

from __future__ import annotations

from fairlead.ir._types import DType, TensorType
from fairlead.ir.dims import Dim, add, mul, product
from fairlead.ir.infer._rule import Dims, Results, Rule, require
from fairlead.ir.infer._sizes import Shape, floordiv, least, like, minus, same, with_shape

Mask = tuple[bool, ...]


def _each(given: Dims, count: int) -> Dims:
    """One number for each spatial dimension; a single one stands for all."""
    if len(given) == 1:
        return given * count
    require(len(given) == count, f"there are {len(given)} numbers for {count} dimensions")
    return given


def convolution(
    input: TensorType,  # noqa: A002 - ATen's name
    weight: TensorType,
    bias: TensorType | None,
    stride: Dims,
    padding: Dims,
    dilation: Dims,
    transposed: bool,
    output_padding: Dims,
    groups: Dim,
) -> Results:
    """Images of ``input`` (batch, channels, ...) by kernels (out, channels / groups, ...); transposed the other way.

    Sizes as https://pytorch.org/docs/stable/generated/torch.nn.Conv2d.html and ConvTranspose2d have them.
    """
    count = weight.rank - 2
    require(count > 0 and input.rank == weight.rank, f"operands have {input.rank} and {weight.rank} dimensions")
    require(input.dtype == weight.dtype, f"the operands are {input.dtype} and {weight.dtype}")
    if transposed:
        same(input.shape[1], weight.shape[0], "the channels of input and weight")
        channels = mul(weight.shape[1], groups)
    else:
        same(input.shape[1], mul(weight.shape[1], groups), "the channels of input and weight")
        channels = weight.shape[0]
    steps, pads, spread, extra = (_each(g, count) for g in (stride, padding, dilation, output_padding or (0,)))
    sizes: list[Dim] = []
    for i in range(count):
        reach = add(mul(spread[i], add(weight.shape[2 + i], -1)), 1)
        size = add(input.shape[2 + i], mul(2, pads[i]))
        if transposed:
            grown = mul(add(input.shape[2 + i], -1), steps[i])
            sizes.append(add(minus(grown, mul(2, pads[i])), reach, extra[i]))
        else:
            sizes.append(add(floordiv(minus(size, reach), steps[i]), 1))
    require(not any(isinstance(d, int) and d < 0 for d in sizes), "the kernel is larger than the padded input")
    return with_shape(input, (input.shape[0], channels, *sizes))


def convolution_backward(
    grad_output: TensorType,
    input: TensorType,  # noqa: A002 - ATen's name
    weight: TensorType,
    bias_sizes: Dims | None,
    stride: Dims,
    padding: Dims,
    dilation: Dims,
    transposed: bool,
    output_padding: Dims,
    groups: Dim,
    output_mask: Mask,
) -> Results:
    """A gradient for input, weight and bias, as far as the mask asks for it."""
    require(weight.rank > 2, f"the kernel has {weight.rank} dimensions")
    channels = mul(weight.shape[1], groups) if transposed else weight.shape[0]
    return masked(output_mask, like(input), like(weight), with_shape(weight, (channels,)))


def masked(mask: Mask, *results: TensorType) -> tuple[TensorType | None, ...]:
    """The results that a mask asks for."""
    require(len(mask) == len(results), f"the mask has {len(mask)} entries for {len(results)} results")
    return tuple(r if wanted else None for wanted, r in zip(mask, results, strict=True))


def _pooled(
    x: TensorType, kernel_size: Dims, stride: Dims, padding: Dims, dilation: Dims, ceil_mode: bool, count: int
) -> Shape:
    """The sizes that windows leave; with ``ceil_mode`` one more where something is left, unless it begins in padding.

    As ``pooling_output_shape`` of ``aten/src/ATen/native/Pool.h`` has it.
    """
    require(x.rank in (count + 1, count + 2), f"the operand has {x.rank} dimensions, for {count} spatial ones")
    kernel, pads, spread = (_each(g, count) for g in (kernel_size, padding, dilation))
    steps = _each(stride, count) if stride else kernel
    found = []
    for size, k, step, p, d in zip(x.shape[-count:], kernel, steps, pads, spread, strict=True):
        room = minus(add(size, mul(2, p)), add(mul(d, add(k, -1)), 1))
        length = add(floordiv(room, step), 1)
        if ceil_mode:
            length = add(floordiv(add(room, step, -1), step), 1)
            if not _begins_inside(p, step, mul(d, add(k, -1))):
                length = least(length, add(floordiv(add(size, p, -1), step), 1))
        require(not isinstance(length, int) or length > 0, f"a window is larger than {list(x.shape)}")
        found.append(length)
    return (*x.shape[:-count], *found)


def _begins_inside(padding: Dim, step: Dim, reach: Dim) -> bool:
    """Whether no window can begin in the padding after the last element, whatever the size is."""
    missing = minus(add(padding, step, -1), reach)
    return isinstance(missing, int) and missing <= 0


def average_pool(count: int) -> Rule:
    """The rule of an average over windows in so many dimensions."""

    def rule(
        self: TensorType,
        kernel_size: Dims,
        stride: Dims,
        padding: Dims,
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None,
    ) -> Results:
        return with_shape(self, _pooled(self, kernel_size, stride, padding, (1,), ceil_mode, count))

    return rule


def average_pool_backward(
    grad_output: TensorType,
    self: TensorType,
    kernel_size: Dims,
    stride: Dims,
    padding: Dims,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Results:
    """A gradient for each element."""
    return like(self)


def max_pool(count: int) -> Rule:
    """The rule of a maximum over windows in so many dimensions, and of where it was."""

    def rule(
        self: TensorType, kernel_size: Dims, stride: Dims, padding: Dims, dilation: Dims, ceil_mode: bool
    ) -> Results:
        found = with_shape(self, _pooled(self, kernel_size, stride, padding, dilation, ceil_mode, count))
        return found, like(found, DType.i64)

    return rule


def max_pool_backward(
    grad_output: TensorType,
    self: TensorType,
    kernel_size: Dims,
    stride: Dims,
    padding: Dims,
    dilation: Dims,
    ceil_mode: bool,
    indices: TensorType,
) -> Results:
    """A gradient for each element."""
    return like(self)


def max_unpool2d(self: TensorType, indices: TensorType, output_size: Dims) -> Results:
    """Values back where they were, zeros elsewhere."""
    return with_shape(self, resized(self, output_size))


def max_unpool3d(self: TensorType, indices: TensorType, output_size: Dims, stride: Dims, padding: Dims) -> Results:
    """Values back where they were, zeros elsewhere."""
    return with_shape(self, resized(self, output_size))


def adaptive_pool(count: int) -> Rule:
    """The rule of averages of as many windows as asked for."""

    def rule(self: TensorType, output_size: Dims) -> Results:
        return with_shape(self, resized(self, _each(output_size, count)))

    return rule


def adaptive_max_pool(count: int) -> Rule:
    """The rule of maxima of as many windows as asked for, and of where they were."""

    def rule(self: TensorType, output_size: Dims) -> Results:
        found = with_shape(self, resized(self, _each(output_size, count)))
        return found, like(found, DType.i64)

    return rule


def resized(x: TensorType, sizes: Dims) -> Shape:
    """The shape with other sizes of the last dimensions."""
    require(x.rank > len(sizes), f"the operand has {x.rank} dimensions, for {len(sizes)} spatial ones")
    return (*x.shape[: -len(sizes)], *sizes)


def pool_backward(grad_output: TensorType, self: TensorType) -> Results:
    """A gradient for each element."""
    return like(self)


def adaptive_max_pool_backward(grad_output: TensorType, self: TensorType, indices: TensorType) -> Results:
    """A gradient for each element."""
    return like(self)


def fractional_max_pool(count: int) -> Rule:
    """The rule of maxima of windows that numbers place, and of where they were."""

    def rule(self: TensorType, kernel_size: Dims, output_size: Dims, random_samples: TensorType) -> Results:
        found = with_shape(self, resized(self, _each(output_size, count)))
        return found, like(found, DType.i64)

    return rule


def fractional_max_pool_backward(
    grad_output: TensorType, self: TensorType, kernel_size: Dims, output_size: Dims, indices: TensorType
) -> Results:
    """A gradient for each element."""
    return like(self)


def col2im(
    self: TensorType, output_size: Dims, kernel_size: Dims, dilation: Dims, padding: Dims, stride: Dims
) -> Results:
    """Patches added up to images."""
    require(self.rank in (2, 3), f"the operand has {self.rank} dimensions")
    channels = floordiv(self.shape[-2], product(kernel_size))
    return with_shape(self, (*self.shape[:-2], channels, *output_size))


def im2col(self: TensorType, kernel_size: Dims, dilation: Dims, padding: Dims, stride: Dims) -> Results:
    """The patches of images, each a column."""
    sizes = _pooled(self, kernel_size, stride, padding, dilation, False, 2)
    return with_shape(self, (*self.shape[:-3], mul(self.shape[-3], *kernel_size), product(sizes[-2:])))


RULES: dict[str, Rule] = {
    "aten.convolution.default": convolution,
    "aten.convolution_backward.default": convolution_backward,
    **{f"aten.avg_pool{n}d.default": average_pool(n) for n in (2, 3)},
    **{f"aten.avg_pool{n}d_backward.default": average_pool_backward for n in (2, 3)},
    **{f"aten.max_pool{n}d_with_indices.default": max_pool(n) for n in (2, 3)},
    **{f"aten.max_pool{n}d_with_indices_backward.default": max_pool_backward for n in (2, 3)},
    "aten.max_unpool2d.default": max_unpool2d,
    "aten.max_unpool3d.default": max_unpool3d,
    **{f"aten._adaptive_avg_pool{n}d.default": adaptive_pool(n) for n in (2, 3)},
    **{f"aten._adaptive_avg_pool{n}d_backward.default": pool_backward for n in (2, 3)},
    **{f"aten.adaptive_max_pool{n}d.default": adaptive_max_pool(n) for n in (2, 3)},
    **{f"aten.adaptive_max_pool{n}d_backward.default": adaptive_max_pool_backward for n in (2, 3)},
    **{f"aten.fractional_max_pool{n}d.default": fractional_max_pool(n) for n in (2, 3)},
    **{f"aten.fractional_max_pool{n}d_backward.default": fractional_max_pool_backward for n in (2, 3)},
    "aten.col2im.default": col2im,
    "aten.im2col.default": im2col,
}
