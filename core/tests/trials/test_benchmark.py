"""``benchmark``: a graph runs on the backend that its first calls find quickest; left out, in eager mode if that is."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import fairlead
from fairlead import _benchmark, _first_call, _second_call
from fairlead._arguments import request_of
from fairlead._benchmark import ROUNDS, WARM, Choice
from fairlead._first_call import MeasuredProgram, is_worth_measuring
from fairlead.backend import Support
from fairlead.errors import ArgumentError
from fairlead.ir import Builder, DType, Graph, Kind, Node, TensorType
from fairlead.registry import registry

from .timed import SIZE, Clock, Timed, Written

TRIED = 2 * (WARM + ROUNDS)
"""So many calls two backends are tried for."""


@pytest.fixture
def backends(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Timed, Timed]]:
    clock = Clock()
    monkeypatch.setattr(_benchmark, "time", clock)
    made = Timed("first", clock), Timed("second", clock)
    for each in made:
        registry.register(each)
    yield made
    for each in made:
        registry.unregister(each.name)


def compiled(function: Any, **how: Any) -> Any:
    torch._dynamo.reset()
    return fairlead.compile(function, backend="first", fallback=("second",), benchmark=True, **how)


def program(x: Tensor) -> Tensor:
    return x.sin() * 2


def call(run: Any, count: int) -> None:
    for _ in range(count):
        x = torch.randn(4)
        torch.testing.assert_close(run(x), program(x))


def test_a_graph_goes_to_the_quickest_backend(backends: tuple[Timed, Timed], caplog: pytest.LogCaptureFixture) -> None:
    first, second = backends
    first.seconds = lambda graph, inputs: 0.012
    second.seconds = lambda graph, inputs: 0.008
    run = compiled(program)
    with caplog.at_level(logging.INFO, "fairlead.benchmark"):
        call(run, TRIED)
    assert "goes to 'second'; milliseconds a call: first 12, second 8" in caplog.text
    assert len(first.runs) == len(second.runs) == WARM + ROUNDS
    call(run, 3)
    assert (len(first.runs), len(second.runs)) == (WARM + ROUNDS, WARM + ROUNDS + 3)
    placement = run.fairlead.placement
    assert placement.native_share == 0.0
    assert {d.reason for d in placement.declines} == {"slower than second here: 12 ms a call beside 8"}
    assert [(g.name, g.backend) for g in placement.graphs] == [("inference_0", "first")]
    assert {p.backend for g in placement.graphs for p in g.parts} == {"second"}


@pytest.mark.parametrize("other", [0.0098, 0.012])
def test_the_backend_that_was_asked_for_stays_where_no_other_is_clearly_quicker(
    backends: tuple[Timed, Timed], other: float
) -> None:
    first, second = backends
    first.seconds, second.seconds = (lambda graph, inputs: 0.01), (lambda graph, inputs: other)
    run = compiled(program)
    call(run, TRIED + 3)
    assert (len(first.runs), len(second.runs)) == (WARM + ROUNDS + 3, WARM + ROUNDS)
    assert run.fairlead.placement.native_share == 1.0


def test_calls_in_which_a_backend_compiles_do_not_count(backends: tuple[Timed, Timed]) -> None:
    first, second = backends
    first.seconds = lambda graph, inputs: 60.0 if len(first.runs) <= WARM else 0.01
    second.seconds = lambda graph, inputs: 0.02
    run = compiled(program)
    call(run, TRIED + 1)
    assert run.fairlead.placement.native_share == 1.0


def test_where_sizes_vary_a_time_is_held_against_the_work(backends: tuple[Timed, Timed]) -> None:
    first, second = backends
    first.seconds = lambda graph, inputs: 2e-6 * max(x.numel() for x in inputs if isinstance(x, Tensor))
    second.seconds = lambda graph, inputs: 1e-6 * max(x.numel() for x in inputs if isinstance(x, Tensor))
    run = compiled(program, dynamic=True)
    for k in range(TRIED):
        x = torch.randn(1000 if k % 2 == 0 else 4000)  # whose turn it is gets the larger ones
        torch.testing.assert_close(run(x), program(x))
    call(run, 1)
    assert second.runs[-1] is Kind.inference
    assert len(second.runs) == WARM + ROUNDS + 1


def test_a_backward_is_tried_out_once_its_forward_is(backends: tuple[Timed, Timed]) -> None:
    first, second = backends
    first.seconds = lambda graph, inputs: 0.01 if graph.kind is Kind.forward else 0.03
    second.seconds = lambda graph, inputs: 0.02
    run = compiled(program)
    for _ in range(2 * TRIED + 2):
        x = torch.randn(4, requires_grad=True)
        run(x).sum().backward()
        torch.testing.assert_close(x.grad, 2 * x.detach().cos())
    assert second.runs.index(Kind.backward) == WARM + ROUNDS, "all of the forward's turns are before it"
    assert [len([k for k in second.runs if k is kind]) for kind in (Kind.forward, Kind.backward)] == [
        WARM + ROUNDS,
        WARM + ROUNDS + 3,
    ]
    reasons = {g.name: {d.reason for d in g.declines} for g in run.fairlead.placement.graphs}
    assert reasons["forward_0"] == set()
    assert reasons["backward_1"] == {"slower than second here: 30 ms a call beside 20"}


def test_a_graph_that_is_not_called_any_more_keeps_no_other_waiting(backends: tuple[Timed, Timed]) -> None:
    first, second = backends
    first.seconds, second.seconds = (lambda graph, inputs: 0.02), (lambda graph, inputs: 0.01)
    run = compiled(program, dynamic=False)
    run(torch.randn(7))
    call(run, TRIED + 20)
    assert [g.native for g in run.fairlead.placement.graphs] == [2, 0]


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.count += 1
        return x * self.count


def test_each_call_is_made_once(backends: tuple[Timed, Timed]) -> None:
    run = compiled(Counting())
    x = torch.ones(3)
    found = [float(run(x)[0]) for _ in range(TRIED + 2)]
    assert found == [float(k + 1) for k in range(TRIED + 2)]


def test_a_backend_that_fails_meanwhile_is_out(backends: tuple[Timed, Timed], caplog: pytest.LogCaptureFixture) -> None:
    first, second = backends
    second.fails = True
    run = compiled(program)
    call(run, TRIED)
    assert len(first.runs) == TRIED
    assert "second is not tried further: OutOfMemoryError: no memory for second" in caplog.text
    assert run.fairlead.placement.native_share == 1.0


def test_what_the_backend_that_was_asked_for_raises_is_raised(backends: tuple[Timed, Timed]) -> None:
    backends[0].fails = True
    with pytest.raises(torch.OutOfMemoryError, match="no memory for first"):
        compiled(program)(torch.ones(4))


def test_a_frozen_program_tries_nothing(backends: tuple[Timed, Timed]) -> None:
    _, second = backends
    run = compiled(program)
    with torch.no_grad():
        call(run, 1)
        with fairlead.freeze(run):
            call(run, 5)
        assert not second.runs
        call(run, TRIED)
    assert second.runs


def only_sines(node: Node) -> Support:
    return Support.yes() if "sin" in node.op else Support.no("no sine")


def longer(x: Tensor) -> Tensor:
    return x.sin().cos().exp().tanh().abs().neg()


def test_what_the_quicker_backend_leaves_to_others_is_told_as_well(backends: tuple[Timed, Timed]) -> None:
    first, second = backends
    third = Timed("third", first.clock)
    registry.register(third)
    second.supports = only_sines  # type: ignore[method-assign]
    first.seconds, second.seconds = (lambda graph, inputs: 0.1), (lambda graph, inputs: 0.001)
    third.seconds = lambda graph, inputs: 0.01 * len(graph.nodes)
    torch._dynamo.reset()
    run = fairlead.compile(longer, backend="first", fallback=("second", "third"), benchmark=True)
    for _ in range(3 * (WARM + ROUNDS) + 1):
        x = torch.randn(4)
        torch.testing.assert_close(run(x), longer(x))
    registry.unregister("third")
    told = {d.op: (d.backend, d.reason) for d in run.fairlead.placement.declines}
    assert told["aten.sin.default"] == ("second", "slower than second here: 100 ms a call beside 51")
    assert told["aten.exp.default"] == ("third", "no sine")


def test_a_backend_that_cannot_have_the_graph_is_not_tried(backends: tuple[Timed, Timed]) -> None:
    """Nobody in the cascade takes what it declines."""
    first, second = backends
    second.supports = only_sines  # type: ignore[method-assign]
    run = compiled(program)
    call(run, TRIED)
    assert (len(first.runs), second.runs) == (TRIED, [])


def test_other_threads_do_not_wait_for_a_trial(backends: tuple[Timed, Timed]) -> None:
    first, second = backends
    inside, go_on = threading.Event(), threading.Event()

    def slow(graph: Graph, inputs: Sequence[Any]) -> float:
        inside.set()
        assert go_on.wait(60)
        return 1.0

    run = compiled(program)
    call(run, 1)
    second.seconds = slow
    thread = threading.Thread(target=call, args=(run, 1))
    thread.start()
    assert inside.wait(60)
    call(run, 3)
    assert len(first.runs) == 4
    go_on.set()
    thread.join(60)


def test_a_graph_that_the_backend_declines_is_not_tried(backends: tuple[Timed, Timed]) -> None:
    first, second = backends
    first.supports = lambda node: Support.no("nothing")  # type: ignore[method-assign]
    run = compiled(program)
    call(run, TRIED)
    assert (first.runs, second.runs) == ([], []), "so few nodes are eager's"
    assert {d.reason for d in run.fairlead.placement.declines} == {"nothing"}


@pytest.mark.parametrize(
    ("how", "what"),
    [
        ({"benchmark": "yes"}, "benchmark is 'yes'"),
        ({"benchmark": True, "fallback": ()}, "benchmark has no other backend to compare with"),
        (
            {"benchmark": True, "max_fallback": 0.5},
            "benchmark may leave a whole graph to another backend, and max_fallback is 0.5",
        ),
    ],
)
def test_arguments_that_do_not_fit_are_named(how: dict[str, Any], what: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        request_of("eager", None, how)
    assert caught.value.what == what


SECONDS = 0.05


def asleep(graph: Graph, inputs: Sequence[Any]) -> float:
    time.sleep(SECONDS)
    return 0.0


@pytest.fixture
def slow() -> Iterator[Timed]:
    """One that takes real time, twenty times as long as eager for `program`."""
    backend = Timed("slow", Clock())
    backend.seconds = asleep
    registry.register(backend)
    torch._dynamo.reset()
    yield backend
    registry.unregister(backend.name)


def test_a_graph_that_eager_runs_quicker_is_eagers(slow: Timed, caplog: pytest.LogCaptureFixture) -> None:
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


def test_what_another_of_the_cascade_runs_slower_is_eagers_as_well(slow: Timed) -> None:
    declining = Timed("declining", slow.clock)
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


def test_a_forward_and_its_backward_are_both_found_out(slow: Timed) -> None:
    run = fairlead.compile(program, backend="slow", fallback=("eager",))
    x = torch.randn(SIZE, requires_grad=True)
    run(x).sum().backward()
    torch.testing.assert_close(x.grad, 2 * x.detach().cos())
    assert {g.kind: g.native for g in run.fairlead.placement.graphs} == {Kind.forward: 0, Kind.backward: 0}


def test_a_program_that_writes_has_written_once(slow: Timed) -> None:
    module = Counting()
    run = fairlead.compile(module, backend="slow", fallback=("eager",))
    x = torch.ones(SIZE)
    torch.testing.assert_close(run(x), x)
    assert float(module.count) == 1.0
    torch.testing.assert_close(run(x), 2 * x)
    assert run.fairlead.placement.native_share == 0.0


def test_a_program_that_draws_has_drawn_once(slow: Timed) -> None:
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


def test_what_a_program_draws_and_does_not_use_is_drawn_once(slow: Timed) -> None:
    """AOTAutograd leaves it out, and what is compiled does not draw it; eager does."""

    def wasteful(x: Tensor) -> Tensor:
        torch.rand_like(x)
        return program(x)

    run = fairlead.compile(wasteful, backend="slow", fallback=("eager",))
    x, before = torch.randn(SIZE), torch.get_rng_state()
    run(x)
    assert torch.equal(torch.get_rng_state(), before)


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
def test_a_caller_who_says_so_has_the_backend_that_was_asked_for(slow: Timed, how: dict[str, Any]) -> None:
    run = fairlead.compile(program, backend="slow", **{"fallback": ("eager",), **how})
    x = torch.randn(SIZE)
    torch.testing.assert_close(run(x), program(x))
    assert slow.runs == [Kind.inference]
    assert run.fairlead.placement.native_share == 1.0


def test_nothing_is_left_to_eager_where_fallbacks_are_errors(slow: Timed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_STRICT", "1")
    fairlead.compile(program, backend="slow")(torch.randn(SIZE))
    assert slow.runs == [Kind.inference]


def test_a_graph_with_little_work_is_not_tried(slow: Timed) -> None:
    run = fairlead.compile(program, backend="slow", fallback=("eager",))
    run(torch.randn(64))
    assert slow.runs == [Kind.inference]
    assert run.fairlead.placement.native_share == 1.0


def test_a_frozen_program_runs_what_was_chosen(slow: Timed) -> None:
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
    monkeypatch.setattr(_second_call, "_parents", [1])
    assert not is_worth_measuring(sine())


def test_sizes_that_vary_count_as_they_are_in_the_first_call(slow: Timed) -> None:
    little = fairlead.compile(program, backend="slow", fallback=("eager",), dynamic=True)
    little(torch.randn(64))
    assert len(slow.runs) == 1
    torch._dynamo.reset()
    much = fairlead.compile(program, backend="slow", fallback=("eager",), dynamic=True)
    x = torch.randn(SIZE)
    torch.testing.assert_close(much(x), program(x))
    assert [g.native for g in much.fairlead.placement.graphs] == [0]


def ops_of(call: Callable[[], object]) -> list[str]:
    """The names of the ops of ATen that run."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], acc_events=True) as profile:
        call()
    return [e.name for e in profile.events() if e.name.startswith("aten::")]


