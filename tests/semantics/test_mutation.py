"""What a program writes to its inputs and buffers is written exactly as in eager."""

from __future__ import annotations

import copy

import pytest
import torch

import fairlead

from .nets import Counting


def test_inputs_are_written_in_place(backend: str) -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.add_(y)
        x[0].mul_(2)
        return x * 2

    x, y = torch.randn(3, 4), torch.randn(3, 4)
    mine, theirs = x.clone(), x.clone()
    expected, got = program(theirs, y), fairlead.compile(program, backend=backend)(mine, y)
    torch.testing.assert_close(got, expected)
    torch.testing.assert_close(mine, theirs)


def test_a_written_view_writes_its_base(backend: str) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        x.t()[1].fill_(5)
        return x.sum()

    mine, theirs = torch.zeros(3, 4), torch.zeros(3, 4)
    assert fairlead.compile(program, backend=backend)(mine).item() == program(theirs).item()
    assert torch.equal(mine, theirs)


@pytest.mark.parametrize("training", [False, True])
def test_buffers_are_updated_at_every_call(backend: str, training: bool) -> None:
    model = Counting().train(training)
    reference = copy.deepcopy(model)
    compiled = fairlead.compile(model, backend=backend)
    with torch.no_grad():
        for _ in range(3):
            x = torch.randn(6, 8)
            torch.testing.assert_close(compiled(x), reference(x))
    assert model.calls.item() == 3
    for mine, theirs in zip(model.buffers(), reference.buffers(), strict=True):
        torch.testing.assert_close(mine, theirs)
