"""Images on a CPU have their channels last from one convolution to the next, as Eigen's convolutions take them.

Convolutions are written with channels last, and in between images are turned around as torch declares them. XLA takes
out two turns that meet; but where several ops read an image, or one that is not of elements alone, it has the image lie
as it is declared, and copies it before each convolution. So these ops are written with channels last as well.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeVar

import jax.numpy as jnp

from fairlead.ir import Node, TensorType, Value
from fairlead_openxla._numbers import Array

__all__ = ["ON_ELEMENTS", "as_declared", "channels_last", "gives_image", "in_order"]

_T = TypeVar("_T")

_VECTORS = 3
"""Images of one dimension have so many: a batch, channels, and places."""

_CONVOLUTION = "aten.convolution.default"

ON_ELEMENTS = frozenset(
    f"aten.{name}"
    for name in (
        "add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor", "neg.default", "abs.default", "maximum.default",
        "minimum.default", "clamp.default", "pow.Tensor_Scalar", "sqrt.default", "rsqrt.default", "exp.default",
        "relu.default", "hardtanh.default", "hardswish.default", "hardsigmoid.default", "leaky_relu.default",
        "elu.default", "sigmoid.default", "tanh.default", "silu.default", "gelu.default", "mish.default",
        "softplus.default", "erf.default", "clone.default", "_to_copy.default",
    )
)  # fmt: skip
"""Each element of the result is of those at its place: rules that have no need to know what is a channel."""

_ON_IMAGES = frozenset(
    f"aten.{name}.default"
    for name in (
        "_native_batch_norm_legit_no_training", "native_group_norm", "max_pool2d_with_indices",
        "max_pool3d_with_indices", "avg_pool2d", "avg_pool3d", "constant_pad_nd", "cat",
    )
)  # fmt: skip
"""Their rules ask for `Call.is_image`."""


def gives_image(node: Node, images: Collection[int]) -> bool:
    """Whether the first result is made with channels last: by a convolution, or of one of ``images``, their values."""
    made = node.results[0]
    if made is None or not isinstance(made.type, TensorType) or made.type.rank < _VECTORS:
        return False
    if not made.type.dtype.is_floating:
        return False
    if node.op == _CONVOLUTION:
        weight = node.args[1]
        return isinstance(weight, Value) and weight.tensor.rank == made.type.rank
    if node.op in ON_ELEMENTS:
        return any(v.id in images and v.tensor.rank == made.type.rank for v in node.operands())
    if node.op not in _ON_IMAGES or any(r is not None for r in node.results[1:]):
        return False
    given = node.args[0] if isinstance(node.args[0], tuple) else node.args[:1]
    return any(isinstance(arg, Value) and arg.id in images for arg in given)


def channels_last(x: Array, rank: int = 0) -> Array:
    """An image, or what is spread over one of ``rank`` dimensions, with its second dimension last."""
    if x.ndim == 0:
        return x
    if x.ndim < rank:
        x = jnp.reshape(x, (1,) * (rank - x.ndim) + x.shape)
    return jnp.moveaxis(x, 1, -1)


def as_declared(x: Array) -> Array:
    """An image as it is declared, of one with channels last."""
    return jnp.moveaxis(x, -1, 1)


def in_order(each: Sequence[_T]) -> tuple[_T, ...]:
    """What is said of each dimension, for an image with channels last.

    >>> in_order("NCHW")
    ('N', 'H', 'W', 'C')
    """
    first, channels, *places = each
    return (first, *places, channels)
