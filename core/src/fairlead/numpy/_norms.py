"""Normalisations and their gradients: y = (x - mean) * rstd * weight + bias."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fairlead.numpy._dtypes import Array, wide
from fairlead.numpy._table import Call, op

Three = tuple[Array | None, Array | None, Array | None]


def _statistics(x: Array, over: tuple[int, ...], eps: float) -> tuple[Array, Array]:
    mean = np.mean(x, over, keepdims=True)
    return mean, 1 / np.sqrt(np.mean((x - mean) ** 2, over, keepdims=True) + eps)


def _affine(x: Array, weight: Array | None, bias: Array | None) -> Array:
    x = x if weight is None else x * wide(weight)
    return x if bias is None else x + wide(bias)


def _through(grad: Array, normal: Array, rstd: Array, over: tuple[int, ...]) -> Array:
    """The gradient of x of a normalisation by x's own statistics, given that of the normalised x."""
    mean = np.mean(grad, over, keepdims=True)
    return rstd * (grad - mean - normal * np.mean(grad * normal, over, keepdims=True))


def _declared(call: Call, index: int, x: Array) -> Array | None:
    return None if call.node.results[index] is None else np.reshape(x, call.shape(index))


@op("native_layer_norm")
def _layer_norm(
    call: Call, x: Array, shape: Sequence[int], weight: Array | None, bias: Array | None, eps: float
) -> Three:
    x = wide(x)
    mean, rstd = _statistics(x, tuple(range(x.ndim - len(shape), x.ndim)), eps)
    return _affine((x - mean) * rstd, weight, bias), _declared(call, 1, mean), _declared(call, 2, rstd)


@op("native_layer_norm_backward")
def _layer_norm_backward(
    call: Call,
    grad: Array,
    x: Array,
    shape: Sequence[int],
    mean: Array,
    rstd: Array,
    weight: Array | None,
    bias: Array | None,
    wanted: Sequence[bool],
) -> Three:
    grad, x = wide(grad), wide(x)
    split = x.ndim - len(shape)
    column = (*x.shape[:split], *(1,) * len(shape))
    mean, rstd = np.reshape(wide(mean), column), np.reshape(wide(rstd), column)
    normal, outer = (x - mean) * rstd, tuple(range(split))
    inner = grad if weight is None else grad * wide(weight)
    return (
        _through(inner, normal, rstd, tuple(range(split, x.ndim))) if wanted[0] else None,
        np.sum(grad * normal, outer) if wanted[1] else None,
        np.sum(grad, outer) if wanted[2] else None,
    )


@op("_fused_rms_norm")
def _rms_norm(
    call: Call, x: Array, shape: Sequence[int], weight: Array | None, eps: float | None
) -> tuple[Array, Array]:
    eps = float(np.finfo(x.dtype).eps) if eps is None else eps
    x = wide(x)
    over = tuple(range(x.ndim - len(shape), x.ndim))
    rstd = 1 / np.sqrt(np.mean(x * x, over, keepdims=True) + eps)
    return _affine(x * rstd, weight, None), rstd


@op("_fused_rms_norm_backward")
def _rms_norm_backward(
    call: Call,
    grad: Array,
    x: Array,
    shape: Sequence[int],
    rstd: Array,
    weight: Array | None,
    wanted: Sequence[bool],
) -> tuple[Array | None, Array | None]:
    grad, x, rstd = wide(grad), wide(x), wide(rstd)
    split = x.ndim - len(shape)
    inner = grad if weight is None else grad * wide(weight)
    mean = np.mean(inner * x * rstd, tuple(range(split, x.ndim)), keepdims=True)
    of_weight = np.sum(grad * x * rstd, tuple(range(split))) if wanted[1] else None
    return rstd * (inner - x * rstd * mean) if wanted[0] else None, of_weight


