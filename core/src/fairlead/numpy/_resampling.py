"""Sampling at places between the elements: grids, and antialiased interpolation."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from fairlead.numpy._dtypes import Array, wide
from fairlead.numpy._pooling import along_each
from fairlead.numpy._table import Call, op

LINEAR, NEAREST, CUBIC = range(3)
ZEROS, BORDER, REFLECTION = range(3)


class _Taps(NamedTuple):
    """Along one dimension: the elements that a sample reads, their weights, and the derivatives of these."""

    at: Array
    weight: Array
    slope: Array


def _unnormalized(place: Array, n: int, align: bool) -> tuple[Array, float]:
    """From [-1, 1] to elements, and the factor: the ends are the outer elements' centres, or their outer edges."""
    factor = (n - 1) / 2 if align else n / 2
    return (place + 1) * factor - (0 if align else 0.5), factor


def _reflected(place: Array, low2: float, high2: float) -> tuple[Array, Array]:
    """Reflected at half ``low2`` and half ``high2``, and the sign that this gives the derivative."""
    if low2 == high2:
        return np.zeros_like(place), np.zeros_like(place)
    low, span = low2 / 2, (high2 - low2) / 2
    sign = np.where(place < low, -1.0, 1.0)
    gone = np.abs(place - low)
    flips, rest = np.floor(gone / span), np.fmod(gone, span)
    even = flips % 2 == 0
    return np.where(even, rest + low, span - rest + low), np.where(even, sign, -sign)


def _folded(place: Array, n: int, padding: int, align: bool) -> tuple[Array, Array]:
    """Places outside as the padding has them, and the derivative of that."""
    if padding == ZEROS:
        return place, np.ones_like(place)
    sign = np.ones_like(place)
    if padding == REFLECTION:
        place, sign = _reflected(place, *((0, 2 * (n - 1)) if align else (-1, 2 * n - 1)))
    inside = (place > 0) & (place < n - 1)
    return np.clip(place, 0, n - 1), np.where(inside, sign, 0)


def _cubic(t: Array) -> tuple[Array, Array]:
    """The weights of the four neighbours in Keys' cubic convolution with a = -0.75, and their derivatives."""
    a = -0.75

    def far(x: Array) -> tuple[Array, Array]:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a, (3 * a * x - 10 * a) * x + 8 * a

    def near(x: Array) -> tuple[Array, Array]:
        return ((a + 2) * x - (a + 3)) * x * x + 1, (3 * (a + 2) * x - 2 * (a + 3)) * x

    parts = [far(t + 1), near(t), near(1 - t), far(2 - t)]
    signs = (1, 1, -1, -1)
    return np.stack([w for w, _ in parts]), np.stack([s * d for s, (_, d) in zip(signs, parts, strict=True)])


def _taps(grid: Array, n: int, mode: int, padding: int, align: bool) -> _Taps:
    place, factor = _unnormalized(wide(grid), n, align)
    if mode == CUBIC:
        start = np.floor(place)
        weight, slope = _cubic(place - start)
        at = start + np.reshape(np.arange(-1, 3), (4,) + (1,) * start.ndim)
        if padding != ZEROS:
            at = np.rint(_folded(at, n, padding, align)[0])
        return _Taps(at, weight, slope * factor)
    place, sign = _folded(place, n, padding, align)
    if mode == NEAREST:
        return _Taps(np.rint(place)[None], np.ones((1, *place.shape)), np.zeros((1, *place.shape)))
    start = np.floor(place)
    slope = np.ones_like(place) * sign * factor
    return _Taps(np.stack([start, start + 1]), np.stack([start + 1 - place, place - start]), np.stack([-slope, slope]))


