"""Pooling of images without a batch, over windows of unequal length, in three dimensions, and backwards."""

from __future__ import annotations

import torch

from fairlead_conformance._case import Level
from fairlead_conformance._families._directed._row import Row, ramp, row

__all__ = ["ROWS"]

_IMAGE, _VOLUME = ramp(3, 7, 6), ramp(2, 4, 5, 6)
_BATCH, _VOLUMES = ramp(2, 3, 7, 5), ramp(2, 2, 5, 4, 7)
_IN_IMAGE, _IN_VOLUME = ([3, 2], [2, 2], [1, 1]), ([2, 2, 3], [2, 1, 2], [1, 0, 1])


def _pooled(subject: str, op: str, *args: object, level: Level = Level.L1) -> Row:
    return row(subject, f"aten.{op}.default", *args, level=level)


def _maximum_gradient(x: torch.Tensor, kernel: list[int], stride: list[int], padding: list[int]) -> Row:
    """Of windows that overlap, so that an element may be the largest of several."""
    rank = len(kernel)
    pool = torch.nn.functional.max_pool2d if rank == 2 else torch.nn.functional.max_pool3d
    out, at = pool(x, kernel, stride, padding, return_indices=True)
    args = (ramp(*out.shape, low=-1.0), x, kernel, stride, padding, [1] * rank, False, at)
    return _pooled("pool-gradient", f"max_pool{rank}d_with_indices_backward", *args, level=Level.L2)


def _adaptive_gradient(x: torch.Tensor, size: list[int]) -> list[Row]:
    rank = len(size)
    pool = torch.nn.functional.adaptive_max_pool2d if rank == 2 else torch.nn.functional.adaptive_max_pool3d
    out, at = pool(x, size, return_indices=True)
    grad, level = ramp(*out.shape, low=-1.0), Level.L2
    return [
        _pooled("pool-gradient", f"adaptive_max_pool{rank}d_backward", grad, x, at, level=level),
        _pooled("pool-gradient", f"_adaptive_avg_pool{rank}d_backward", grad, x, level=level),
    ]


def _mean_gradient(x: torch.Tensor, *options: object) -> Row:
    """``options``: kernel, stride, padding, ceil mode, whether padding counts, divisor."""
    rank = len(options[0])  # type: ignore[arg-type]
    pool = torch.ops.aten.avg_pool2d if rank == 2 else torch.ops.aten.avg_pool3d
    args = (ramp(*pool(x, *options).shape, low=-1.0), x, *options)
    return _pooled("pool-gradient", f"avg_pool{rank}d_backward", *args, level=Level.L2)


def _fractional(x: torch.Tensor, kernel: list[int], size: list[int]) -> Row:
    """The samples are given, so that the windows are known; in three dimensions, where orders differ, one for all."""
    rank = len(kernel)
    samples = ramp(1 if x.dim() == rank + 1 else len(x), x.shape[-rank - 1], rank, low=0.0, high=1.0)
    samples = samples if rank == 2 else samples[..., :1].repeat(1, 1, rank)
    return _pooled("fractional", f"fractional_max_pool{rank}d", x, kernel, size, samples, level=Level.L2)


def _unpooled(x: torch.Tensor, kernel: list[int]) -> Row:
    """Maxima put back where they came from, zeros elsewhere."""
    out, at = torch.nn.functional.max_pool2d(x, kernel, return_indices=True)
    return _pooled("unpool", "max_unpool2d", out, at, list(x.shape[-2:]), level=Level.L2)


ROWS: tuple[Row, ...] = (
    _pooled("without-a-batch", "max_pool2d_with_indices", _IMAGE, *_IN_IMAGE),
    _pooled("without-a-batch", "avg_pool2d", _IMAGE, *_IN_IMAGE),
    _pooled("without-a-batch", "adaptive_max_pool2d", _IMAGE, [4, 4]),
    _pooled("without-a-batch", "_adaptive_avg_pool2d", _IMAGE, [4, 4]),
    _pooled("without-a-batch", "max_pool3d_with_indices", _VOLUME, *_IN_VOLUME),
    _pooled("without-a-batch", "avg_pool3d", _VOLUME, *_IN_VOLUME),
    _pooled("without-a-batch", "adaptive_max_pool3d", _VOLUME, [3, 2, 4]),
    _pooled("without-a-batch", "_adaptive_avg_pool3d", _VOLUME, [3, 2, 4]),
    _pooled("windows-of-unequal-length", "adaptive_max_pool2d", _BATCH, [4, 3]),
    _pooled("windows-of-unequal-length", "_adaptive_avg_pool2d", _BATCH, [4, 3]),
    _pooled("windows-of-unequal-length", "adaptive_max_pool3d", _VOLUMES, [3, 3, 4]),
    _pooled("windows-of-unequal-length", "_adaptive_avg_pool3d", _VOLUMES, [3, 3, 4]),
    _pooled("pool-3d", "avg_pool3d", _VOLUMES, *_IN_VOLUME, True, True),
    _pooled("pool-3d", "avg_pool3d", _VOLUMES, *_IN_VOLUME, True, False),
    _pooled("pool-3d", "avg_pool3d", _VOLUMES, *_IN_VOLUME, False, True, 5),
    _pooled("pool-3d", "max_pool3d_with_indices", _VOLUMES, *_IN_VOLUME, [1, 1, 1], True),
    _pooled("pool-3d", "max_pool3d_with_indices", _VOLUMES, [2, 2, 2], [1, 1, 1], [0, 1, 0], [2, 1, 3]),
    _pooled("step-longer-than-the-window", "max_pool2d_with_indices", _BATCH, [2, 1], [3, 2], [0, 0], [1, 1], True),
    _pooled("step-longer-than-the-window", "avg_pool2d", _BATCH, [2, 1], [3, 2], [0, 0], True),
    *(_maximum_gradient(x, *_IN_IMAGE) for x in (_IMAGE, _BATCH)),
    *(_maximum_gradient(x, *_IN_VOLUME) for x in (_VOLUME, _VOLUMES)),
    *(found for x in (_IMAGE, _BATCH) for found in _adaptive_gradient(x, [4, 3])),
    *(found for x in (_VOLUME, _VOLUMES) for found in _adaptive_gradient(x, [3, 2, 4])),
    _mean_gradient(_IMAGE, *_IN_IMAGE, False, True, None),
    _mean_gradient(_BATCH, *_IN_IMAGE, True, False, None),
    _mean_gradient(_BATCH, *_IN_IMAGE, False, True, 5),
    _mean_gradient(_VOLUME, *_IN_VOLUME, False, True, None),
    _mean_gradient(_VOLUMES, *_IN_VOLUME, True, False, None),
    _fractional(_IMAGE, [2, 3], [3, 2]),
    _fractional(_BATCH, [2, 2], [4, 3]),
    _fractional(_VOLUME, [2, 1, 3], [2, 3, 3]),
    *(_unpooled(x, [2, 2]) for x in (_IMAGE, _BATCH)),
)
