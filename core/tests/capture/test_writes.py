"""What a program writes to its inputs is written after it, at once."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence
from typing import Any

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


def test_weights_are_written_too(written: list[int]) -> None:
    weights = [nn.Parameter(torch.ones(3)) for _ in range(6)]

    @torch.no_grad()
    def doubled() -> Tensor:
        for weight in weights:
            weight.mul_(2)
        return weights[0].sum()

    assert float(fairlead.compile(doubled, backend="eager")()) == 6
    assert written == [6]
    assert all(torch.equal(weight, torch.full((3,), 2.0)) and weight.is_leaf for weight in weights)


def test_autograd_sees_writes_that_are_not_hidden_from_it() -> None:
    graph = torch.fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    for target, number in ((y, 2), (x, 3)):
        graph.call_function(torch.ops.aten.copy_.default, (target, graph.call_function(torch.neg, (target,))))
        graph.call_function(torch.mul, (target, number))
    graph.output((x,))
    writes = _writes.taken_out(torch.fx.GraphModule({}, graph))
    assert writes.targets == (1, 0)
    tensors = [torch.ones(2), torch.ones(2)]
    (given,) = writes.around(lambda args: list(writes.gm(*args)), hidden={1})(list(tensors))
    assert given is tensors[0]
    assert [t.tolist() for t in tensors] == [[-1.0, -1.0]] * 2
    assert [t._version for t in tensors] == [1, 0]


@pytest.mark.filterwarnings("ignore:.*should not be instantiated")
def test_what_a_backward_writes_is_left_to_torch() -> None:
    class Counting(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, count: Tensor) -> Tensor:
            ctx.save_for_backward(count)
            return x.sin()

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
            (count,) = ctx.saved_tensors
            count.add_(1)
            return grad * 2, None

    x, count = torch.ones(3, requires_grad=True), torch.zeros(())
    run = fairlead.compile(lambda x, count: Counting.apply(x, count), backend="eager")
    for _ in range(2):
        run(x, count).sum().backward()
    assert float(count) == 2
    assert torch.equal(x.grad, torch.full((3,), 4.0))


def test_what_a_backend_has_written_itself_is_not_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    monkeypatch.setattr(_writes, "overwrite", lambda targets, sources: counts.append(len(targets)))
    first, second = torch.zeros(2), torch.zeros(2)
    gm = torch.fx.symbolic_trace(lambda x: x)
    for results, expected in (([first, second, first], []), ([first, second + 1, first], [1])):
        counts.clear()
        writes = _writes.Writes(gm, (0, 1))
        assert writes.around(lambda args, results=results: results, ())([first, second]) == [first]
        assert counts == expected