@op("native_group_norm")
def _group_norm(
    call: Call, x: Array, weight: Array | None, bias: Array | None, n: int, c: int, size: int, groups: int, eps: float
) -> Three:
    x = wide(x)
    grouped = np.reshape(x, (n, groups, (c // groups) * size))
    mean, rstd = _statistics(grouped, (2,), eps)
    normal = np.reshape((grouped - mean) * rstd, (n, c, size))
    weight, bias = (None if a is None else np.reshape(a, (c, 1)) for a in (weight, bias))
    return np.reshape(_affine(normal, weight, bias), x.shape), _declared(call, 1, mean), _declared(call, 2, rstd)


@op("native_group_norm_backward")
def _group_norm_backward(
    call: Call,
    grad: Array,
    x: Array,
    mean: Array,
    rstd: Array,
    weight: Array | None,
    n: int,
    c: int,
    size: int,
    groups: int,
    wanted: Sequence[bool],
) -> Three:
    shape, grouped = x.shape, (n, groups, (c // groups) * size)
    grad, x = np.reshape(wide(grad), (n, c, size)), np.reshape(wide(x), grouped)
    mean, rstd = np.reshape(wide(mean), (n, groups, 1)), np.reshape(wide(rstd), (n, groups, 1))
    normal = (x - mean) * rstd
    inner = grad if weight is None else grad * np.reshape(wide(weight), (c, 1))
    whole = np.reshape(normal, (n, c, size))
    return (
        np.reshape(_through(np.reshape(inner, grouped), normal, rstd, (2,)), shape) if wanted[0] else None,
        np.sum(grad * whole, (0, 2)) if wanted[1] else None,
        np.sum(grad, (0, 2)) if wanted[2] else None,
    )


def _column(x: Array | None, rank: int) -> Any:
    return None if x is None else np.reshape(wide(x), (-1,) + (1,) * (rank - 2))


class _Batch:
    """A batch norm: all dimensions but the channels are averaged."""

    def __init__(self, x: Array, training: bool, mean: Array | None, var: Array | None, eps: float) -> None:
        self.x = wide(x)
        self.over = (0, *range(2, x.ndim))
        self.count = int(np.prod([x.shape[d] for d in self.over], dtype=np.int64))
        if training or mean is None:
            self.mean, self.rstd = _statistics(self.x, self.over, eps)
        else:
            self.mean, self.rstd = _column(mean, x.ndim), 1 / np.sqrt(_column(var, x.ndim) + eps)
        self.eps = eps

    def out(self, weight: Array | None, bias: Array | None) -> Array:
        rank = self.x.ndim
        return _affine((self.x - self.mean) * self.rstd, _column(weight, rank), _column(bias, rank))

    def running(self, old_mean: Array, old_var: Array, momentum: float) -> tuple[Array, Array]:
        """The running statistics after this batch; the variance counts one less than there are."""
        var = np.mean((self.x - self.mean) ** 2, self.over) * self.count / np.float64(max(self.count - 1, 0))
        mean = np.ravel(self.mean)
        return (1 - momentum) * wide(old_mean) + momentum * mean, (1 - momentum) * wide(old_var) + momentum * var


_EMPTY = np.zeros(0)


@op("_native_batch_norm_legit_no_training")
def _batch_norm_fixed(
    call: Call, x: Array, weight: Array | None, bias: Array | None, mean: Array, var: Array, momentum: float, eps: float
) -> Three:
    return _Batch(x, False, mean, var, eps).out(weight, bias), _EMPTY, _EMPTY


@op("_native_batch_norm_legit.no_stats")
def _batch_norm_own(
    call: Call, x: Array, weight: Array | None, bias: Array | None, training: bool, momentum: float, eps: float
) -> Three:
    batch = _Batch(x, True, None, None, eps)
    return batch.out(weight, bias), np.ravel(batch.mean), np.ravel(batch.rstd)


def _batch_norm(
    call: Call,
    x: Array,
    weight: Array | None,
    bias: Array | None,
    mean: Array | None,
    var: Array | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Three:
    batch = _Batch(x, training, mean, var, eps)
    saved = (np.ravel(batch.mean), np.ravel(batch.rstd)) if training else (_EMPTY, _EMPTY)
    return batch.out(weight, bias), *saved


@op("_native_batch_norm_legit_functional")
def _batch_norm_functional(
    call: Call,
    x: Array,
    weight: Array | None,
    bias: Array | None,
    mean: Array,
    var: Array,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Array, ...]:
    found = _batch_norm(call, x, weight, bias, mean, var, training, momentum, eps)
    after = _Batch(x, True, None, None, eps).running(mean, var, momentum) if training else (mean, var)
    return *found, *after


@op("_batch_norm_with_update_functional")
def _batch_norm_with_update(
    call: Call,
    x: Array,
    weight: Array | None,
    bias: Array | None,
    mean: Array,
    var: Array,
    momentum: float,
    eps: float,
) -> tuple[Array, ...]:
    found = _batch_norm_functional(call, x, weight, bias, mean, var, True, momentum, eps)
    return *found[:3], np.zeros(0, np.uint8), *found[3:]


@op("native_batch_norm_backward", "batch_norm_backward")
def _batch_norm_backward(
    call: Call,
    grad: Array,
    x: Array,
    weight: Array | None,
    mean: Array | None,
    var: Array | None,
    saved_mean: Array | None,
    saved_rstd: Array | None,
    training: bool,
    eps: float,
    wanted: Sequence[bool],
    reserve: Any = None,
) -> Three:
    grad, rank = wide(grad), x.ndim
    batch = _Batch(x, training, mean, var, eps)
    if training and saved_mean is not None and saved_rstd is not None:
        batch.mean, batch.rstd = _column(saved_mean, rank), _column(saved_rstd, rank)
    normal = (batch.x - batch.mean) * batch.rstd
    inner = grad if weight is None else grad * _column(weight, rank)
    of_input = _through(inner, normal, batch.rstd, batch.over) if training else inner * batch.rstd
    return (
        of_input if wanted[0] else None,
        np.sum(grad * normal, batch.over) if wanted[1] else None,
        np.sum(grad, batch.over) if wanted[2] else None,
    )


@op("_weight_norm_interface")
def _weight_norm(call: Call, v: Array, g: Array, dim: int = 0) -> tuple[Array, Array]:
    v = wide(v)
    norm = np.sqrt(np.sum(v * v, tuple(d for d in range(v.ndim) if d != dim), keepdims=True))
    return v * wide(g) / norm, norm


@op("_weight_norm_interface_backward")
def _weight_norm_backward(call: Call, grad: Array, v: Array, g: Array, norm: Array, dim: int) -> tuple[Array, Array]:
    """Of w = g v / |v|, where the norm is over all dimensions but one."""
    grad, v, g, norm = wide(grad), wide(v), wide(g), wide(norm)
    inner = np.sum(grad * v, tuple(d for d in range(v.ndim) if d != dim), keepdims=True)
    return g / norm * (grad - v * inner / norm**2), inner / norm
