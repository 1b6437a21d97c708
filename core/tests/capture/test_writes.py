"""Inputs that are written on an accelerator at once: here the CPU is one."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor, nn

import fairlead
from fairlead._capture import _writes

from .conftest import Compile


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many inputs were written at once, for each call that did so."""
    counts: list[int] = []

    def overwrite(targets: Sequence[Tensor], sources: Sequence[Tensor]) -> None:
        counts.append(len(targets))
        torch._foreach_copy_(list(targets), list(sources))

    monkeypatch.setattr(_writes, "_DEVICE", "cpu")
    monkeypatch.setattr(_writes, "overwrite", overwrite)
    return counts


def normalizing() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 8), nn.BatchNorm1d(8))


@pytest.mark.parametrize("training", [True, False])
def test_running_statistics_are_eagers_and_their_writes_are_counted(
    program: Compile, written: list[int], training: bool
) -> None:
    model = normalizing()
    twin = copy.deepcopy(model)
    run = program(model)
    for _ in range(3):
        x = torch.randn(6, 4)
        with torch.set_grad_enabled(training):
            mine, theirs = run(x), twin(x)
        torch.testing.assert_close(mine, theirs)
        if training:
            mine.square().sum().backward()
            theirs.square().sum().backward()
    assert written == [6] * 3
    for (name, buffer), other in zip(model.named_buffers(), twin.buffers(), strict=True):
        torch.testing.assert_close(buffer, other, msg=name)
        assert buffer._version >= other._version
    for mine, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad)


def test_inputs_may_be_written_to_each_other(written: list[int]) -> None:
    def rotated(*xs: Tensor) -> Tensor:
        first = xs[0].clone()
        for x, following in itertools.pairwise(xs):
            x.copy_(following)
        xs[-1].copy_(first)
        return first.sum()

    xs = [torch.full((3,), float(k)) for k in range(6)]
    fairlead.compile(rotated, backend="eager")(*xs)
    assert [float(x[0]) for x in xs] == [1, 2, 3, 4, 5, 0]
    assert written == [6]


def test_weights_are_left_to_torch(written: list[int]) -> None:
    weights = [nn.Parameter(torch.ones(3)) for _ in range(6)]

    @torch.no_grad()
    def doubled() -> Tensor:
        for weight in weights:
            weight.mul_(2)
        return weights[0].sum()

    fairlead.compile(doubled, backend="eager")()
    assert not written
    assert all(torch.equal(weight, torch.full((3,), 2.0)) for weight in weights)
