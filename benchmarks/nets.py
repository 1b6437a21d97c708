"""Nets beyond those of ``fairlead compare --list``: ``python benchmarks/compare.py --models nets:unet``.

Widths are the real ones, because they decide which kernel is fast; depth and image size are cut as for
the bundled models. Dropout is off, so that a training step can be compared with eager.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch
import transformers
from torch import nn

__all__ = [
    "clip",
    "convnext",
    "dlrm",
    "graph_sage",
    "lstm",
    "mamba",
    "mixtral",
    "mobilenet",
    "swin",
    "unet",
    "wav2vec2",
]

Made = tuple[nn.Module, dict[str, torch.Tensor]]

CLASSES: dict[str, Any] = {"num_labels": 1000}
VOCABULARY = 8192
TOKENS: dict[str, Any] = {"vocab_size": VOCABULARY, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


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


def clip() -> Made:
    """CLIP with four layers each for texts of 24 tokens and images of 112 by 112 pixels, batch 2."""
    config = transformers.CLIPConfig(
        text_config={"num_hidden_layers": 4, **TOKENS}, vision_config={"num_hidden_layers": 4, "image_size": 112}
    )
    return transformers.CLIPModel(config), {**_texts(2, 24), **_images(112), "attention_mask": torch.ones(2, 24).long()}


def mamba() -> Made:
    """Mamba of four layers 768 wide, texts of 24 tokens, batch 2: torch has its scan written out step by step."""
    config = transformers.MambaConfig(num_hidden_layers=4, use_cache=False, **TOKENS)
    return transformers.MambaForCausalLM(config), _texts(2, 24)


def mixtral() -> Made:
    """A Mixtral of two layers 512 wide with eight experts, two of which each of 2 by 48 tokens takes."""
    config = transformers.MixtralConfig(
        hidden_size=512,
        intermediate_size=1024,
        num_hidden_layers=2,
        num_attention_heads=8,
        num_key_value_heads=4,
        use_cache=False,
        **TOKENS,
    )
    return transformers.MixtralForCausalLM(config), _texts(2, 48)


def wav2vec2() -> Made:
    """Wav2Vec2 with four layers, half a second of sound, batch 2."""
    config = transformers.Wav2Vec2Config(num_hidden_layers=4, layerdrop=0.0, apply_spec_augment=False, **NO_DROPOUT)
    return transformers.Wav2Vec2ForCTC(config), {"input_values": torch.randn(2, 8000)}


NO_DROPOUT: dict[str, Any] = {
    f"{name}_dropout": 0.0 for name in ("hidden", "activation", "attention", "feat_proj", "final")
}


def lstm() -> Made:
    """An LSTM of two layers 512 wide over 48 steps, batch 4, and what it is asked for at the end."""
    return Recurrent(256, 512, 1000), {"x": torch.randn(4, 48, 256)}


def dlrm() -> Made:
    """A DLRM as of Naumov et al.: 26 tables of 64 columns, 13 numbers, batch 128."""
    inputs = {"numbers": torch.randn(128, 13), "places": torch.randint(0, 1000, (26, 128, 2))}
    return Recommender(26, 1000, 64), inputs


def graph_sage() -> Made:
    """GraphSAGE of three layers 256 wide with means over neighbours, 1,000 nodes, 8,000 edges."""
    return GraphSage((128, 256, 256, 47)), {"x": torch.randn(1000, 128), "edges": torch.randint(0, 1000, (2, 8000))}


def _texts(batch: int, length: int) -> dict[str, torch.Tensor]:
    return {"input_ids": torch.randint(3, VOCABULARY, (batch, length))}


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


class Recurrent(nn.Module):
    """An LSTM, and a linear layer on its last state."""

    def __init__(self, inputs: int, width: int, classes: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(inputs, width, num_layers=2, batch_first=True)
        self.last = nn.Linear(width, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        states, _ = self.lstm(x)
        return self.last(states[:, -1])


class Recommender(nn.Module):
    """Rows of tables, added up, and numbers; products of each with each; a layer for what they say together."""

    def __init__(self, tables: int, rows: int, width: int) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables))
        self.bottom = _layers(13, 512, 256, width)
        pairs = torch.triu_indices(tables + 1, tables + 1, 1)
        self.register_buffer("pairs", pairs)
        self.top = _layers(width + pairs.shape[1], 1024, 512, 1)

    def forward(self, numbers: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        dense = self.bottom(numbers)
        rows = [table(at) for table, at in zip(self.tables, places.unbind(), strict=True)]
        each = torch.stack([dense, *rows], 1)
        products = each @ each.transpose(1, 2)
        first, second = self.pairs
        return self.top(torch.cat([dense, products[:, first, second]], 1))


class GraphSage(nn.Module):
    """Each node's own features and the mean of its neighbours', through a layer each, and added."""

    def __init__(self, widths: tuple[int, ...]) -> None:
        super().__init__()
        self.own = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(widths))
        self.around = nn.ModuleList(nn.Linear(a, b, bias=False) for a, b in itertools.pairwise(widths))

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        source, target = edges
        count = torch.zeros(len(x)).index_add(0, target, torch.ones(len(target))).clamp(min=1)
        for k, (own, around) in enumerate(zip(self.own, self.around, strict=True)):
            mean = torch.zeros_like(x).index_add(0, target, x[source]) / count[:, None]
            x = own(x) + around(mean)
            if k + 1 < len(self.own):
                x = x.relu()
        return x


def _layers(*widths: int) -> nn.Sequential:
    return nn.Sequential(*(layer for a, b in itertools.pairwise(widths) for layer in (nn.Linear(a, b), nn.ReLU())))
