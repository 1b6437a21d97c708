"""Rules of normalisations: ``(x - mean) * rstd * weight + bias``, in f32 for halves."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from fairlead_openxla._call import Call
from fairlead_openxla._images import as_declared, channels_last
from fairlead_openxla._numbers import Array, wide
from fairlead_openxla._reductions import count_of, mean_of
from fairlead_openxla._rules import rule

__all__ = ["Batch", "column"]


def _statistics(x: Array, over: tuple[int, ...], eps: float) -> tuple[Array, Array]:
    mean = mean_of(x, over, keepdims=True)
    return mean, 1 / jnp.sqrt(mean_of(jnp.square(x - mean), over, keepdims=True) + eps)


def _affine(x: Array, weight: Array | None, bias: Array | None) -> Array:
    x = x if weight is None else x * wide(weight)
    return x if bias is None else x + wide(bias)


def _declared(c: Call, index: int, x: Array) -> Array | None:
    return jnp.reshape(x, c.shape(index)) if c.wants(index) else None


@rule("native_layer_norm")
def layer_norm(
    c: Call, x: Array, shape: tuple[int, ...], weight: Array | None, bias: Array | None, eps: float
) -> tuple[Array | None, ...]:
    x = wide(x)
    mean, rstd = _statistics(x, tuple(range(x.ndim - len(shape), x.ndim)), eps)
    return _affine((x - mean) * rstd, weight, bias), _declared(c, 1, mean), _declared(c, 2, rstd)


@rule("_fused_rms_norm")
def fused_rms_norm(
    c: Call, x: Array, shape: tuple[int, ...], weight: Array | None, eps: float | None
) -> tuple[Array, Array]:
    eps = float(jnp.finfo(x.dtype).eps) if eps is None else eps
    x = wide(x)
    rstd = 1 / jnp.sqrt(mean_of(x * x, tuple(range(x.ndim - len(shape), x.ndim)), keepdims=True) + eps)
    return _affine(x * rstd, weight, None), rstd


@rule("rms_norm")
def rms_norm(c: Call, x: Array, shape: tuple[int, ...], weight: Array | None, eps: float | None) -> Array:
    return fused_rms_norm(c, x, shape, weight, eps)[0]


@rule("native_group_norm")
def group_norm(
    c: Call,
    x: Array,
    weight: Array | None,
    bias: Array | None,
    n: int,
    channels: int,
    size: int,
    groups: int,
    eps: float,
) -> tuple[Array | None, ...]:
    if c.is_image:
        return as_declared(_of_groups(channels_last(wide(x)), weight, bias, groups, eps)), None, None
    shape = x.shape
    grouped = jnp.reshape(wide(x), (n, groups, (channels // groups) * size))
    mean, rstd = _statistics(grouped, (2,), eps)
    normal = jnp.reshape((grouped - mean) * rstd, (n, channels, size))
    weight, bias = (None if a is None else jnp.reshape(a, (channels, 1)) for a in (weight, bias))
    return jnp.reshape(_affine(normal, weight, bias), shape), _declared(c, 1, mean), _declared(c, 2, rstd)


def _of_groups(x: Array, weight: Array | None, bias: Array | None, groups: int, eps: float) -> Array:
    """An image with channels last, of which each group of channels is normalised."""
    grouped = jnp.reshape(x, (x.shape[0], -1, groups, x.shape[-1] // groups))
    mean, rstd = _statistics(grouped, (1, 3), eps)
    return _affine(jnp.reshape((grouped - mean) * rstd, x.shape), weight, bias)


def column(x: Array | None, rank: int) -> Any:
    """A number for each channel, to be spread over the dimensions of a batch."""
    return None if x is None else jnp.reshape(wide(x), (-1,) + (1,) * (rank - 2))


class Batch:
    """A batch, its mean and its reciprocal deviation: over all dimensions but the channels, or those that run."""

    def __init__(self, x: Array, training: bool, mean: Array | None, var: Array | None, eps: float) -> None:
        self.x = wide(x)
        self.over = (0, *range(2, x.ndim))
        self.count = count_of(x, self.over)
        if training or mean is None:
            self.mean, self.rstd = _statistics(self.x, self.over, eps)
        else:
            self.mean, self.rstd = column(mean, x.ndim), 1 / jnp.sqrt(column(var, x.ndim) + eps)

    def out(self, weight: Array | None, bias: Array | None) -> Array:
        rank = self.x.ndim
        return _affine((self.x - self.mean) * self.rstd, column(weight, rank), column(bias, rank))

    def running(self, old_mean: Array, old_var: Array, momentum: float) -> tuple[Array, Array]:
        """The running statistics after this batch; the variance counts one less than there are."""
        squares = jnp.sum(jnp.square(self.x - self.mean), self.over)
        var = squares / np.maximum(self.count - 1, 0).astype(squares.dtype)
        mean = jnp.ravel(self.mean)
        return (1 - momentum) * wide(old_mean) + momentum * mean, (1 - momentum) * wide(old_var) + momentum * var


def _nothing(x: Array) -> Array:
    return jnp.zeros((0,), x.dtype)


@rule("_native_batch_norm_legit_no_training")
def batch_norm_fixed(
    c: Call, x: Array, weight: Array | None, bias: Array | None, mean: Array, var: Array, momentum: float, eps: float
) -> tuple[Array, Array, Array]:
    if c.is_image:
        normal = (channels_last(wide(x)) - wide(mean)) * (1 / jnp.sqrt(wide(var) + eps))
        return as_declared(_affine(normal, weight, bias)), _nothing(x), _nothing(x)
    return Batch(x, False, mean, var, eps).out(weight, bias), _nothing(x), _nothing(x)


@rule("_native_batch_norm_legit.no_stats")
def batch_norm_own(
    c: Call, x: Array, weight: Array | None, bias: Array | None, training: bool, momentum: float, eps: float
) -> tuple[Array, Array, Array]:
    batch = Batch(x, True, None, None, eps)
    return batch.out(weight, bias), jnp.ravel(batch.mean), jnp.ravel(batch.rstd)


@rule("_native_batch_norm_legit_functional")
def batch_norm_functional(
    c: Call,
    x: Array,
    weight: Array | None,
    bias: Array | None,
    mean: Array,
    var: Array,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Array, ...]:
    batch = Batch(x, training, mean, var, eps)
    if not training:
        return batch.out(weight, bias), _nothing(x), _nothing(x), mean, var
    saved = jnp.ravel(batch.mean), jnp.ravel(batch.rstd)
    return batch.out(weight, bias), *saved, *batch.running(mean, var, momentum)


@rule("_batch_norm_with_update_functional")
def batch_norm_with_update(
    c: Call, x: Array, weight: Array | None, bias: Array | None, mean: Array, var: Array, momentum: float, eps: float
) -> tuple[Array, ...]:
    found = batch_norm_functional(c, x, weight, bias, mean, var, True, momentum, eps)
    return *found[:3], jnp.zeros((0,), jnp.uint8), *found[3:]


@rule("_weight_norm_interface")
def weight_norm(c: Call, v: Array, g: Array, dim: int = 0) -> tuple[Array, Array]:
    v = wide(v)
    norm = jnp.sqrt(jnp.sum(v * v, tuple(d for d in range(v.ndim) if d != dim), keepdims=True))
    return v * (wide(g) / norm), norm
