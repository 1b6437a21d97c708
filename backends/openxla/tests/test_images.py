"""Images have their channels last from one convolution to the next, and are what eager has."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import fairlead
from fairlead_openxla import OpenXLAOptions, backend

CHANNELS, SIZE = 24, 20
"""No others have these sizes, so that the text of a program says how an image lies."""


class Residual(nn.Module):
    """A convolution, what lies between, and a second one whose result is added to the first one's."""

    def __init__(self, between: Callable[[torch.Tensor], torch.Tensor], channels: int = CHANNELS) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, CHANNELS, 3, padding=1)
        self.norm = nn.BatchNorm2d(CHANNELS)
        self.second = nn.Conv2d(channels, CHANNELS, 1)
        self.last = nn.Conv2d(CHANNELS, 5, 1)
        self.between = between

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of an image of three channels."""
        y = self.norm(self.first(x)).relu()
        return self.last((y + self.second(self.between(y))).relu() * 2)


def gated(x: torch.Tensor) -> torch.Tensor:
    return x * x.mean((2, 3), keepdim=True).sigmoid() + torch.arange(1.0, SIZE + 1)


BETWEEN: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu6": F.relu6,
    "gelu": F.gelu,
    "padded": lambda x: F.pad(x, (1, 2, 0, 1))[..., :-1, 1:-2],
    "padded with channels": lambda x: F.pad(x, (0, 0, 0, 0, 1, 2))[:, 1:-2],
    "cut": lambda x: F.pad(F.pad(x, (-1, -2, 2, 0)), (1, 2, -2, 0)),
    "pooled": lambda x: F.max_pool2d(x, 3, 1, 1),
    "pooled apart": lambda x: F.max_pool2d(F.pad(x, (1, 1, 1, 1)), 3, 1, 1, dilation=2),
    "pooled with places": lambda x: F.max_pool2d(x, 3, 1, 1, return_indices=True)[0],
    "averaged": lambda x: F.avg_pool2d(x, 3, 1, 1),
    "averaged within": lambda x: F.avg_pool2d(x, (3, 5), 1, (1, 2), count_include_pad=False),
    "gated": gated,
    "normalised": lambda x: F.group_norm(x, 4, torch.linspace(1, 2, CHANNELS), torch.linspace(-1, 1, CHANNELS)),
    "normalised apart": lambda x: F.group_norm(x, CHANNELS),
    "halved": lambda x: x.half().float(),
    "truth": lambda x: (x > 0.1).float(),
}


@pytest.mark.parametrize("name", BETWEEN)
def test_what_lies_between_convolutions_is_eagers(name: str) -> None:
    torch.manual_seed(0)
    model, x = Residual(BETWEEN[name]).eval(), torch.randn(2, 3, SIZE, SIZE)
    with torch.no_grad():
        compiled = fairlead.compile(model, backend="openxla", benchmark=False, max_fallback=0)
        near = 1e-3 if name == "halved" else 1e-5  # what lies next to the middle of two halves may become either
        torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=near)


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_images_are_joined_along_any_dimension(dim: int) -> None:
    torch.manual_seed(0)
    first, second = nn.Conv2d(3, 6, 3, padding=1), nn.Conv2d(3, 6, 1)

    def joined(x: torch.Tensor) -> torch.Tensor:
        return torch.cat([first(x), second(x), x[:, :2].repeat(1, 3, 1, 1)], dim).relu()

    x = torch.randn(2, 3, 7, 9)
    with torch.no_grad():
        compiled = fairlead.compile(joined, backend="openxla", benchmark=False, max_fallback=0)
        torch.testing.assert_close(compiled(x), joined(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rank", [1, 3])
def test_images_of_other_ranks_are_eagers(rank: int) -> None:
    torch.manual_seed(0)
    make = {1: nn.Conv1d, 3: nn.Conv3d}[rank]
    first, second, scale = make(3, 6, 3, padding=1), make(6, 6, 3, groups=6), torch.randn(*(4,) * rank)

    def net(x: torch.Tensor) -> torch.Tensor:
        y = F.gelu(first(x)) * scale
        return second(y) + y[(..., *(slice(1, -1),) * rank)]

    x = torch.randn(2, 3, *(4,) * rank)
    with torch.no_grad():
        compiled = fairlead.compile(net, backend="openxla", benchmark=False, max_fallback=0)
        torch.testing.assert_close(compiled(x), net(x), rtol=1e-4, atol=1e-5)


def test_without_a_batch_an_image_is_eagers() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 4, 1)).eval()
    x = torch.randn(3, 8, 8)
    with torch.no_grad():
        compiled = fairlead.compile(net, backend="openxla", benchmark=False, max_fallback=0)
        torch.testing.assert_close(compiled(x), net(x), rtol=1e-4, atol=1e-5)


def test_an_image_is_multiplied_by_an_integer_that_is_passed() -> None:
    torch.manual_seed(0)
    conv, x = nn.Conv2d(3, 6, 3, padding=1), torch.randn(2, 3, 7, 9)

    def net(x: torch.Tensor, n: int) -> torch.Tensor:
        return (conv(x) * n).relu() + n

    with torch.no_grad():
        compiled = fairlead.compile(net, backend="openxla", benchmark=False, max_fallback=0, dynamic=True)
        for n in (2, 3, 5):
            torch.testing.assert_close(compiled(x, n), net(x, n), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["relu6", "pooled", "averaged", "padded", "normalised"])
def test_no_image_between_convolutions_has_its_channels_first(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """XLA lays out what two ops read as it is declared, unless it is written otherwise."""
    texts: list[str] = []
    compile_ = type(backend).compile

    def noted(self: object, graph: object, options: OpenXLAOptions, *rest: object) -> object:
        run = compile_(backend, graph, options, *rest)  # type: ignore[arg-type]
        texts.append(run.readable()["0.hlo.txt"])  # type: ignore[attr-defined]
        return run

    monkeypatch.setattr(type(backend), "compile", noted)
    model, x = Residual(BETWEEN[name]).eval(), torch.randn(2, 3, SIZE, SIZE)
    with torch.no_grad():
        fairlead.compile(model, backend="openxla", benchmark=False, max_fallback=0)(x)
    (text,) = texts
    entry = text[text.index("\nENTRY") :]
    assert re.search(rf"f32\[2,{SIZE},{SIZE},{CHANNELS}\]", entry)
    assert not re.search(rf"f32\[2,{CHANNELS},\d+,\d+\]", entry)
