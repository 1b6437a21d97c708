"""Optimizers, their schedules and states in whole training steps."""

from __future__ import annotations

import copy
import functools
from typing import Any

import pytest
import torch
import torch.utils.checkpoint

import fairlead

from .nets import Mlp
from .twins import Make, Twins, adamw, sgd, squared


@pytest.mark.parametrize(
    "make",
    [
        functools.partial(torch.optim.Adam, lr=1e-2, weight_decay=0.1, amsgrad=True),
        functools.partial(torch.optim.AdamW, lr=1e-2, foreach=True, maximize=True),
        functools.partial(torch.optim.AdamW, lr=1e-2, fused=True),
        functools.partial(torch.optim.SGD, lr=1e-2, momentum=0.9, nesterov=True),
        functools.partial(torch.optim.NAdam, lr=1e-2),
        lambda parameters: torch.optim.AdamW([{"params": [p], "lr": 0.1 / p.dim()} for p in parameters]),
    ],
    ids=["amsgrad", "foreach", "fused", "nesterov", "nadam", "groups"],
)
def test_optimizers_step_as_they_do_in_eager_mode(make: Make) -> None:
    twins = Twins(torch.nn.Linear(8, 3), make, squared)
    before = [dict(group) for group in twins.optimizer.param_groups]
    for _ in range(3):
        twins.both(torch.randn(4, 8))
        twins.compare()
    assert [dict(group) for group in twins.optimizer.param_groups] == before
    assert twins.compiled == 1


def test_dampened_momentum_has_a_first_step_of_its_own() -> None:
    twins = Twins(torch.nn.Linear(8, 3), functools.partial(torch.optim.SGD, momentum=0.9, dampening=0.5), squared)
    for _ in range(4):
        twins.both(torch.randn(4, 8))
    twins.compare()
    assert twins.compiled == 2


def test_a_learning_rate_that_changes_compiles_nothing_and_is_never_stale() -> None:
    twins = Twins(torch.nn.Linear(8, 3), adamw, squared)
    schedules = [torch.optim.lr_scheduler.ExponentialLR(o, 0.5) for o in (twins.optimizer, twins.eager)]
    for _ in range(4):
        twins.both(torch.randn(3, 8))
        for schedule in schedules:
            schedule.step()
        twins.compare()
    assert twins.optimizer.param_groups[0]["lr"] == 1e-2 / 16
    assert twins.compiled == 1


@pytest.mark.parametrize("make", [adamw, sgd])
def test_a_momentum_that_cycles_compiles_once_more(make: Make) -> None:
    twins = Twins(torch.nn.Linear(8, 3), make, squared)
    cycle = functools.partial(torch.optim.lr_scheduler.OneCycleLR, max_lr=0.05, total_steps=12)
    schedules = [cycle(optimizer) for optimizer in (twins.optimizer, twins.eager)]
    for _ in range(5):
        twins.both(torch.randn(4, 8))
        for schedule in schedules:
            schedule.step()
        twins.compare()
    assert [graph.name for graph in twins.step.fairlead.placement.graphs] == ["step_0", "step_1"]


def test_another_hyperparameter_is_another_program() -> None:
    twins = Twins(torch.nn.Linear(8, 3), adamw, squared)
    for decay in (0.01, 0.5):
        for optimizer in (twins.optimizer, twins.eager):
            optimizer.param_groups[0]["weight_decay"] = decay
        twins.both(torch.randn(3, 8))
        twins.compare()
    assert twins.compiled > 1


@pytest.mark.parametrize("by", ["norm", "value", "hand"])
def test_gradients_are_clipped_before_the_update(by: str) -> None:
    if by != "hand" and torch.__version__ < "2.13":
        pytest.skip("clip_grad_norm_ and clip_grad_value_ break the graphs of older releases of torch")

    def clip(model: torch.nn.Module) -> None:
        if by == "norm":
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        elif by == "value":
            torch.nn.utils.clip_grad_value_(model.parameters(), 0.1)
        else:
            for p in model.parameters():
                p.grad.mul_((0.1 / p.grad.norm()).clamp(max=1.0))

    model, x = torch.nn.Linear(8, 3), torch.randn(4, 8) * 9
    reference = copy.deepcopy(model)
    optimizer, eager = (torch.optim.SGD(m.parameters(), lr=0.5) for m in (model, reference))
    step = fairlead.compile_step(model, optimizer, squared, before_update=lambda: clip(model), backend="eager")
    for _ in range(2):
        step(x)
        eager.zero_grad()
        squared(reference, x).backward()
        clip(reference)
        eager.step()
    torch.testing.assert_close(model.state_dict(), reference.state_dict())
    (graph,) = step.fairlead.placement.graphs
    assert not [node.op for node in graph.nodes if "_foreach_" in node.op]


def test_steps_of_one_model_with_two_optimizers_take_turns() -> None:
    model = Mlp()
    reference = copy.deepcopy(model)
    halves = [[m.up, m.down] for m in (model, reference)]
    mine, eagers = ([sgd(half.parameters()) for half in each] for each in halves)
    steps = [fairlead.compile_step(model, optimizer, squared, backend="eager") for optimizer in mine]
    for turn in range(4):
        x = torch.randn(3, 8)
        steps[turn % 2](x)
        reference.zero_grad()
        squared(reference, x).backward()
        eagers[turn % 2].step()
    torch.testing.assert_close(model.state_dict(), reference.state_dict())


def test_eager_training_loading_and_steps_take_turns() -> None:
    twins = Twins(torch.nn.Linear(8, 3), adamw, squared)
    saved: list[Any] = []
    for _ in range(2):
        twins.both(torch.randn(3, 8))
        for model, optimizer in ((twins.model, twins.optimizer), (twins.reference, twins.eager)):
            optimizer.zero_grad()
            squared(model, torch.ones(3, 8)).backward()
            optimizer.step()
        twins.model.zero_grad()
        twins.compare()
        saved.append(copy.deepcopy((twins.model.state_dict(), twins.optimizer.state_dict())))
    for model, optimizer in ((twins.model, twins.optimizer), (twins.reference, twins.eager)):
        model.load_state_dict(saved[0][0])
        optimizer.load_state_dict(copy.deepcopy(saved[0][1]))
    twins.both(torch.randn(3, 8))
    twins.compare()
    assert twins.compiled == 1