class _Grid:
    """The taps of a grid in every dimension of the input; the grid names the last dimension first."""

    def __init__(self, x: Array, grid: Array, mode: int, padding: int, align: bool) -> None:
        self.spatial = x.shape[2:]
        rank = len(self.spatial)
        self.taps = [_taps(grid[..., rank - 1 - d], n, mode, padding, align) for d, n in enumerate(self.spatial)]

    def corners(self) -> Iterator[tuple[tuple[Array, ...], Array, list[Array], list[Array]]]:
        """For each combination of taps: where it reads, whether that exists, the weights and their slopes."""
        for choice in itertools.product(*(range(len(t.at)) for t in self.taps)):
            picked = [(t.at[i], t.weight[i], t.slope[i]) for t, i in zip(self.taps, choice, strict=True)]
            exists = np.ones(picked[0][0].shape, bool)
            key = []
            for (at, _, _), n in zip(picked, self.spatial, strict=True):
                exists &= (at >= 0) & (at < n)
                key.append(np.clip(np.nan_to_num(at), 0, max(n - 1, 0)).astype(np.int64))
            yield tuple(key), exists, [w for _, w, _ in picked], [s for _, _, s in picked]

    def read(self, x: Array, key: tuple[Array, ...]) -> Array:
        """(batch, channels, *output)."""
        batch = np.reshape(np.arange(len(x)), (-1,) + (1,) * len(self.spatial))
        return np.moveaxis(x[(batch, slice(None), *key)], -1, 1)


@op("grid_sampler_2d", "grid_sampler_3d")
def _grid_sampler(call: Call, x: Array, grid: Array, mode: int, padding: int, align: bool) -> Array:
    x, sampler = wide(x), _Grid(x, grid, mode, padding, align)
    out = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for key, exists, weights, _ in sampler.corners():
        out += sampler.read(x, key) * np.where(exists, np.prod(weights, 0), 0)[:, None]
    return out


@op("grid_sampler_2d_backward", "grid_sampler_3d_backward")
def _grid_sampler_backward(
    call: Call,
    grad: Array,
    x: Array,
    grid: Array,
    mode: int,
    padding: int,
    align: bool,
    wanted: Sequence[bool],
) -> tuple[Array | None, Array | None]:
    grad, x, sampler = wide(grad), wide(x), _Grid(x, grid, mode, padding, align)
    rank = len(sampler.spatial)
    of_input, of_grid = np.zeros(x.shape), np.zeros(grid.shape)
    batch = np.reshape(np.arange(len(x)), (-1,) + (1,) * rank)
    for key, exists, weights, slopes in sampler.corners():
        part = grad * np.where(exists, np.prod(weights, 0), 0)[:, None]
        np.add.at(of_input, (batch, slice(None), *key), np.moveaxis(part, 1, -1))
        seen = np.where(exists, np.sum(grad * sampler.read(x, key), 1), 0)
        for d in range(rank):
            factors = [slopes[e] if e == d else weights[e] for e in range(rank)]
            of_grid[..., rank - 1 - d] += seen * np.prod(factors, 0)
    return of_input if wanted[0] else None, of_grid if wanted[1] else None


def _antialiased(n: int, count: int, align: bool, given: float | None) -> Array:
    """Triangles as wide as the step between outputs, each with the sum one."""
    scale = ((n - 1) / (count - 1) if count > 1 else 0.0) if align else (1 / given if given else n / count)
    support = max(scale, 1.0)
    out = np.zeros((count, n))
    for i in range(count):
        centre = scale * (i + 0.5)
        start, end = max(int(centre - support + 0.5), 0), min(int(centre + support + 0.5), n)
        at = np.arange(start, end)
        weight = np.maximum(1 - np.abs((at - centre + 0.5) / support), 0)
        out[i, start:end] = weight / np.sum(weight)
    return out


@op("_upsample_bilinear2d_aa")
def _upsample_aa(
    call: Call, x: Array, size: Sequence[int], align: bool, height: float | None = None, width: float | None = None
) -> Array:
    scales = zip(x.shape[2:], size, (height, width), strict=True)
    return along_each(wide(x).astype(np.float64), [_antialiased(n, count, align, s) for n, count, s in scales])


@op("_upsample_bilinear2d_aa_backward")
def _upsample_aa_backward(
    call: Call,
    grad: Array,
    size: Sequence[int],
    input_size: Sequence[int],
    align: bool,
    height: float | None = None,
    width: float | None = None,
) -> Array:
    scales = zip(input_size[2:], size, (height, width), strict=True)
    return along_each(wide(grad), [_antialiased(n, count, align, s).T for n, count, s in scales])
