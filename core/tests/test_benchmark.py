"""``benchmark=True``: a graph runs on the backend that its first calls found quickest."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import fairlead
from fairlead import _benchmark
from fairlead._arguments import request_of
from fairlead._benchmark import ROUNDS, WARM
from fairlead.backend import API_VERSION, Capabilities, NoOptions, Probe, Support
from fairlead.errors import ArgumentError
from fairlead.interpret import to_fx
from fairlead.ir import DType, Graph, Kind, Node
from fairlead.registry import registry

TRIED = 2 * (WARM + ROUNDS)
"""So many calls two backends are tried for."""


class Clock:
    """Time that passes where a backend says so, and nowhere else."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


class Timed:
    """Runs everything in torch, in the time that it says, and takes note of each run."""

    api_version = API_VERSION
    options_type = NoOptions
    capabilities = Capabilities(devices=("cpu",), dtypes=tuple(DType), training=True, dynamic_shapes=True)

    def __init__(self, name: str, clock: Clock) -> None:
        self.name = name
        self.clock = clock
        self.seconds: Callable[[Graph, Sequence[Any]], float] = lambda graph, inputs: 1.0
        self.runs: list[Kind] = []
        self.fails = False

    def probe(self) -> Probe:
        return Probe(ok=True)

    def supports(self, node: Node, /) -> Support:
        return Support.yes()

    def compile(self, graph: Graph, options: NoOptions, constants: Mapping[int, Tensor], /) -> Any:
        return Executable(self, graph)


class Executable:
    baked: frozenset[int] = frozenset()
    fresh_outputs = True

    def __init__(self, backend: Timed, graph: Graph) -> None:
        self._backend, self._graph = backend, graph
        self._run = to_fx(graph).forward

    def __call__(self, inputs: Sequence[Any], /) -> Sequence[Tensor]:
        if self._backend.fails:
            raise torch.OutOfMemoryError(f"no memory for {self._backend.name}")
        self._backend.runs.append(self._graph.kind)
        self._backend.clock.now += self._backend.seconds(self._graph, inputs)
        results: Sequence[Tensor] = self._run(*inputs)
        return results


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
