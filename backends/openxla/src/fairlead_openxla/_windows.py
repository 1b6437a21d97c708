"""Convolutions as a processor runs them fastest: sums and products of what windows see, channels last."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from dataclasses import dataclass

import jax.numpy as jnp
from jax import lax

from fairlead_openxla._numbers import Array, wide
from fairlead_openxla._target import precision

__all__ = ["MOST_PLACES", "Windows", "in_blocks", "over_windows", "plus"]

MOST_PLACES = 128
"""Each element of a kernel is a slice in the compiled program."""

_FEW_CHANNELS = 16
"""Channels below which a volume is faster as the product of a matrix of its windows."""

_LARGE = 1 << 22
"""Elements of a matrix that takes longer to write than it saves."""


@dataclass(frozen=True, slots=True)
class Windows:
    """Where the windows of a kernel lie, by the dimensions of an image: ``pads`` are what lies around it."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    dilation: tuple[int, ...]

    def counts(self, x: Array) -> list[int]:
        """How many windows an image, channels last, has in each dimension."""
        sizes = [n + sum(pad) for n, pad in zip(x.shape[1:-1], self.pads, strict=True)]
        spans = [d * (k - 1) for d, k in zip(self.dilation, self.size, strict=True)]
        return [(n - span - 1) // s + 1 for n, span, s in zip(sizes, spans, self.stride, strict=True)]

    def seen(self, x: Array) -> list[Array]:
        """For each element of the kernel, what it meets in all windows."""
        counts = self.counts(x)
        if any(map(any, self.pads)):
            x = jnp.pad(x, [(0, 0), *self.pads, (0, 0)])
        if math.prod(self.size) > 1:  # the image and its rim are written once, not computed for each element
            x = lax.optimization_barrier(x)
        found = []
        for at in itertools.product(*map(range, self.size)):
            starts = [a * d for a, d in zip(at, self.dilation, strict=True)]
            ends = [a + (n - 1) * s + 1 for a, n, s in zip(starts, counts, self.stride, strict=True)]
            found.append(lax.slice(x, (0, *starts, 0), (x.shape[0], *ends, x.shape[-1]), (1, *self.stride, 1)))
        return found


def over_windows(x: Array, kernel: Array, bias: Array | None, windows: Windows, groups: int) -> Array | None:
    """The convolution of an image, N HW C, with a kernel, HW IO; None where XLA's own is as fast."""
    places, channels, rank = math.prod(windows.size), x.shape[-1], len(windows.size)
    if places > MOST_PLACES or groups not in (1, channels):
        return None
    if channels == groups:
        return _apart(x, kernel, bias, windows)
    if rank == 3 and channels >= _FEW_CHANNELS:
        return plus(_one_by_one(x, kernel, windows), bias)
    is_narrow = any(n < k for n, k in zip(x.shape[1:-1], windows.size, strict=True))  # which Eigen does not take
    elements = x.shape[0] * math.prod(windows.counts(x)) * places * channels
    if places > 1 and (elements > _LARGE or (rank < 3 and not is_narrow)):
        return None
    return plus(_product(jnp.concatenate(windows.seen(x), -1), jnp.reshape(kernel, (-1, kernel.shape[-1]))), bias)


def plus(out: Array, bias: Array | None) -> Array:
    """A convolution, with a number added for each channel: of halves in f32."""
    return out if bias is None else wide(out) + bias


def _apart(x: Array, kernel: Array, bias: Array | None, windows: Windows) -> Array:
    """Each channel is a group of its own, or there is only one: one loop, which XLA's takes many times as long as.

    What is added comes first: a sum whose last term is cheap is computed anew by each loop that reads it.
    """
    channels, outputs = x.shape[-1], kernel.shape[-1]
    factors = jnp.reshape(kernel, (-1, channels, outputs // channels))
    first, *others = (seen[..., None] * factor for seen, factor in zip(windows.seen(x), factors, strict=True))
    first = plus(first, None if bias is None else jnp.reshape(bias, factors.shape[1:]))
    out = functools.reduce(operator.add, others, first)
    return jnp.reshape(out, (*out.shape[:-2], outputs))


def _one_by_one(x: Array, kernel: Array, windows: Windows) -> Array:
    """A product for each element of the kernel: XLA has no convolution of three dimensions from Eigen."""
    matrices = jnp.reshape(kernel, (-1, *kernel.shape[-2:]))
    return functools.reduce(operator.add, map(_product, windows.seen(x), matrices))


def in_blocks(x: Array, kernel: Array) -> Array:
    """For each place of an image, N HW C, a block of the result, which is its product with a kernel, C HW O."""
    channels, *size, outputs = kernel.shape
    blocks = _product(x, jnp.reshape(kernel, (channels, -1)))
    count, *places, _ = x.shape
    rank = len(size)
    blocks = jnp.reshape(blocks, (count, *places, *size, outputs))
    order = [1 + k + d * rank for k in range(rank) for d in range(2)]
    sizes = [n * k for n, k in zip(places, size, strict=True)]
    return jnp.reshape(jnp.transpose(blocks, (0, *order, 1 + 2 * rank)), (count, *sizes, outputs))


def _product(x: Array, matrix: Array) -> Array:
    """The product of each place with a matrix."""
    rows = jnp.reshape(x, (-1, x.shape[-1]))
    return jnp.reshape(jnp.matmul(rows, matrix, precision=precision()), (*x.shape[:-1], matrix.shape[-1]))
