"""Branches and loops: those of Python that values decide, and those of torch that a graph may hold."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch._higher_order_ops import scan, while_loop

from fairlead_conformance._case import Level
from fairlead_conformance._programs import Trial, check


@check(Level.L1)
def a_branch_of_python_on_a_value(trial: Trial) -> None:
    twin = trial.compile(lambda x: x * 2 if x.sum() > 0 else x - 7)
    for sign in (1.0, -1.0, 1.0):
        twin(trial.normal(3).abs() * sign)


@check(Level.L1)
def a_loop_over_rows(trial: Trial) -> None:
    def program(x: Tensor) -> Tensor:
        state = x.new_zeros(x.shape[1])
        for row in x:
            state = (state * 0.5 + row).relu()
        return state

    trial.compile(program)(trial.normal(5, 3))


@check(Level.L2)
def an_early_return(trial: Trial) -> None:
    def program(x: Tensor) -> Tensor:
        y = x * 2
        if y.max() < 0:
            return y
        return y.relu() + 1

    twin = trial.compile(program)
    twin(-trial.normal(4).abs() - 1)
    twin(trial.normal(4).abs() + 1)


@check(Level.L2)
def a_number_read_from_a_tensor(trial: Trial) -> None:
    twin = trial.compile(lambda x, n: x * n.item() + 1)
    for number in (2, 3, 5):
        twin(trial.normal(3), trial.tensor(number))


@check(Level.L1)
def both_ways_of_a_cond(trial: Trial) -> None:
    def program(x: Tensor) -> Any:
        return torch.cond(x.sum() > 0, lambda v: v * 2, lambda v: v - 7, (x,))

    twin = trial.compile(program)
    for sign in (1.0, -1.0):
        twin(trial.normal(3).abs() * sign)


class _Gate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wide, self.narrow = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Any:
        x = (x * 2).relu()
        return torch.cond(x.sum() > 1, lambda v: self.wide(v).relu(), lambda v: self.narrow(v), (x,)) + 1


@check(Level.L2)
def a_cond_over_weights(trial: Trial) -> None:
    twin = trial.compile(trial.made(_Gate))
    for sign in (1.0, -1.0):
        twin(trial.normal(3, 4).abs() * sign)
    twin.each(lambda module: module.wide.weight.mul_(2))
    twin(trial.normal(3, 4).abs())


@check(Level.L2)
def a_while_loop(trial: Trial) -> None:
    def program(x: Tensor) -> Any:
        def step(count: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
            return count + 1, value * 0.5 + 1

        carried = (torch.zeros((), dtype=torch.int64, device=x.device), x + 1)
        return while_loop(lambda count, value: count < 5, step, carried)  # type: ignore[no-untyped-call]

    trial.compile(program)(trial.normal(3))


@check(Level.L2, cost=2)
def a_scan(trial: Trial) -> None:
    def program(x: Tensor) -> tuple[Tensor, Tensor]:
        def step(state: Tensor, row: Tensor) -> tuple[Tensor, Tensor]:
            return state * 0.9 + row, state + row.relu()

        return scan(step, torch.zeros_like(x[0]), x)

    trial.compile(program)(trial.normal(5, 3))
