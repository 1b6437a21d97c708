"""A graph on the CPU runs in eager mode where that is quicker, which its first call finds out."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import fairlead
from fairlead import _first_call
from fairlead._benchmark import Choice
from fairlead._first_call import MeasuredProgram, is_worth_measuring
from fairlead.backend import API_VERSION, Capabilities, NoOptions, Probe, Support
from fairlead.interpret import to_fx
from fairlead.ir import Builder, DType, Graph, Kind, Node, TensorType
from fairlead.registry import registry

SECONDS = 0.05
"""Eager takes a twentieth of it for `program`."""

SIZE = 2**20


class Slow:
    """Runs everything in torch, and sleeps at each run."""

    name = "slow"
    api_version = API_VERSION
    options_type = NoOptions
    capabilities = Capabilities(devices=("cpu",), dtypes=tuple(DType), training=True, dynamic_shapes=True)

    def __init__(self) -> None:
        self.runs: list[Kind] = []
        self.seconds = SECONDS

    def probe(self) -> Probe:
        return Probe(ok=True)

    def supports(self, node: Node, /) -> Support:
        return Support.yes()

    def compile(self, graph: Graph, options: NoOptions, constants: Mapping[int, Tensor], /) -> Any:
        return Executable(self, graph)


class Executable:
    baked: frozenset[int] = frozenset()
    fresh_outputs = True

    def __init__(self, backend: Slow, graph: Graph) -> None:
        self._backend, self._graph = backend, graph
        self._run = to_fx(graph).forward

    def __call__(self, inputs: Sequence[Any], /) -> Sequence[Tensor]:
        self._backend.runs.append(self._graph.kind)
        time.sleep(self._backend.seconds)
        results: Sequence[Tensor] = self._run(*inputs)
        return results


@pytest.fixture
def slow() -> Iterator[Slow]:
    backend = Slow()
    registry.register(backend)
    torch._dynamo.reset()
    yield backend
    registry.unregister(backend.name)


def program(x: Tensor) -> Tensor:
    return x.sin() * 2


def test_a_graph_that_eager_runs_quicker_is_eagers(slow: Slow, caplog: pytest.LogCaptureFixture) -> None:
    run = fairlead.compile(program, backend="slow", fallback=("eager",))
    x = torch.randn(SIZE)
    with caplog.at_level(logging.INFO, "fairlead.benchmark"):
        torch.testing.assert_close(run(x), program(x))
    assert "graph inference_0 goes to eager: slower than eager here: " in caplog.text
    tried = len(slow.runs)
    torch.testing.assert_close(run(x), program(x))
    assert len(slow.runs) == tried
    placement = run.fairlead.placement
    assert [(g.backend, g.native, [p.backend for p in g.parts]) for g in placement.graphs] == [("slow", 0, ["eager"])]
    (reason,) = {d.reason for d in placement.declines}
    assert re.fullmatch(r"slower than eager here: \S+ ms a call beside \S+", reason)


def longer(x: Tensor) -> Tensor:
    """Of so many nodes as are left to another backend."""
    return x.sin().cos().exp().tanh().abs().neg()


def test_what_another_of_the_cascade_runs_slower_is_eagers_as_well(slow: Slow) -> None:
    declining = Slow()
    declining.name = "declining"
    declining.supports = lambda node: Support.no("nothing")  # type: ignore[method-assign]
    registry.register(declining)
    run = fairlead.compile(longer, backend="declining", fallback=("slow", "eager"))
    x = torch.randn(SIZE)
    torch.testing.assert_close(run(x), longer(x))
    registry.unregister("declining")
    assert slow.runs
    assert {p.backend for g in run.fairlead.placement.graphs for p in g.parts} == {"eager"}
    (reason,) = {d.reason for d in run.fairlead.placement.declines}
    assert reason.startswith("slower than eager here: ")


def test_a_forward_and_its_backward_are_both_found_out(slow: Slow) -> None:
    run = fairlead.compile(program, backend="slow", fallback=("eager",))
    x = torch.randn(SIZE, requires_grad=True)
    run(x).sum().backward()
    torch.testing.assert_close(x.grad, 2 * x.detach().cos())
    assert {g.kind: g.native for g in run.fairlead.placement.graphs} == {Kind.forward: 0, Kind.backward: 0}


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.count += 1
        return x.sin() * self.count


def test_a_program_that_writes_has_written_once(slow: Slow) -> None:
    module = Counting()
    run = fairlead.compile(module, backend="slow", fallback=("eager",))
    x = torch.ones(SIZE)
    torch.testing.assert_close(run(x), x.sin())
    assert float(module.count) == 1.0
    torch.testing.assert_close(run(x), 2 * x.sin())
    assert run.fairlead.placement.native_share == 0.0


def test_a_program_that_draws_has_drawn_once(slow: Slow) -> None:
    def noisy(x: Tensor) -> Tensor:
        return torch.dropout(x, 0.5, True).sin()

    x = torch.ones(SIZE)
    run = fairlead.compile(noisy, backend="slow", fallback=("eager",), rng="eager")
    torch.manual_seed(3)
    expected, after = noisy(x), torch.rand(4)
    torch.manual_seed(3)
    torch.testing.assert_close(run(x), expected)
    assert torch.equal(torch.rand(4), after)
    assert run.fairlead.placement.native_share == 0.0


@pytest.mark.parametrize(
    "how",
    [
        {"benchmark": False},
        {"fallback": ()},
        {"fallback": ("inductor",)},
        {"max_fallback": 0.5},
        {"verify": "first"},
    ],
    ids=str,
)
def test_a_caller_who_says_so_has_the_backend_that_was_asked_for(slow: Slow, how: dict[str, Any]) -> None:
    run = fairlead.compile(program, backend="slow", **{"fallback": ("eager",), **how})
    x = torch.randn(SIZE)
    torch.testing.assert_close(run(x), program(x))
    assert slow.runs == [Kind.inference]
    assert run.fairlead.placement.native_share == 1.0


def test_nothing_is_left_to_eager_where_fallbacks_are_errors(slow: Slow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_STRICT", "1")
    fairlead.compile(program, backend="slow")(torch.randn(SIZE))
    assert slow.runs == [Kind.inference]


def test_a_graph_with_little_work_is_not_tried(slow: Slow) -> None:
    run = fairlead.compile(program, backend="slow", fallback=("eager",))
    run(torch.randn(64))
    assert slow.runs == [Kind.inference]
    assert run.fairlead.placement.native_share == 1.0


def test_a_frozen_program_runs_what_was_chosen(slow: Slow) -> None:
    run = fairlead.compile(program, backend="slow", fallback=("eager",))
    x = torch.randn(SIZE)
    with torch.no_grad():
        run(x)
        tried = len(slow.runs)
        with fairlead.freeze(run):
            torch.testing.assert_close(run(x), program(x))
    assert len(slow.runs) == tried


@pytest.mark.parametrize(("device", "is_measured"), [("cpu", True), ("cuda:0", False)])
def test_a_graph_is_measured_on_a_cpu_alone(device: str, is_measured: bool) -> None:
    type_ = TensorType(DType.f32, (SIZE,), device=device)
    builder = Builder("g", "inference")
    builder.output(builder.op("aten.sin.default", builder.input(type_), to=type_))
    assert is_worth_measuring(builder.graph()) is is_measured


def test_nothing_is_measured_in_a_process_that_was_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_worth_measuring(sine())
    monkeypatch.setattr(_first_call, "_parents", [1])
    assert not is_worth_measuring(sine())


def test_sizes_that_vary_count_as_they_are_in_the_first_call(slow: Slow) -> None:
    little = fairlead.compile(program, backend="slow", fallback=("eager",), dynamic=True)
    little(torch.randn(64))
    assert len(slow.runs) == 1
    torch._dynamo.reset()
    much = fairlead.compile(program, backend="slow", fallback=("eager",), dynamic=True)
    x = torch.randn(SIZE)
    torch.testing.assert_close(much(x), program(x))
    assert [g.native for g in much.fairlead.placement.graphs] == [0]


class Clock:
    """Time that passes where a program says so, and nowhere else."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


