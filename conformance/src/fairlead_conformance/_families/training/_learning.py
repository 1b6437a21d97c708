"""Weights that learn over many steps as they do in eager."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from fairlead_conformance._case import Level
from fairlead_conformance._families.training._nets import Mlp
from fairlead_conformance._programs import Trial, attributed, check
from fairlead_conformance._status import Status

_TRAINING = ("training",)


_Optimizer = Callable[[Any], torch.optim.Optimizer]


def _curve(module: Any, parameters: Any, optimizer: _Optimizer, batches: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
    """The loss of each step of training."""
    steps, losses = optimizer(parameters), []
    for x, target in batches:
        steps.zero_grad()
        loss = functional.cross_entropy(module(x), target)
        torch.autograd.backward(loss)
        steps.step()
        losses.append(loss.detach())
    return torch.stack(losses)


def _learns_as_eager(trial: Trial, optimizer: _Optimizer, steps: int) -> None:
    twin = trial.compile(trial.made(Mlp).train())
    eager = copy.deepcopy(twin.eager)
    batches = [(trial.normal(16, 8), trial.integers(4, 16)) for _ in range(4)] * (steps // 4)
    with attributed():
        got = _curve(twin.compiled, twin.program.parameters(), optimizer, batches)
    wanted = _curve(eager, eager.parameters(), optimizer, batches)
    worst = (got - wanted).abs().max().item()
    trial.require(worst < 2e-3, Status.FAIL_GRAD, "loss-curve", f"the losses are off by up to {worst:.3g}")
    for mine, theirs in zip(twin.program.parameters(), eager.parameters(), strict=True):
        near = torch.allclose(mine, theirs, rtol=1e-2, atol=2e-3)
        trial.require(near, Status.FAIL_GRAD, "learned-weights", "the weights learned are not eager's")


@check(Level.L3, needs=_TRAINING, cost=1)
def fifty_steps_of_gradient_descent(trial: Trial) -> None:
    _learns_as_eager(trial, lambda weights: torch.optim.SGD(weights, lr=0.2, momentum=0.5), 52)


@check(Level.L3, needs=_TRAINING, cost=1)
def twenty_steps_of_adamw(trial: Trial) -> None:
    _learns_as_eager(trial, lambda weights: torch.optim.AdamW(weights, lr=3e-2), 20)


@check(Level.L3, needs=_TRAINING)
def learned_weights_are_seen_in_evaluation(trial: Trial) -> None:
    twin = trial.compile(trial.made(Mlp))
    x = trial.normal(5, 8)
    twin(x)
    twin.gradients(x)
    for module in (twin.program, twin.eager, twin.exact):
        torch.optim.SGD(module.parameters(), lr=0.5).step()
        module.zero_grad()
    twin(x)
    twin.gradients(x)
