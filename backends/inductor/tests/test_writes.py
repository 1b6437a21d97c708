"""Generated code writes buffers itself, where nobody can tell it from writing them after the call."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import fairlead
from fairlead._capture import _writes
from fairlead.errors import RunError
from fairlead.ir import parse_graph
from fairlead_inductor._executable import InductorExecutable
from fairlead_inductor._writes import Writes


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many inputs core had to write, for each call in which there were any."""
    torch._dynamo.reset()
    counts: list[int] = []
    overwrite = _writes.overwrite

    def counted(targets: Sequence[Tensor], sources: Sequence[Tensor]) -> None:
        counts.append(len(targets))
        overwrite(targets, sources)

    monkeypatch.setattr(_writes, "overwrite", counted)
    return counts


class Normalized(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.ReLU())


class Cache(nn.Module):
    """Rows that are exchanged at a place, as by a decoder of text."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(6, 3))

    def forward(self, x: Tensor, place: Tensor) -> Tensor:
        self.rows.index_copy_(0, place, x)
        return self.rows.sum(0) + x


class Turning(nn.Module):
    """Each of two buffers becomes what the other was."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("first", torch.zeros(3))
        self.register_buffer("second", torch.ones(3))

    def forward(self, x: Tensor) -> Tensor:
        before = self.first.clone()
        self.first.copy_(self.second)
        self.second.copy_(before + 1)
        return self.first * x


def assert_like_eager(model: nn.Module, calls: Sequence[Sequence[Tensor]], **how: Any) -> None:
    twin = copy.deepcopy(model)
    compiled = fairlead.compile(model, backend="inductor", fallback=(), **how)
    for args in calls:
        versions = [buffer._version for buffer in model.buffers()]
        mine, theirs = compiled(*args), twin(*args)
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)
        if mine.requires_grad:
            mine.square().sum().backward()
            theirs.square().sum().backward()
        for (name, buffer), other, version in zip(model.named_buffers(), twin.buffers(), versions, strict=True):
            torch.testing.assert_close(buffer, other, rtol=1e-4, atol=1e-5, msg=name)
            assert buffer._version > version, name
    for mine, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-4, atol=1e-4)


def test_running_statistics_are_written_within(left: list[int]) -> None:
    assert_like_eager(Normalized(), [(torch.randn(2, 3, 5, 5),) for _ in range(3)])
    assert left == []


@pytest.mark.parametrize("dynamic", [False, True])
def test_rows_of_a_cache_are_written_within(left: list[int], dynamic: bool) -> None:
    calls = [(torch.randn(n, 3), torch.arange(n) + k) for k, n in enumerate((2, 3, 2))]
    with torch.no_grad():
        assert_like_eager(Cache(), calls, dynamic=dynamic)
    assert left == []


def test_buffers_that_read_one_another_are_written_after_the_call(left: list[int]) -> None:
    with torch.no_grad():
        assert_like_eager(Turning(), [(torch.randn(3),) for _ in range(3)])
    assert left == [2] * 3


def test_what_is_verified_is_compared_with_what_was_there_before() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    assert_like_eager(Normalized(), [(torch.randn(2, 3, 5, 5),) for _ in range(2)], verify="always")


def test_a_program_that_may_have_written_is_not_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    torch._dynamo.reset()
    model = Cache()
    compiled = fairlead.compile(model, backend="inductor")
    place = torch.tensor([0, 1])
    with torch.no_grad():
        compiled(torch.ones(2, 3), place)
        run = InductorExecutable._results

        def failing(self: InductorExecutable, inputs: Sequence[Any]) -> Any:
            run(self, inputs)
            raise OSError("device lost")

        monkeypatch.setattr(InductorExecutable, "_results", failing)
        with pytest.raises(RunError, match="device lost") as caught:
            compiled(torch.ones(2, 3) * 2, place)
    assert "may have communicated, or written or let go of inputs, so no other backend runs it" in caught.value.next
    assert model.rows[:2].eq(2).all()


def test_an_input_that_another_output_shows_is_not_written_within() -> None:
    text = """graph @g inference {
  in %0 buffer "a" : f32[2, 3]
  in %1 buffer "b" : f32[2, 3]
  in %2 buffer "c" : f32[2, 3]
  %3 = aten.exp.default(%0) : f32[2, 3]
  %4 = aten.exp.default(%1) : f32[2, 3]
  %5 = aten.permute.default(%1, [1, 0]) : f32[3, 2] strides[1, 3]
  %6 = aten.exp.default(%0) : f32[2, 3]
  out %3 mutation -> in0
  out %4 mutation -> in1
  out %6 mutation -> in2
  out %5 user
}"""
    graph = parse_graph(text)
    assert dict(Writes(graph).places) == {0: 0}  # of the second another output is a view, the third reads the first
    assert dict(Writes(graph, [1, 2]).places) == {}