class Timed:
    """A program that takes so long, a second more at its first call, and gives its name."""

    def __init__(self, name: str, clock: Clock, seconds: float) -> None:
        self.name = name
        self.seconds = seconds
        self.calls = 0
        self.clock = clock

    def __call__(self, args: list[Any]) -> list[Any]:
        self.clock.now += self.seconds if self.calls else 1.0 + self.seconds
        self.calls += 1
        args.clear()
        return [self.name]

    def bound(self, args: Sequence[Any], places: Sequence[int]) -> Callable[[Sequence[Any]], list[Any]]:
        return lambda inputs: [self.name]

    def refresh(self) -> None:
        raise AssertionError("nobody said that weights changed")


def sine() -> Graph:
    builder = Builder("g", "inference")
    builder.output(builder.op("aten.sin.default", builder.input(f"f32[{SIZE}]"), to=f"f32[{SIZE}]"))
    return builder.graph()


class Trial:
    """A program that is measured beside another, in time that passes as they say."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, asked: float, other: float) -> None:
        clock = Clock()
        monkeypatch.setattr(_first_call, "time", clock)
        self.asked, self.eager = Timed("asked", clock, asked), Timed("eager", clock, other)
        self.choices: list[Choice] = []
        self.run = MeasuredProgram(sine(), "asked", self.asked, lambda: self.eager, self.chosen)

    def chosen(self, choice: Choice) -> Timed:
        self.choices.append(choice)
        return self.eager


@pytest.mark.parametrize(
    ("asked", "other", "goes_to"),
    [(0.02, 0.01, "eager"), (0.0106, 0.01, "eager"), (0.0104, 0.01, "asked"), (0.01, 0.02, "asked")],
)
def test_the_quicker_one_runs_it_where_it_is_by_a_twentieth(
    monkeypatch: pytest.MonkeyPatch, asked: float, other: float, goes_to: str
) -> None:
    trial = Trial(monkeypatch, asked, other)
    assert trial.run([torch.ones(2)]) == [goes_to]
    tried = trial.asked.calls, trial.eager.calls
    assert trial.run([torch.ones(2)]) == [goes_to]
    assert sum(tried) + 1 == trial.asked.calls + trial.eager.calls
    assert [dict(c.milliseconds) for c in trial.choices] == (
        [pytest.approx({"asked": 1e3 * asked, "eager": 1e3 * other})] if goes_to == "eager" else []
    )


def test_a_call_that_is_short_is_not_made_in_eager_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = Trial(monkeypatch, 0.0009, 0.0001)
    assert trial.run([torch.ones(2)]) == ["asked"]
    assert trial.eager.calls == 0


def test_calls_that_take_long_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that compiles, one of the backend's, two of eager's, of which the first may do what is done once; its own."""
    trial = Trial(monkeypatch, 30.0, 60.0)
    assert trial.run([torch.ones(2)]) == ["asked"]
    assert (trial.asked.calls, trial.eager.calls) == (3, 2)


