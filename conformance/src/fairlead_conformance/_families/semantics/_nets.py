"""Small modules of common ops that the checks of this family compile."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class Mlp(nn.Module):
    """A linear layer, an activation and a linear layer."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Any:
        return self.down(torch.relu(self.up(x)))


class Counting(nn.Module):
    """Writes to a buffer at each call, and reads it."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 4)
        self.calls: Tensor
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> Any:
        self.calls.add_(1)
        return self.linear(x) * self.calls


class Tied(nn.Module):
    """An output layer that has the weights of the embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(12, 8)
        self.head = nn.Linear(8, 12, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids: Tensor) -> Any:
        return self.head(torch.tanh(self.embedding(ids)))


class Noisy(nn.Module):
    """Dropout between two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 32), nn.Linear(32, 8)
        self.dropout = nn.Dropout(0.4)

    def forward(self, x: Tensor) -> Any:
        return self.second(self.dropout(torch.relu(self.first(x))))
