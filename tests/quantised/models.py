"""Makes ``convnet.fir`` and ``linear.fir`` beside it: what torchao's PT2E flow writes of two small models.

With torchao 0.18 installed, in this folder, for each of the two::

    fairlead capture models.py:convnet -o convnet.fir --no-locations
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


def convnet() -> tuple[nn.Module, tuple[torch.Tensor]]:
    layers = nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.ReLU()
    return _quantised(nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5)), 2, 3, 16, 16)


def linear() -> tuple[nn.Module, tuple[torch.Tensor]]:
    return _quantised(nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8)), 2, 6, 32)


class _Evaluated(nn.Module):
    """A model that knows no other mode, and raises where it is asked for one."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def train(self, mode: bool = True) -> _Evaluated:
        return self

    def forward(self, x: torch.Tensor) -> Any:
        return self.model(x)


def _quantised(model: nn.Module, *shape: int) -> tuple[nn.Module, tuple[torch.Tensor]]:
    """The model in 8 bits, after calibration with random inputs."""
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

    quantizer: Any = x86.X86InductorQuantizer()
    quantizer.set_global(x86.get_default_x86_inductor_quantization_config())
    x = torch.randn(shape)
    prepared = prepare_pt2e(torch.export.export(model.eval(), (x,)).module(), quantizer)
    for _ in range(8):
        prepared(torch.randn(shape))
    return _Evaluated(convert_pt2e(prepared)), (x,)
