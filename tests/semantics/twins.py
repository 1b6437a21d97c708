"""A model that a compiled step trains, and its copy that eager mode trains."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.utils.checkpoint
from torch.nn import functional

import fairlead

Make = Callable[[Any], torch.optim.Optimizer]

adamw = functools.partial(torch.optim.AdamW, lr=1e-2)
sgd = functools.partial(torch.optim.SGD, lr=0.1, momentum=0.9, weight_decay=0.01)


class Convolutions(torch.nn.Module):
    """Two convolutions with a batch norm between them."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(1, 4, 3, bias=False)
        self.norm = torch.nn.BatchNorm2d(4)
        self.second = torch.nn.Conv2d(4, 4, 3, stride=2)
        self.out = torch.nn.Linear(16, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.second(self.norm(self.first(x)).relu())
        return self.out(functional.adaptive_avg_pool2d(x, 2).flatten(1))


def classified(model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(model(x), y)


def squared(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    return model(x).square().mean()


class Twins:
    """A model that a compiled step trains, and its copy that eager mode trains."""

    def __init__(self, model: torch.nn.Module, make: Make, loss: Callable[..., Any], **given: Any) -> None:
        self.model, self.reference, self.loss = model, copy.deepcopy(model), loss
        self.optimizer, self.eager = make(model.parameters()), make(self.reference.parameters())
        self.step = fairlead.compile_step(model, self.optimizer, loss, **{"backend": "eager", **given})

    def both(self, *batch: torch.Tensor) -> tuple[float, float]:
        """A step of each; what they give for the loss."""
        found = self.step(*batch)
        assert not found.requires_grad
        self.eager.zero_grad()
        wanted = self.loss(self.reference, *batch)
        wanted.backward()
        self.eager.step()
        return found.item(), wanted.item()

    def compare(self, rtol: float = 1e-4, atol: float = 1e-5) -> None:
        """Parameters, buffers and the state of the optimizers are equal."""
        torch.testing.assert_close(self.model.state_dict(), self.reference.state_dict(), rtol=rtol, atol=atol)
        mine, eagers = self.optimizer.state_dict()["state"], self.eager.state_dict()["state"]
        torch.testing.assert_close(mine, eagers, rtol=rtol, atol=atol)
        assert all(p.grad is None for p in self.model.parameters())

    @property
    def compiled(self) -> int:
        return len(self.step.fairlead.placement.graphs)
