"""Gradients as ops of their own: of distances, bags, norms, attention and grids, whose options change what adds up."""

from __future__ import annotations

import itertools

import torch

from fairlead.ir import Builder, Value
from fairlead_conformance._case import Level
from fairlead_conformance._families._directed._row import INF, Row, f32, i64, ramp, row, row_of

__all__ = ["ROWS"]

_X, _Y = ramp(4, 3), ramp(5, 3, low=-1.0)
_Y[1] = _X[2]  # a distance of zero
_Y[3, 0] = _X[0, 0]  # a gap of zero in a distance that is none
_WEIGHT, _IN, _STARTS = ramp(6, 3, high=-0.5), i64(5, 0, 2, 2, 4, 1, 2), i64(0)
_SHARES = ramp(7, low=0.5)
_Q, _K, _V = ramp(2, 4, 3, 8), ramp(2, 2, 5, 8, low=-1.0), ramp(2, 2, 5, 8, high=1.0)
_IMAGE, _GRID = ramp(2, 3, 5, 6), ramp(2, 4, 3, 2, low=-1.4, high=1.3)
_LAYER, _GROUPS = ramp(2, 3, 4, 5), ramp(3, 4, 2, 3)
_FAR = ramp(2, 4, 3, 2, low=-9.0, high=8.0)  # reflected several times
_ENDS = torch.cartesian_prod(*[f32(-1.0, -0.6, 0.3, 1.0)] * 2).view(1, 4, 4, 2)  # the outer elements' centres


def _distances(p: float) -> list[Row]:
    name = "distance-gradient"
    y = _Y if p != 1 else ramp(5, 3, low=-1.0)  # whose slope is that of the gap, at no distance too
    to_each, to_later = torch.cdist(_X, y, p), torch.pdist(y, p)
    return [
        row(name, "aten._cdist_backward.default", ramp(4, 5), _X, y, p, to_each, level=Level.L2),
        row(name, "aten._pdist_backward.default", ramp(10), y, p, to_later, level=Level.L2),
    ]


def _rounded_distances(p: float) -> list[Row]:
    """Of points whose distances no dtype rounds, so that the largest gap is the distance in each."""
    x, y = (torch.round(points * 8) / 8 for points in (_X, _Y))
    args = (ramp(4, 5), x, y, p, torch.cdist(x, y, p))
    return [
        row("distance-gradient-of-eighths", "aten._cdist_backward.default", *args, level=Level.L2),
        row(
            "distance-gradient-of-eighths",
            "aten._pdist_backward.default",
            ramp(10),
            y,
            p,
            torch.pdist(y, p),
            level=Level.L2,
        ),
    ]


def _bags(mode: int, shares: torch.Tensor | None, padding: int) -> Row:
    """One bag, in which one row is three times, and one is not."""
    _, bags, sizes, largest = torch.ops.aten._embedding_bag(
        _WEIGHT, _IN, _STARTS, False, mode, False, shares, False, padding
    )
    args = (ramp(1, 3), _IN, _STARTS, bags, sizes, largest, 6, False, mode, False, shares, padding)
    return row("bag-gradient", "aten._embedding_bag_backward.default", *args, level=Level.L2)


def _forward(mode: int, starts: torch.Tensor, shares: torch.Tensor | None, last: bool, padding: int) -> Row:
    """Bags of rows that are all below zero; one of them is empty."""
    args = (_WEIGHT, _IN, starts, False, mode, False, shares, last, padding)
    return row("bag", "aten._embedding_bag.default", *args, level=Level.L2, keep=1)


def _largest_of_bags(b: Builder, weight: Value, places: Value, starts: Value) -> Value:
    """The rows that the maxima come from: the first of equals."""
    args = (weight, places, starts, False, 2, False, None, False, -1)
    largest = b.ops("aten._embedding_bag.default", *args)[3]
    assert largest is not None
    return largest


