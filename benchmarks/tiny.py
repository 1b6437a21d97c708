"""Graphs so small that a call is all overhead: factories for ``fairlead compare`` and benchmarks/overhead.py."""

from __future__ import annotations

import torch

__all__ = ["add", "linear"]


class Add(torch.nn.Module):
    """One op on four numbers."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1


def add() -> tuple[torch.nn.Module, torch.Tensor]:
    """``x + 1`` on four elements."""
    return Add(), torch.ones(4)


def linear() -> tuple[torch.nn.Module, torch.Tensor]:
    """A linear layer of four by four, with weights to bake in."""
    return torch.nn.Linear(4, 4), torch.ones(1, 4)