def test_eager_runs_what_the_program_says_not_what_it_was_taken_apart_to(slow: Timed) -> None:
    module, x = Written(), torch.randn(SIZE)
    run = fairlead.compile(module, backend="slow", fallback=("eager",))
    with torch.no_grad():
        run(x)
        assert float(module.count) == 1.0
        assert ops_of(lambda: run(x)) == ops_of(lambda: module(x))
        assert float(module.count) == 3.0
        torch.testing.assert_close(run(x), (x * module.weight).sin() * 2)


@pytest.mark.parametrize("weights", ["watched", "constant"])
def test_a_frozen_program_runs_it_too(slow: Timed, weights: Any) -> None:
    module, x = nn.Linear(1024, 1024), torch.randn(8, 1024)
    run = fairlead.compile(module, backend="slow", fallback=("eager",))
    with torch.no_grad():
        run(x)
        tried = len(slow.runs)
        with fairlead.freeze(run, weights=weights):
            for _ in range(3):
                assert torch.equal(run(x), module(x))
            assert ops_of(lambda: run(x)) == ops_of(lambda: module(x))
    assert len(slow.runs) == tried


def test_what_stands_for_something_else_does_not_run_as_captured(slow: Timed) -> None:
    layer = nn.Linear(1024, 1024)

    def checkpointed(x: Tensor) -> Tensor:
        return checkpoint(layer, x, use_reentrant=False).sin()

    run = fairlead.compile(checkpointed, backend="slow", fallback=("eager",))
    x = torch.randn(8, 1024, requires_grad=True)
    for _ in range(2):
        result = run(x)
        assert type(result.grad_fn).__name__ == "CompiledFunctionBackward"
        torch.testing.assert_close(result, checkpointed(x))
        result.sum().backward()