def _attention(mask: torch.Tensor | None, causal: bool, heads: int) -> Row:
    """Four heads of queries over fewer of keys and values."""
    key, value = _K[:, :heads], _V[:, :heads]
    wide = [x.repeat_interleave(4 // heads, 1) for x in (key, value)]
    scores = _Q @ wide[0].mT * 0.3
    scores = scores if mask is None else scores + mask
    scores = scores.masked_fill(~torch.ones(3, 5).tril().bool(), -INF) if causal else scores
    out = scores.softmax(-1) @ wide[1]
    args = (ramp(2, 4, 3, 8, low=-1.0), _Q, key, value, out, scores.logsumexp(-1), mask, 0.0, causal, 0.3)
    return row("attention-gradient", "nn.scaled_dot_product_attention_backward", *args, level=Level.L2)


def _layer(*wanted: bool) -> Row:
    _, mean, rstd = torch.native_layer_norm(_LAYER, [4, 5], None, None, 1e-5)
    args = (ramp(2, 3, 4, 5, low=-1.0), _LAYER, [4, 5], mean, rstd, ramp(4, 5), ramp(4, 5), list(wanted))
    return row("layer-norm-gradient", "aten.native_layer_norm_backward.default", *args, level=Level.L2)


def _batch(training: bool, *wanted: bool) -> Row:
    mean, var = ramp(3), ramp(3, low=0.5)
    saved, rstd = torch.native_batch_norm(_LAYER, None, None, mean, var, training, 0.1, 1e-5)[1:]
    saved, rstd = (saved, rstd) if training else (torch.zeros(3), torch.ones(3))
    args = (ramp(2, 3, 4, 5, low=-1.0), _LAYER, ramp(3), mean, var, saved, rstd, training, 1e-5, list(wanted))
    return row("batch-norm-gradient", "aten.native_batch_norm_backward.default", *args, level=Level.L2)


def _group(*wanted: bool) -> Row:
    _, mean, rstd = torch.native_group_norm(_GROUPS, None, None, 3, 4, 6, 2, 1e-5)
    args = (ramp(3, 4, 2, 3, low=-1.0), _GROUPS, mean, rstd, ramp(4), 3, 4, 6, 2, list(wanted))
    return row("group-norm-gradient", "aten.native_group_norm_backward.default", *args, level=Level.L2)


def _grid(mode: int, padding: int, align: bool) -> list[Row]:
    options = (mode, padding, align)
    image, level = ramp(2, 3, 4, 3, low=-1.0), Level.L2
    return [
        row("grid", "aten.grid_sampler_2d.default", _IMAGE, _GRID, *options, level=level),
        row(
            "grid-gradient",
            "aten.grid_sampler_2d_backward.default",
            image,
            _IMAGE,
            _GRID,
            *options,
            [True, True],
            level=level,
        ),
    ]


def _sampled(subject: str, grid: torch.Tensor, mode: int, padding: int, align: bool, *wanted: bool) -> list[Row]:
    """An image at the places of a grid, and the gradients of those that are wanted."""
    image, args = _IMAGE[: len(grid)], (grid, mode, padding, align)
    back = (ramp(len(grid), 3, *grid.shape[1:3], low=-1.0), image, *args, list(wanted))
    return [
        row(subject, "aten.grid_sampler_2d.default", image, *args),
        row(subject, "aten.grid_sampler_2d_backward.default", *back, level=Level.L2, keep=2 if wanted[-1] else 1),
    ]


def _triangles(size: list[int], align: bool, *scales: float) -> list[Row]:
    """Interpolation that looks at all it passes over."""
    image = ramp(1, 2, 5, 6)
    back = (ramp(1, 2, *size), size, [1, 2, 5, 6], align, *scales)
    return [
        row("antialiased", "aten._upsample_bilinear2d_aa.default", image, size, align, *scales, level=Level.L2),
        row("antialiased-gradient", "aten._upsample_bilinear2d_aa_backward.default", *back, level=Level.L2),
    ]


def _embedding(padding: int, by_frequency: bool) -> Row:
    args = (ramp(2, 4, 3), i64([[5, 0, 2, 2], [4, 1, 2, 0]]), 6, padding, by_frequency)
    return row("embedding-gradient", "aten.embedding_dense_backward.default", *args, level=Level.L2)


_CONVOLUTION = (ramp(2, 4, 3, 3), ramp(2, 4, 6, 5), ramp(4, 2, 2, 3), [4], [2, 1], [0, 1], [1, 2], False, [0, 0], 2)


def _convolution(*wanted: bool) -> Row:
    op = "aten.convolution_backward.default"
    return row("convolution-gradient", op, *_CONVOLUTION, list(wanted), level=Level.L2)


ROWS: tuple[Row, ...] = (
    *(found for p in (0.0, 1.0, 1.5, 2.0, 3.0, INF) for found in _distances(p)),
    *(_forward(mode, i64(0, 2, 2, 5), None, False, padding) for mode in (0, 1, 2) for padding in (-1, 2)),
    *(_forward(mode, i64(0, 2, 2, 7), None, True, -1) for mode in (0, 1, 2)),
    _forward(0, i64(0, 2, 2, 5), _SHARES, False, 2),
    *(_bags(mode, None, padding) for mode in (0, 1, 2) for padding in (-1, 2)),
    _bags(0, _SHARES, -1),
    _bags(0, _SHARES, 2),
    *(_attention(None, causal, heads) for causal in (False, True) for heads in (1, 2)),
    _attention(ramp(3, 5), False, 2),
    _layer(True, True, True),
    _layer(False, True, False),
    _group(True, True, True),
    *(found for options in itertools.product((0, 1, 2), (0, 1, 2), (False, True)) for found in _grid(*options)),
    _embedding(-1, False),
    _embedding(2, False),
    _embedding(2, True),
    _convolution(True, True, True),
    _convolution(False, True, True),
    row("fold", "aten.col2im.default", ramp(2, 12, 9), [5, 7], [2, 3], [1, 2], [1, 0], [2, 1], level=Level.L2),
    row("fold", "aten.col2im.default", ramp(4, 9), [2, 2], [2, 2], [1, 1], [1, 1], [1, 1], level=Level.L2),
    row("unfold", "aten.im2col.default", ramp(3, 5, 7), [2, 3], [1, 2], [1, 0], [2, 1], level=Level.L2),
    *(found for p in (1.5, 2.0, INF) for found in _rounded_distances(p)),
    row_of("bag-of-ties", _largest_of_bags, f32([[-1.0, 2.0], [-1.0, 3.0], [0.0, 3.0]]), i64(1, 0, 2, 0), i64(0, 2, 2)),
    *(_layer(*wanted) for wanted in ((True, False, False), (False, False, True))),
    *(_group(*wanted) for wanted in ((True, False, False), (False, True, False), (False, False, True))),
    *(_batch(training, True, True, True) for training in (True, False)),
    *(_batch(True, *wanted) for wanted in ((True, False, False), (False, True, False), (False, False, True))),
    *(_convolution(*wanted) for wanted in ((True, False, False), (False, True, False), (False, False, True))),
    *(found for align in (True, False) for found in _sampled("grid-reflected-often", _FAR, 0, 2, align, True, True)),
    *(found for padding in (1, 2) for found in _sampled("grid-at-the-ends", _ENDS, 0, padding, True, True, True)),
    *_sampled("grid-for-the-image", _GRID, 0, 0, True, True, False),
    *_sampled("grid-for-the-grid", _GRID, 0, 0, True, False, True),
    *(
        found
        for size in ([2, 2], [1, 4], [3, 4], [7, 9])
        for align in (True, False)
        for found in _triangles(size, align)
    ),
    *_triangles([3, 4], False, 0.7, 0.6),
)
