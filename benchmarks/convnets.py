"""Convolutional networks for ``compare.py --models``, as ``benchmarks/convnets.py:mobilenetv2``: random weights.

Widths are the real ones; images are of 112 pixels, so that a call takes tens of milliseconds on one core.
"""

from __future__ import annotations

from typing import Any

import torch
import transformers
from torch import Tensor, nn

__all__ = ["convnext", "mobilenetv2", "swin", "unet"]

Made = tuple[nn.Module, dict[str, Tensor], dict[str, dict[int, str]]]
"""A module, its inputs, and which of their sizes change."""


def _images(module: nn.Module, size: int = 112) -> Made:
    return module.eval(), {"pixel_values": torch.randn(2, 3, size, size)}, {"pixel_values": {0: "batch"}}


def _seen(module: nn.Module) -> nn.Module:
    """With statistics in the batch norms as of a network that was trained: numbers keep their size through it."""
    module.train()
    with torch.no_grad():
        for _ in range(2):
            module(pixel_values=torch.randn(4, 3, 64, 64))
    return module


def mobilenetv2() -> Made:
    """MobileNetV2, whole."""
    config = transformers.MobileNetV2Config(num_labels=1000, image_size=112)
    return _images(_seen(transformers.MobileNetV2ForImageClassification(config)))


def convnext() -> Made:
    """ConvNeXt-Tiny, whole."""
    return _images(transformers.ConvNextForImageClassification(transformers.ConvNextConfig(num_labels=1000)))


def swin() -> Made:
    """Swin-Tiny with 2 layers in its third stage and windows of 4, which divide 128 pixels."""
    config = transformers.SwinConfig(depths=[2, 2, 2, 2], image_size=128, window_size=4, num_labels=1000)
    return _images(transformers.SwinForImageClassification(config), 128)


class _Twice(nn.Sequential):
    def __init__(self, given: int, wanted: int) -> None:
        parts: list[Any] = []
        for channels in (given, wanted):
            parts += [nn.Conv2d(channels, wanted, 3, padding=1, bias=False), nn.BatchNorm2d(wanted), nn.ReLU()]
        super().__init__(*parts)


class _UNet(nn.Module):
    """Three levels of two convolutions each, down by pooling, up by transposed convolutions, joined across."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList([_Twice(3, 32), _Twice(32, 64), _Twice(64, 128)])
        self.deepest = _Twice(128, 256)
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * c, c, 2, stride=2) for c in (128, 64, 32))
        self.joined = nn.ModuleList(_Twice(2 * c, c) for c in (128, 64, 32))
        self.last = nn.Conv2d(32, 2, 1)

    def forward(self, pixel_values: Tensor) -> Tensor:
        x, across = pixel_values, []
        for level in self.down:
            across.append(level(x))
            x = nn.functional.max_pool2d(across[-1], 2)
        x = self.deepest(x)
        for up, joined, left in zip(self.up, self.joined, reversed(across), strict=True):
            x = joined(torch.cat([left, up(x)], 1))
        return self.last(x)


def unet() -> Made:
    """A U-Net of 32 to 256 channels."""
    return _images(_seen(_UNet()))