def test_a_checkpoint_around_it_saves_what_one_step_does(slow: Timed) -> None:
    layer, x = nn.Linear(1024, 1024), torch.randn(8, 1024, requires_grad=True)
    run = fairlead.compile(layer, backend="slow", fallback=("eager",))
    for step in range(3):
        layer.zero_grad()
        checkpoint(run, x, use_reentrant=False).sin().sum().backward()
        found = layer.weight.grad
        layer.zero_grad()
        layer(x).sin().sum().backward()
        torch.testing.assert_close(found, layer.weight.grad, msg=f"step {step}")
    assert {g.native for g in run.fairlead.placement.graphs} == {0}


def test_no_mode_sees_a_trial(slow: Timed) -> None:
    """AOTAutograd has one on in a first call, from torch 2.13 on, in which each op takes eager longer."""
    seen: list[int] = []

    def seconds(graph: Graph, inputs: Sequence[Any]) -> float:
        seen.append(torch._C._len_torch_dispatch_stack())
        return asleep(graph, inputs)

    slow.seconds = seconds
    fairlead.compile(program, backend="slow", fallback=("eager",))(torch.randn(SIZE))
    assert set(seen) == {0}
    assert len(seen) > 2


def test_under_autocast_it_is_taken_apart(slow: Timed) -> None:
    layer, x = nn.Linear(1024, 1024), torch.randn(8, 1024)
    run = fairlead.compile(layer, backend="slow", fallback=("eager",))
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        for _ in range(2):
            assert torch.equal(run(x), layer(x))
    assert run.fairlead.placement.native_share == 0.0


