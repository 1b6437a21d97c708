"""A training step goes to eager where that has it done sooner, which its second call finds out."""

from __future__ import annotations

import gc
import logging
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import fairlead
from fairlead import _second_call
from fairlead._first_call import MeasuredProgram
from fairlead._original import Original
from fairlead._second_call import Step
from fairlead.ir import Kind
from fairlead.registry import registry

from .timed import SIZE, Clock, Timed, Written


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> Iterator[Timed]:
    """Its graphs take as long as eager's, one by one."""
    monkeypatch.setattr(MeasuredProgram, "_compared", lambda *given: {"steady": 1.0, "eager": 1.0})
    torch._dynamo.reset()
    backend = Timed("steady", Clock())
    backend.seconds = lambda graph, inputs: 0.0
    registry.register(backend)
    yield backend
    registry.unregister(backend.name)


def finding(monkeypatch: pytest.MonkeyPatch, mine: float, eager: float) -> list[Sequence[Any]]:
    """Have a comparison find these seconds. The inputs of those that were made."""
    seen: list[Sequence[Any]] = []

    def seconds(step: Step, inputs: Sequence[Any], compiled: Any) -> tuple[float, float]:
        seen.append(inputs)
        return mine, eager

    monkeypatch.setattr(Step, "_seconds_of_both", seconds)
    return seen


def compiled(program: Any) -> Any:
    return fairlead.compile(program, backend="steady", fallback=("eager",))


@pytest.mark.parametrize(("eager", "is_eagers"), [(0.002, True), (0.004, False)], ids=["quicker", "slower"])
def test_a_step_goes_to_eager_where_that_has_it_done_sooner(
    steady: Timed, monkeypatch: pytest.MonkeyPatch, eager: float, is_eagers: bool
) -> None:
    compared = finding(monkeypatch, 0.003, eager)
    module, x = Written(), torch.randn(SIZE)
    run = compiled(module)
    for step in range(4):
        module.zero_grad()
        result = run(x)
        assert (type(result.grad_fn).__name__ == "MulBackward0") is (is_eagers and step > 0)
        result.sum().backward()
        torch.testing.assert_close(module.weight.grad, 2 * x * (x * module.weight.detach()).cos())
        assert float(module.count) == step + 1
        assert len(compared) == min(step, 1)
    graphs = run.fairlead.placement.graphs
    assert {p.backend for g in graphs for p in g.parts} == {"eager" if is_eagers else "steady"}
    reasons = {d.reason for g in graphs for d in g.declines}
    assert reasons == ({"slower than eager here: 3 ms a step beside 2"} if is_eagers else set())


def test_whole_steps_are_run_and_a_caller_sees_one_call(steady: Timed) -> None:
    module, x = nn.Sequential(Written(), nn.Dropout()), torch.randn(SIZE)
    run = compiled(module)
    run(x).sum().backward()
    module.zero_grad()
    steady.runs.clear()
    before = torch.get_rng_state()
    result = run(x)
    after = torch.get_rng_state()
    assert steady.runs.count(Kind.backward) >= 2
    assert steady.runs.count(Kind.forward) - steady.runs.count(Kind.backward) in (0, 1), "the caller's, if not eager's"
    assert module[0].weight.grad is None
    assert x.grad is None
    assert float(module[0].count) == 2.0
    torch.set_rng_state(before)
    module(x)
    assert torch.equal(torch.get_rng_state(), after)
    result.sum().backward()
    assert module[0].weight.grad is not None
    found = len(steady.runs)
    run(x).sum().backward()
    assert len(steady.runs) - found in (0, 2), "it is found out once"