def test_what_eager_cannot_do_stays(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    trial = Trial(monkeypatch, 0.02, 0.01)

    def fails(args: list[Any]) -> list[Any]:
        raise RuntimeError("no memory")

    run = MeasuredProgram(sine(), "asked", trial.asked, lambda: fails, trial.chosen)
    assert run([torch.ones(2)]) == ["asked"]
    assert "graph g is not tried in eager mode: RuntimeError: no memory" in caplog.text
    assert trial.choices == []


def test_what_the_backend_raises_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = Trial(monkeypatch, 0.02, 0.01)

    def fails(args: list[Any]) -> list[Any]:
        raise RuntimeError("no memory")

    monkeypatch.setattr(Timed, "__call__", lambda self, args: fails(args))
    with pytest.raises(RuntimeError, match="no memory"):
        trial.run([torch.ones(2)])


def test_other_threads_do_not_wait_for_the_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = Trial(monkeypatch, 0.02, 0.01)
    inside, go_on = threading.Event(), threading.Event()

    def eager() -> Timed:
        inside.set()
        assert go_on.wait(60)
        return trial.eager

    run = MeasuredProgram(sine(), "asked", trial.asked, eager, trial.chosen)
    thread = threading.Thread(target=run, args=([torch.ones(2)],))
    thread.start()
    assert inside.wait(60)
    assert run([torch.ones(2)]) == ["asked"]
    go_on.set()
    thread.join(60)
    assert run([torch.ones(2)]) == ["eager"]
