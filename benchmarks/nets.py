"""Nets for images beyond those of ``fairlead compare --list``: ``python benchmarks/compare.py --models nets:unet``.

Widths are the real ones, because they decide which kernel is fast; depth and image size are cut as for
the bundled models. Dropout is off, so that a training step can be compared with eager.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch
import transformers
from torch import nn

__all__ = ["convnext", "mobilenet", "swin", "unet"]

Made = tuple[nn.Module, dict[str, torch.Tensor]]

CLASSES: dict[str, Any] = {"num_labels": 1000}


def mobilenet() -> Made:
    """MobileNetV2, 128 by 128 pixels, batch 2."""
    config = transformers.MobileNetV2Config(classifier_dropout_prob=0.0, **CLASSES)
    return transformers.MobileNetV2ForImageClassification(config), _images(128)


def convnext() -> Made:
    """ConvNeXt-Tiny with 6 in place of 18 blocks, 96 by 96 pixels, batch 2."""
    config = transformers.ConvNextConfig(depths=[1, 1, 3, 1], **CLASSES)
    return transformers.ConvNextForImageClassification(config), _images(96)


def swin() -> Made:
    """The first three stages of Swin-Tiny, with 2 blocks each, 112 by 112 pixels, batch 2."""
    config = transformers.SwinConfig(
        image_size=112, depths=[2, 2, 2], num_heads=[3, 6, 12], drop_path_rate=0.0, **CLASSES
    )
    return transformers.SwinForImageClassification(config), _images(112)


def unet() -> Made:
    """The U-Net of Ronneberger et al. with batch norms, widths of 32 to 256, 96 by 96 pixels, batch 2."""
    return UNet((32, 64, 128, 256)), {"x": torch.randn(2, 3, 96, 96)}


def _images(size: int) -> dict[str, torch.Tensor]:
    return {"pixel_values": torch.randn(2, 3, size, size)}


class UNet(nn.Module):
    """Two convolutions a level, on the way down and, beside what came down, on the way up."""

    def __init__(self, widths: tuple[int, ...]) -> None:
        super().__init__()
        pairs = list(itertools.pairwise(widths))
        self.first = _twice(3, widths[0])
        self.down = nn.ModuleList(_twice(a, b) for a, b in pairs)
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, stride=2) for a, b in reversed(pairs))
        self.joined = nn.ModuleList(_twice(2 * a, a) for a, _ in reversed(pairs))
        self.last = nn.Conv2d(widths[0], 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        beside = []
        for down in self.down:
            beside.append(x)
            x = down(nn.functional.max_pool2d(x, 2))
        for up, joined in zip(self.up, self.joined, strict=True):
            x = joined(torch.cat([up(x), beside.pop()], 1))
        return self.last(x)


def _twice(a: int, b: int) -> nn.Sequential:
    return nn.Sequential(*_convolved(a, b), *_convolved(b, b))


def _convolved(a: int, b: int) -> tuple[nn.Module, ...]:
    return nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU()
