"""Small modules that the checks of this family train."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Any:
        return self.down(torch.tanh(self.up(x)))


class Normed(nn.Module):
    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(8, 6), norm

    def forward(self, x: Tensor) -> Any:
        return self.norm(self.linear(x)).relu()


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Any:
        q, k, v = self.qkv(x).chunk(3, -1)
        return self.out((q @ k.mT / 8**0.5).softmax(-1) @ v)