@pytest.mark.skipif(torch.__version__ < "2.9", reason="Dynamo writes the scan out since torch 2.9")
def test_a_recurrence_that_eager_takes_over_is_in_order(slow: Timed) -> None:
    """Dynamo's graph of it is a tree, which takes eager longer than the program that is not traced."""
    from torch._higher_order_ops.associative_scan import associative_scan

    def combined(left: Any, right: Any) -> Any:
        return left[0] * right[0], right[0] * left[1] + right[1]

    def scanned(factors: Tensor, summands: Tensor) -> Tensor:
        given: Any = factors, summands
        results: Any = associative_scan(combined, given, dim=0, combine_mode="generic")
        return cast("Tensor", results[1])

    factors, summands = torch.rand(4, 2**18), torch.rand(4, 2**18)
    run: Any = fairlead.compile(scanned, backend="slow", fallback=("eager",))
    with torch.no_grad():
        run(factors, summands)
        ops = ops_of(lambda: run(factors, summands))
        y = summands[0]
        for t in range(1, 4):
            y = factors[t] * y + summands[t]
        assert torch.equal(run(factors, summands)[3], y)
    assert run.fairlead.placement.native_share == 0.0
    assert (ops.count("aten::mul"), ops.count("aten::add")) == (3, 3)


class TimedProgram:
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


