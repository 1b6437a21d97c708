"""Convolutions of 3 by 3 in tiles of 2 by 2 results, each of 16 products in place of 36: Winograd's F(2x2, 3x3).

Source: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, https://arxiv.org/abs/1509.09308.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import torch
from jax import lax

from fairlead_openxla._numbers import Array
from fairlead_openxla._target import precision

__all__ = ["factors", "in_tiles", "tiles"]

_AT_ONCE = 512
"""Tiles up to which their products are one: more are faster apart, where no array of all of them is written."""


def tiles(rows: int, columns: int) -> int:
    """How many tiles a result of this size takes."""
    return -(-rows // 2) * -(-columns // 2)


def factors(weight: torch.Tensor) -> torch.Tensor:
    """A weight, H W I O, as what the sixteen elements of tiles are multiplied by, rounded once: 16 I O."""
    g = torch.tensor([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]], dtype=torch.float64, device="cpu")
    found = torch.einsum("ah,bw,hwio->abio", g, g, weight.double())
    return found.flatten(0, 1).to(weight.dtype).contiguous()


def in_tiles(x: Array, matrices: Array, pads: Sequence[tuple[int, int]]) -> Array:
    """The convolution of an image, N H W C, with a weight of which these are the `factors`."""
    n, channels, outputs = x.shape[0], x.shape[-1], matrices.shape[-1]
    sizes = [size + sum(pad) - 2 for size, pad in zip(x.shape[1:3], pads, strict=True)]
    counts = [-(-size // 2) for size in sizes]
    rims = [(a, 2 * k + 2 - size - a) for k, size, (a, _) in zip(counts, x.shape[1:3], pads, strict=True)]
    # the image with its rim is written once: each of its elements is read by four tiles
    x = lax.optimization_barrier(jnp.pad(x, [(0, 0), *rims, (0, 0)]))
    ends = [2 * k - 1 for k in counts]

    def element(i: int, j: int) -> Array:
        return lax.slice(x, (0, i, j, 0), (n, i + ends[0], j + ends[1], channels), (1, 2, 2, 1))

    columns = [_spread([element(i, j) for i in range(4)]) for j in range(4)]
    spread = [jnp.reshape(v, (-1, channels)) for row in zip(*columns, strict=True) for v in _spread(row)]
    products = [jnp.reshape(p, (n, *counts, outputs)) for p in _products(spread, matrices)]
    rows = [_gathered(products[j::4]) for j in range(4)]
    results = [jnp.stack(_gathered(row), 3) for row in zip(*rows, strict=True)]
    whole = jnp.reshape(jnp.stack(results, 2), (n, *(2 * k for k in counts), outputs))
    return whole[:, : sizes[0], : sizes[1]]


def _products(spread: Sequence[Array], matrices: Array) -> list[Array]:
    if len(spread[0]) > _AT_ONCE:
        return [jnp.matmul(x, y, precision=precision()) for x, y in zip(spread, matrices, strict=True)]
    return list(jnp.matmul(jnp.stack(spread), matrices, precision=precision()))


def _spread(v: Sequence[Array]) -> list[Array]:
    return [v[0] - v[2], v[1] + v[2], v[2] - v[1], v[1] - v[3]]


def _gathered(v: Sequence[Array]) -> list[Array]:
    return [v[0] + v[1] + v[2], v[1] - v[2] - v[3]]