def test_a_step_is_measured_with_its_backward(steady: Timed, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[tuple[float, float]] = []
    measure = Step._seconds_of_both

    def measured(step: Step, inputs: Sequence[Any], way: Any) -> tuple[float, float]:
        found.append(measure(step, inputs, way))
        return found[-1]

    monkeypatch.setattr(Step, "_seconds_of_both", measured)
    layer, x = nn.Linear(1024, 1024), torch.randn(1024, 1024)
    run = compiled(layer)
    for _ in range(3):
        run(x).sum().backward()
    ((mine, eager),) = found
    assert 1 / 3 < mine / eager < 3


@pytest.mark.parametrize(("mine", "eager", "is_eagers"), [(10.0, 10.4, True), (10.0, 10.6, False)])
def test_a_little_quicker_is_not_quick_enough(
    monkeypatch: pytest.MonkeyPatch, mine: float, eager: float, is_eagers: bool
) -> None:
    """A program takes more time around what is compiled than a trial, half a millisecond."""

    def way(x: Tensor) -> Tensor:
        return x

    monkeypatch.setattr(Step, "_seconds", lambda step, each, *given: 1e-3 * (mine if each is way else eager))
    original = Original(lambda x: x)
    step, programs = Step(original), (Leaving(), Leaving())
    for tell, program in zip((step.forward, step.backward), programs, strict=True):
        tell(program, goes=False)
    original.call([torch.ones(1)], way)
    assert original.has_taken_over is is_eagers
    assert [len(p.left) for p in programs] == [int(is_eagers)] * 2


def test_inputs_that_are_one_tensor_stay_one(steady: Timed) -> None:
    def program(x: Tensor, y: Tensor, weight: Tensor) -> Tensor:
        x.add_(1)
        return (y * weight).sin()

    step, weight = Step(Original(program)), torch.ones(4, requires_grad=True)
    x = torch.zeros(4)
    step.original.written = (0, 1)
    copied = step._copied([x, x, weight, 3])
    assert copied[0] is copied[1] is not x
    assert copied[0].data_ptr() != x.data_ptr()
    assert copied[2] is not weight
    assert copied[2].data_ptr() == weight.data_ptr()
    assert copied[2].requires_grad
    assert copied[2].is_leaf
    assert copied[3] == 3


def test_a_comparison_that_fails_leaves_all_as_it_is(
    steady: Timed, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*given: object) -> float:
        raise RuntimeError("no memory")

    monkeypatch.setattr(Step, "_seconds", fails)
    module, x = Written(), torch.randn(SIZE)
    run = compiled(module)
    with caplog.at_level(logging.INFO, "fairlead.benchmark"):
        for _ in range(3):
            run(x).sum().backward()
    assert caplog.messages == ["a step is not tried in eager mode: RuntimeError: no memory"]
    assert {p.backend for g in run.fairlead.placement.graphs for p in g.parts} == {"steady"}


def test_without_gradients_it_is_not_the_time(steady: Timed, monkeypatch: pytest.MonkeyPatch) -> None:
    compared = finding(monkeypatch, 2.0, 1.0)
    module, x = Written(), torch.randn(SIZE)
    original = Original(module.forward)
    step = Step(original)
    step.forward(Leaving(), goes=False)
    step.backward(Leaving(), goes=False)
    with torch.no_grad():
        original.call([x], module)
    assert not compared
    assert original.is_watched
    original.call([x], module)
    assert len(compared) == 1
    assert original.has_taken_over


class Leaving:
    """A program that notes what it is left to eager for."""

    def __init__(self) -> None:
        self.left: list[tuple[float, float]] = []

    def leave(self, mine: float, eager: float) -> None:
        self.left.append((mine, eager))


@pytest.mark.parametrize("goes", [(True, True), (True, False), (False, True)], ids=str)
def test_what_goes_to_eager_in_both_runs_as_it_was_captured(
    monkeypatch: pytest.MonkeyPatch, goes: tuple[bool, bool]
) -> None:
    compared = finding(monkeypatch, 2.0, 1.0)
    original = Original(lambda x: x)
    step, programs = Step(original), (Leaving(), Leaving())
    step.forward(programs[0], goes=goes[0])
    step.backward(programs[1], goes=goes[1])
    assert original.has_taken_over is all(goes)
    original.call([torch.ones(1)], lambda x: x)
    assert original.has_taken_over
    assert len(compared) == (not all(goes))
    assert [p.left for p in programs] == [[] if all(goes) else [(2.0, 1.0)]] * 2


def test_a_backward_alone_says_nothing() -> None:
    original = Original(lambda x: x)
    Step(original).backward(Leaving(), goes=True)
    assert not original.is_watched


def test_nothing_is_compared_in_a_process_that_was_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = finding(monkeypatch, 2.0, 1.0)
    original = Original(lambda x: x)
    step = Step(original)
    step.forward(Leaving(), goes=False)
    step.backward(Leaving(), goes=False)
    monkeypatch.setattr(_second_call, "_parents", [1])
    original.call([torch.ones(1)], lambda x: x)
    assert not compared
    assert not original.is_watched


def test_what_a_checkpoint_computes_again_is_what_it_had_computed(
    steady: Timed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One graph runs both layers. By the time that the first is computed again, the backward of the second is known."""
    compared = finding(monkeypatch, 2.0, 1.0)
    layer, x = nn.Linear(1024, 1024), torch.randn(8, 1024, requires_grad=True)
    run = compiled(layer)

    def twice(layer: Any) -> Tensor:
        y = checkpoint(layer, x, use_reentrant=False)
        result: Tensor = checkpoint(layer, y, use_reentrant=False)
        return result

    for step in range(3):
        layer.zero_grad()
        result = twice(run)
        assert len(compared) == min(step, 1)
        result.sum().backward()
        assert len(compared) == min(step, 1)
        found = layer.weight.grad
        layer.zero_grad()
        twice(layer).sum().backward()
        torch.testing.assert_close(found, layer.weight.grad)
    assert {g.native for g in run.fairlead.placement.graphs} == {0}


def test_inputs_are_let_go_of_after_it(steady: Timed) -> None:
    layer, x = nn.Linear(1024, 1024), torch.randn(8, 1024, requires_grad=True)
    run = compiled(layer)
    for _ in range(2):
        run(x).sum().backward()
    alive = weakref.ref(x)
    del x
    gc.collect()
    assert alive() is None
