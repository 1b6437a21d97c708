"""Which inputs each net takes, of which sizes, and what it does besides its values."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from torch import nn

from fairlead_conformance._families.models import _nets
from fairlead_conformance._programs import Trial

__all__ = ["NETS", "Net"]


@dataclasses.dataclass(frozen=True)
class Net:
    """A net, its ``inputs`` for a batch and a length, and the ``sizes`` of those that it is called with.

    ``draws``: it draws random numbers; ``learns``: it has gradients; ``halves``: it runs in bfloat16.
    """

    make: Callable[[], nn.Module]
    inputs: Callable[[Trial, int, int], tuple[Any, ...]]
    sizes: Sequence[tuple[int, int]] = ((2, 6), (3, 9), (1, 4))
    draws: bool = False
    learns: bool = True
    halves: bool = True


def _rows(width: int) -> Callable[[Trial, int, int], tuple[Any, ...]]:
    return lambda trial, batch, length: (trial.normal(batch, width),)


def _series(width: int) -> Callable[[Trial, int, int], tuple[Any, ...]]:
    return lambda trial, batch, length: (trial.normal(batch, length, width),)


def _images(channels: int) -> Callable[[Trial, int, int], tuple[Any, ...]]:
    return lambda trial, batch, length: (trial.normal(batch, channels, 2 * length, 2 * length + 2),)


def _padded(trial: Trial, batch: int, length: int) -> tuple[Any, ...]:
    ids = trial.integers(31, batch, length) + 1
    ids[0, -1] = 0
    return (ids,)


def _bagged(trial: Trial, batch: int, length: int) -> tuple[Any, ...]:
    return trial.integers(40, batch, 2, length), trial.normal(batch, 2, length), trial.normal(batch, 5)


def _token(trial: Trial, batch: int, length: int) -> tuple[Any, ...]:
    return trial.integers(20, 1, 1), trial.tensor([length])


NETS = {
    "mlp": Net(_nets.Mlp, _rows(12)),
    "conv-net": Net(_nets.ConvNet, _images(3)),
    "residual-block": Net(_nets.ResidualBlock, _images(4)),
    "separable-convolution": Net(_nets.Separable, _images(8)),
    "recurrent": Net(_nets.Recurrent, _series(6), sizes=((2, 4), (3, 4))),
    "attention": Net(_nets.Attention, _series(16)),
    "encoder": Net(_nets.Encoder, _padded),
    "rotary": Net(_nets.Rotary, _series(16)),
    "decoder-step": Net(_nets.Decoder, _token, sizes=((1, 0), (1, 1), (1, 5)), learns=False),
    "mixture-of-experts": Net(_nets.Mixture, _rows(8), halves=False),
    "u-net": Net(_nets.UNet, _images(2)),
    "embedding-bags": Net(_nets.Bags, _bagged),
    "detector": Net(_nets.Detector, _series(8), halves=False),
    "state-space": Net(_nets.StateSpace, _series(6), sizes=((2, 4), (3, 4))),
    "variational": Net(_nets.Variational, _rows(10), draws=True),
    "quantised": Net(_nets.Quantised, _rows(10), learns=False, halves=False),
}
"""Every net by the name that ids have."""