def sine(kind: Kind = Kind.inference) -> Graph:
    builder = Builder("g", kind)
    builder.output(builder.op("aten.sin.default", builder.input(f"f32[{SIZE}]"), to=f"f32[{SIZE}]"))
    return builder.graph()


class Trial:
    """A program that is measured beside another, in time that passes as they say."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, asked: float, other: float) -> None:
        clock = Clock()
        monkeypatch.setattr(_first_call, "time", clock)
        self.asked, self.eager = TimedProgram("asked", clock, asked), TimedProgram("eager", clock, other)
        self.choices: list[Choice] = []
        self.run = MeasuredProgram(sine(), "asked", self.asked, lambda: self.eager, self.chosen)

    def chosen(self, choice: Choice) -> TimedProgram:
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


def test_in_training_a_program_comes_after_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads of a loss or of an update are still about, which takes a backend with threads of its own longer."""
    trial = Trial(monkeypatch, 0.02, 0.019)
    order: list[str] = []
    clock = trial.asked.clock

    def asked(args: list[Any]) -> list[str]:
        clock.now += 0.02 + 0.004 * (order[-1:] == ["eager"])
        order.append("asked")
        return ["asked"]

    def eager(args: list[Any]) -> list[str]:
        order.append("eager")
        clock.now += 0.02
        return ["eager"]

    monkeypatch.setattr(trial, "eager", eager)
    for kind, goes_to in ((Kind.inference, "asked"), (Kind.forward, "eager")):
        run = MeasuredProgram(sine(kind), "asked", cast(Any, asked), lambda: eager, trial.chosen)
        assert run([torch.ones(2)]) == [goes_to]


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

    monkeypatch.setattr(TimedProgram, "__call__", lambda self, args: fails(args))
    with pytest.raises(RuntimeError, match="no memory"):
        trial.run([torch.ones(2)])


def test_other_threads_do_not_wait_for_the_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = Trial(monkeypatch, 0.02, 0.01)
    inside, go_on = threading.Event(), threading.Event()

    def eager() -> TimedProgram:
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
