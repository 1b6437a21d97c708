"""Control flow runs in the session, as If, Loop and Scan, with nothing left to others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._higher_order_ops import map as along
from torch._higher_order_ops import scan, while_loop

import fairlead

WEIGHT = torch.randn(4, 4, generator=torch.Generator().manual_seed(0)) / 2


def choice(x: Tensor) -> Any:
    return torch.cond(x.sum() > 0, lambda x: x @ WEIGHT, lambda x: x.sin() - 1, (x,))


def nested(x: Tensor) -> Any:
    def yes(x: Tensor) -> Tensor:
        return torch.cond(x.max() > 1, lambda x: x.double() * 2, lambda x: x.double() - 1, (x,)).float()

    return torch.cond(x.sum() > 0, yes, lambda x: x * WEIGHT[0], (x,))


def loop(x: Tensor) -> Any:
    start = torch.zeros((), dtype=torch.int64)
    return while_loop(lambda i, x: (i < 5) & (x.abs().max() < 9), lambda i, x: (i + 1, x @ WEIGHT + x), (start, x))


def recurrence(x: Tensor) -> Any:
    def step(state: Tensor, row: Tensor) -> tuple[Tensor, Tensor]:
        state = torch.tanh(state @ WEIGHT + row)
        return state.clone(), state * 2

    return scan(step, torch.zeros(4), x, dim=0)


def rows(x: Tensor) -> Any:
    return along(lambda row: (row @ WEIGHT).relu(), x)


@pytest.mark.parametrize("program", [choice, nested, loop, recurrence, rows])
def test_control_flow_runs_in_the_session(program: Callable[[Tensor], Any]) -> None:
    compiled = fairlead.compile(program, backend="onnxrt", max_fallback=0)
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(1))
    for given in (x, -x, x.abs() / 9, x.abs()):
        torch.testing.assert_close(compiled(given), program(given))


def test_a_body_reads_sizes_of_the_graph_around_it() -> None:
    def program(x: Tensor) -> Any:
        return torch.cond(
            x.sum() > 0, lambda x: (x * x.shape[0]).sum(0).expand(x.shape) + 1, lambda x: (x - 1).flip(0).clone(), (x,)
        )

    compiled = fairlead.compile(program, backend="onnxrt", max_fallback=0, dynamic=True)
    for size in (3, 5):
        x = torch.arange(4.0 * size).view(size, 4)
        for given in (x, -x):
            torch.testing.assert_close(compiled(given), program(given))
