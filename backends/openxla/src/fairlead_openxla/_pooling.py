"""Rules of pooling, forward and backward."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from fairlead.ir import Node
from fairlead_openxla._call import Call
from fairlead_openxla._images import as_declared, channels_last, in_order
from fairlead_openxla._numbers import Array, cast, wide, wider
from fairlead_openxla._rules import Rule, rule

__all__: list[str] = []

_MOST_PLACES = 128
"""Each element of a window is a slice in the compiled program, and so is each window of an adaptive pooling."""


def _spread(values: Any, rank: int, default: Sequence[int] = ()) -> tuple[int, ...]:
    given = (values,) if isinstance(values, int) else tuple(values or default)
    return given * rank if len(given) == 1 else given


def _pads(n: int, count: int, reach: int, stride: int, padding: int) -> tuple[int, int]:
    """What a dimension is padded by so that it has exactly ``count`` windows; the second may cut elements off."""
    return padding, (count - 1) * stride + reach - n - padding


def _padded(x: Array, pads: Sequence[tuple[int, int]], value: Any) -> Array:
    lead = x.ndim - len(pads)
    return lax.pad(x, jnp.asarray(value, x.dtype), [(0, 0, 0)] * lead + [(a, b, 0) for a, b in pads])


def _lowest(x: Array) -> Any:
    return -math.inf if jnp.issubdtype(x.dtype, jnp.floating) else int(jnp.iinfo(x.dtype).min)


def _many_places(node: Node) -> str | None:
    kernel = node.args[1]
    size = math.prod(kernel) if isinstance(kernel, tuple) else 1  # type: ignore[arg-type]
    indices = len(node.results) > 1 and node.results[1] is not None
    return f"pooling with the places of windows of {size} elements" if indices and size > _MOST_PLACES else None


@rule("max_pool2d_with_indices", "max_pool3d_with_indices", unless=_many_places)
def max_pool(
    c: Call, x: Array, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> tuple[Array, Array | None]:
    rank = 2 if "2d" in c.node.op else 3
    kernel = _spread(kernel, rank)
    stride, padding, dilation = _spread(stride, rank, kernel), _spread(padding, rank), _spread(dilation, rank)
    shape = c.shape(0) if c.wants(0) else c.shape(1)
    counts = shape[len(shape) - rank :]
    reaches = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    pads = [_pads(*a) for a in zip(x.shape[-rank:], counts, reaches, stride, padding, strict=True)]
    low = _lowest(x)
    padded = _padded(x, pads, low)
    if c.wants(1):
        return _largest(x, padded, kernel, stride, padding, dilation, counts)
    lead = (1,) * (x.ndim - rank)
    windows = (*lead, *kernel), (*lead, *stride), (*lead, *dilation)
    return _over_windows(padded, low, lax.max, *windows, is_image=c.is_image), None


def _over_windows(
    x: Array,
    start: Any,
    add: Any,
    window: tuple[int, ...],
    stride: tuple[int, ...],
    dilation: tuple[int, ...],
    *,
    is_image: bool,
) -> Array:
    if is_image:
        x, (window, stride, dilation) = channels_last(x), map(in_order, (window, stride, dilation))
    out = lax.reduce_window(x, np.asarray(start, x.dtype), add, window, stride, "VALID", window_dilation=dilation)
    return as_declared(out) if is_image else out


def _largest(
    x: Array,
    padded: Array,
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    counts: tuple[int, ...],
) -> tuple[Array, Array]:
    """The largest of each window and where it is in the flat plane: the first of equals, the last of NaN.

    Source: max_pool2d_with_indices in ATen, which takes ``value > largest or isnan(value)``.
    """
    rank, sizes = len(kernel), x.shape[x.ndim - len(kernel) :]
    best: Array | None = None
    where: Any = None
    for offsets in itertools.product(*(range(k) for k in kernel)):
        starts = [o * d for o, d in zip(offsets, dilation, strict=True)]
        cut = tuple(slice(a, a + (n - 1) * s + 1, s) for a, n, s in zip(starts, counts, stride, strict=True))
        value = padded[(..., *cut)]
        flat, inside = _flat(starts, counts, stride, padding, sizes)
        if best is None:
            best, where = value, jnp.broadcast_to(np.where(inside, flat, -1), value.shape)
            continue
        better = inside & ((where < 0) | (value > best) | (value != value))
        best, where = jnp.where(better, value, best), jnp.where(better, flat, where)
    assert best is not None, f"a window of rank {rank} has elements"
    return best, where


def _flat(
    starts: Sequence[int], counts: Sequence[int], stride: Sequence[int], padding: Sequence[int], sizes: Sequence[int]
) -> tuple[Any, Any]:
    """For one offset in every window, the element of the flat plane, and whether it is one."""
    flat: Any = np.zeros((1,) * len(sizes), np.int64)
    inside: Any = np.ones((1,) * len(sizes), np.bool_)
    for d, n in enumerate(sizes):
        column = (-1,) + (1,) * (len(sizes) - d - 1)
        at = np.reshape(np.arange(counts[d]) * stride[d] + starts[d] - padding[d], column)
        flat, inside = flat * n + at, inside & (at >= 0) & (at < n)
    return flat, inside


@rule(
    "max_pool2d_with_indices_backward", "max_pool3d_with_indices_backward", "adaptive_max_pool2d_backward",
    "adaptive_max_pool3d_backward",
)  # fmt: skip
def max_pool_backward(c: Call, grad: Array, x: Array, *rest: Any) -> Array:
    rank = 2 if "2d" in c.node.op else 3
    size = math.prod(x.shape[x.ndim - rank :])
    planes = math.prod(x.shape[: x.ndim - rank])
    at = jnp.reshape(rest[-1], (planes, -1))
    c.require((at >= 0) & (at < size), "an index is out of range")
    rows = np.arange(planes)[:, None]
    zeros = jnp.zeros((planes, size), wide(grad).dtype)
    return jnp.reshape(zeros.at[rows, at].add(jnp.reshape(wide(grad), at.shape), mode="drop"), x.shape)


def _window_sums(
    x: Array,
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    pads: Sequence[tuple[int, int]],
    *,
    is_image: bool = False,
) -> Array:
    lead = (1,) * (x.ndim - len(kernel))
    windows = (*lead, *kernel), (*lead, *stride), (1,) * x.ndim
    return _over_windows(_padded(x, pads, 0), 0, lax.add, *windows, is_image=is_image)


def _divisor(n: int, count: int, kernel: int, stride: int, padding: int, *, with_padding: bool) -> Any:
    """How many elements each window of a dimension counts: a last one that is cut off has fewer."""
    start = np.arange(count) * stride - padding
    end = np.minimum(start + kernel, n + padding)
    return end - start if with_padding else np.minimum(end, n) - np.maximum(start, 0)


def _average(
    sizes: tuple[int, ...],
    counts: tuple[int, ...],
    kernel: Any,
    stride: Any,
    padding: Any,
    include_pad: bool,
    override: int | None,
) -> tuple[Callable[..., Array], Any]:
    """The sums over windows as a linear function, and what they are divided by."""
    rank = len(sizes)
    kernel = _spread(kernel, rank)
    stride, padding = _spread(stride, rank, kernel), _spread(padding, rank)
    pads = [_pads(*a) for a in zip(sizes, counts, kernel, stride, padding, strict=True)]
    parts = [_divisor(*a, with_padding=include_pad) for a in zip(sizes, counts, kernel, stride, padding, strict=True)]
    whole = functools.reduce(np.multiply.outer, parts) if override is None else np.full(counts, override)
    return functools.partial(_window_sums, kernel=kernel, stride=stride, pads=pads), whole


@rule("avg_pool2d", "avg_pool3d")
def avg_pool(
    c: Call,
    x: Array,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil_mode: bool = False,
    include_pad: bool = True,
    override: int | None = None,
) -> Array:
    rank = 2 if "2d" in c.node.op else 3
    shape = c.shape()
    sums, divisor = _average(
        x.shape[-rank:], shape[len(shape) - rank :], kernel, stride, padding, include_pad, override
    )
    x = wide(x)
    return sums(x, is_image=c.is_image) / jnp.asarray(divisor, x.dtype)


@rule("avg_pool2d_backward", "avg_pool3d_backward")
def avg_pool_backward(
    c: Call,
    grad: Array,
    x: Array,
    kernel: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    include_pad: bool,
    override: int | None,
) -> Array:
    rank = 2 if "2d" in c.node.op else 3
    sums, divisor = _average(
        x.shape[-rank:], grad.shape[grad.ndim - rank :], kernel, stride, padding, include_pad, override
    )
    grad = wide(grad)
    return _transposed(sums, x, grad / jnp.asarray(divisor, grad.dtype))


def _transposed(function: Callable[[Array], Array], x: Array, grad: Array) -> Array:
    """The gradient of a linear function of ``x``."""
    (out,) = jax.linear_transpose(function, jax.ShapeDtypeStruct(x.shape, grad.dtype))(grad)
    return out


def _bounds(n: int, count: int) -> list[tuple[int, int]]:
    return [(i * n // count, -(-(i + 1) * n // count)) for i in range(count)]


def _adaptive_sums(x: Array, counts: tuple[int, ...]) -> Array:
    """The sums over windows that divide each dimension as evenly as they can, one dimension after the other."""
    for d, count in zip(range(x.ndim - len(counts), x.ndim), counts, strict=True):
        parts = [jnp.sum(lax.slice_in_dim(x, a, b, axis=d), d, keepdims=True) for a, b in _bounds(x.shape[d], count)]
        x = jnp.concatenate(parts, d)
    return x


def _adaptive_divisor(sizes: tuple[int, ...], counts: tuple[int, ...]) -> Any:
    lengths = [np.asarray([b - a for a, b in _bounds(n, k)]) for n, k in zip(sizes, counts, strict=True)]
    return functools.reduce(np.multiply.outer, lengths)


def _many_windows(node: Node) -> str | None:
    shape = next(r for r in node.results if r is not None).tensor.shape
    if node.op.endswith("backward.default"):
        shape = node.args[0].tensor.shape  # type: ignore[union-attr]
    rank = 2 if "2d" in node.op else 3
    counts = shape[len(shape) - rank :]
    if all(isinstance(n, int) and n <= _MOST_PLACES for n in counts):
        return None
    return f"an adaptive pooling to {list(counts)}"


def _adaptive(backward: bool) -> Rule:
    def forward(c: Call, x: Array, size: Any) -> Array:
        rank = 2 if "2d" in c.node.op else 3
        counts = c.shape()[-rank:]
        x = wide(x)
        return _adaptive_sums(x, counts) / jnp.asarray(_adaptive_divisor(x.shape[-rank:], counts), x.dtype)

    def gradient(c: Call, grad: Array, x: Array) -> Array:
        rank = 2 if "2d" in c.node.op else 3
        counts = grad.shape[-rank:]
        grad = cast(grad, wider(c.dtype))
        share = grad / jnp.asarray(_adaptive_divisor(x.shape[-rank:], counts), grad.dtype)
        return _transposed(functools.partial(_adaptive_sums, counts=counts), x, share)

    return gradient if backward else forward


rule("_adaptive_avg_pool2d", "_adaptive_avg_pool3d", unless=_many_windows)(_adaptive(backward=False))
rule("_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward", unless=_many_windows)(_adaptive(backward=True))
