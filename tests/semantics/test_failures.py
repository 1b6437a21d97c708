"""Backends that fail: three lines say what, where and what next; and the call succeeds where fallback allows it."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed._functional_collectives import all_reduce
from torch.nn.attention.flex_attention import flex_attention

import fairlead
from fairlead import ir
from fairlead.backend import API_VERSION, Capabilities, Executable, NoOptions, Options, Probe, Support
from fairlead.errors import (
    CompileError,
    DeviceError,
    FairleadError,
    FallbackBudgetError,
    ResultError,
    RunError,
    SupportsError,
)
from fairlead.interpret import to_fx
from fairlead.ir import Graph, Node
from fairlead.registry import registry


class Levels(Options, frozen=True, kw_only=True):
    level: int = 1
    name: str = ""


class Faulty:
    """A backend that runs everything in torch, with one fault."""

    name = "faulty"
    api_version = API_VERSION
    options_type: type[Options] = NoOptions

    def __init__(self, **changes: Any) -> None:
        self.options_type = changes.pop("options_type", self.options_type)
        self.capabilities = Capabilities(
            devices=changes.pop("devices", ("cpu",)), dtypes=tuple(ir.DType), training=True, dynamic_shapes=True
        )
        self.on_supports: Callable[[Node], Support] = changes.pop("on_supports", lambda node: Support.yes())
        self.on_compile: Callable[[], None] = changes.pop("on_compile", lambda: None)
        self.on_run: Callable[[int, list[torch.Tensor]], Sequence[Any]] = changes.pop("on_run", lambda n, out: out)
        assert not changes

    def probe(self) -> Probe:
        return Probe(ok=True)

    def supports(self, node: Node, /) -> Support:
        return self.on_supports(node)

    def compile(self, graph: Graph, options: Options, constants: Mapping[int, torch.Tensor], /) -> Executable:
        self.on_compile()
        return _Executable(graph, self.on_run)


class _Executable:
    baked: frozenset[int] = frozenset()
    fresh_outputs = True

    def __init__(self, graph: Graph, on_run: Callable[[int, list[torch.Tensor]], Sequence[Any]]) -> None:
        self._module = to_fx(graph)
        self._on_run = on_run
        self._calls = 0

    def __call__(self, inputs: Sequence[Any], /) -> Sequence[Any]:
        self._calls += 1
        return self._on_run(self._calls, list(self._module(*inputs)))


@pytest.fixture(autouse=True)
def _unregister() -> Iterator[None]:
    yield
    if "faulty" in registry.names():
        registry.unregister("faulty")


def _program(x: torch.Tensor) -> torch.Tensor:
    return (x.sin() + 1).relu()


def _compiled(backend: Faulty, **arguments: Any) -> Any:
    registry.register(backend)
    return fairlead.compile(_program, backend="faulty", **arguments)


def _fails_and_falls_back(backend: Faulty, error: type[FairleadError], what: str) -> FairleadError:
    """The call raises ``error`` without fallback, and gives eager's result with it. Returns the error."""
    x = torch.randn(4)
    with pytest.raises(error, match=what) as caught:
        _compiled(backend, fallback=())(x)
    lines = str(caught.value).splitlines()
    starts = (f"{error.code}: ", "  from: ", "  next: ")
    assert len(lines) == 3
    assert all(line.startswith(start) for line, start in zip(lines, starts, strict=True))
    torch._dynamo.reset()
    torch.testing.assert_close(fairlead.compile(_program, backend="faulty", fallback=("eager",))(x), _program(x))
    return caught.value


def _raise(error: Exception) -> Any:
    raise error


def test_a_backend_that_raises_in_supports() -> None:
    backend = Faulty(on_supports=lambda node: _raise(KeyError("no such table")))
    error = _fails_and_falls_back(backend, SupportsError, r"raised KeyError: 'no such table' when asked about `%\d")
    assert "test_failures.py" in error.where


def test_a_backend_that_raises_in_compile_leaves_a_file_that_replays_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLEAD_DEBUG", str(tmp_path))
    backend = Faulty(on_compile=lambda: _raise(RuntimeError("internal\n  compiler error")))
    error = _fails_and_falls_back(
        backend, CompileError, "raised RuntimeError: internal compiler error while compiling 3"
    )
    (path,) = tmp_path.glob("*.fir")
    assert f"fairlead replay {path} --backend faulty" in error.next
    assert [n.op for n in ir.read(path).graph.nodes] == ["aten.sin.default", "aten.add.Tensor", "aten.relu.default"]


def test_the_command_that_shows_a_failure_has_the_options_of_the_backend_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLEAD_DEBUG", str(tmp_path))
    backend = Faulty(on_compile=lambda: _raise(RuntimeError("no level")), options_type=Levels)
    with pytest.raises(CompileError) as caught:
        _compiled(backend, options={"level": 3, "name": "a b"}, fallback=())(torch.randn(4))
    assert "--backend faulty --option level=3 --option 'name=a b'` shows it again" in caught.value.next


def test_a_backend_that_raises_on_the_third_call(caplog: pytest.LogCaptureFixture) -> None:
    def on_run(call: int, out: list[torch.Tensor]) -> list[torch.Tensor]:
        return out if call < 3 else _raise(OSError("device lost"))

    registry.register(Faulty(on_run=on_run))
    x = torch.randn(4)
    strict = fairlead.compile(_program, backend="faulty", fallback=())
    strict(x)
    strict(x)
    with pytest.raises(RunError, match="raised OSError: device lost while running 3 nodes"):
        strict(x)
    torch._dynamo.reset()
    lenient = fairlead.compile(_program, backend="faulty", fallback=("eager",))
    with caplog.at_level(logging.WARNING, "fairlead"):
        for _ in range(4):
            torch.testing.assert_close(lenient(x), _program(x))
    assert caplog.text.count("device lost") == 1
    (graph,) = lenient.fairlead.placement.graphs
    assert graph.parts[0].backend == "eager"
    assert "faulty failed while running: OSError: device lost" in graph.parts[0].note


def test_inputs_that_no_backend_takes_leave_the_backend_its_part(caplog: pytest.LogCaptureFixture) -> None:
    registry.register(Faulty(on_run=lambda call, results: results))
    table = torch.randn(8, 4)
    run = fairlead.compile(lambda at: table[at] + 1, backend="faulty", fallback=("eager",))
    right, wrong = torch.tensor([1, -8]), torch.tensor([1, 8])
    for _ in range(2):
        torch.testing.assert_close(run(right), table[right] + 1)
        with pytest.raises(IndexError), caplog.at_level(logging.WARNING, "fairlead"):
            run(wrong)
        assert "eager failed as well, so 'faulty' keeps the Part: IndexError" in caplog.text
        (graph,) = run.fairlead.placement.graphs
        assert [(part.backend, part.note) for part in graph.parts] == [("faulty", "")]


def test_where_numbers_are_refused_the_message_leads_to_the_inputs() -> None:
    registry.register(Faulty(on_run=lambda call, results: _raise(IndexError("an index is out of range"))))
    with pytest.raises(RunError) as caught:
        fairlead.compile(_program, backend="faulty", fallback=())(torch.randn(4))
    assert caught.value.next is not None
    assert caught.value.next.startswith("correct the inputs, where eager mode refuses them as well, or report it")


def test_a_call_that_fails_has_written_nothing() -> None:
    registry.register(Faulty(on_run=lambda call, results: results if call < 2 else _raise(ValueError("out of order"))))
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8))
    x = torch.randn(6, 4)
    strict = fairlead.compile(model, backend="faulty", fallback=())
    strict(x)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    with pytest.raises(RunError, match="out of order"):
        strict(x)
    for name, value in model.state_dict().items():
        assert torch.equal(value, state[name]), name


def test_a_part_that_has_communicated_is_not_run_again() -> None:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    registry.register(Faulty(on_run=lambda call, out: _raise(OSError("device lost"))))
    try:
        total = fairlead.compile(lambda x: all_reduce(x.sin(), "sum", dist.group.WORLD), backend="faulty")
        with pytest.raises(RunError, match="raised OSError: device lost while running 3 nodes"):
            total(torch.randn(4))
    finally:
        dist.destroy_process_group()


def test_out_of_memory_keeps_its_type_and_says_what_was_running() -> None:
    program = _compiled(Faulty(on_run=lambda n, out: _raise(torch.OutOfMemoryError("CUDA out of memory"))))
    with pytest.raises(torch.OutOfMemoryError) as caught:
        program(torch.randn(4))
    (note,) = caught.value.__notes__
    assert "while running 3 nodes of graph inference_0" in note
    assert "backend 'faulty'" in note
    assert "_program" in note


def test_what_runs_out_of_memory_while_it_compiles_is_run_by_the_next(caplog: pytest.LogCaptureFixture) -> None:
    def on_compile() -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    x = torch.randn(4)
    with caplog.at_level(logging.WARNING, "fairlead"):
        torch.testing.assert_close(_compiled(Faulty(on_compile=on_compile), fallback=("eager",))(x), _program(x))
    assert "raised OutOfMemoryError: CUDA out of memory while compiling 3 nodes" in caplog.text


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda n, out: [], "returned 0 results, not 1"),
        (lambda n, out: [out[0][:2]], r"result 0 has shape \[2\], not \[4\]"),
        (lambda n, out: [out[0].double()], "result 0 has dtype torch.float64, not torch.float32"),
        (lambda n, out: [out[0].to("meta")], "result 0 is on meta, not cpu"),
    ],
)
def test_a_backend_that_returns_something_else_than_declared(
    change: Callable[[int, list[torch.Tensor]], Sequence[Any]], what: str
) -> None:
    _fails_and_falls_back(Faulty(on_run=change), ResultError, what)


def test_tensors_on_a_device_that_the_backend_cannot_use() -> None:
    backend = Faulty(devices=("cuda",))
    error = _fails_and_falls_back(backend, DeviceError, "cannot use tensors on cpu")
    assert "runs on: cuda" in error.where


def test_what_is_declined_is_over_a_budget_of_zero(tmp_path: Path) -> None:
    backend = Faulty(on_supports=lambda n: Support.no("no relu here") if "relu" in n.op else Support.yes())
    error = _fails_and_falls_back(backend, FallbackBudgetError, "declined 1 of 3 nodes and no fallback takes them")
    assert re.search(r"aten\.relu\.default x1 at .*test_failures\.py:\d+ in _program: no relu here", error.what)
    torch._dynamo.reset()
    with pytest.raises(FallbackBudgetError, match="max_fallback=0 allows less"):
        fairlead.compile(_program, backend="faulty", max_fallback=0)(torch.randn(4))


@pytest.mark.parametrize(("budget", "fits"), [(1, True), (0, False), (0.5, True), (0.1, False)])
def test_the_budget_counts_nodes_or_their_share(budget: float, fits: bool) -> None:
    backend = Faulty(on_supports=lambda n: Support.no("no relu here") if "relu" in n.op else Support.yes())
    compiled = _compiled(backend, fallback=("eager",), max_fallback=budget)
    x = torch.randn(4)
    if fits:
        torch.testing.assert_close(compiled(x), _program(x))
        return
    with pytest.raises(FallbackBudgetError):
        compiled(x)


def test_strict_mode_makes_every_fallback_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_STRICT", "1")
    backend = Faulty(on_supports=lambda n: Support.no("no relu here") if "relu" in n.op else Support.yes())
    with pytest.raises(FallbackBudgetError):
        _compiled(backend)(torch.randn(4))


def test_the_placement_report_names_op_reason_and_line() -> None:
    backend = Faulty(on_supports=lambda n: Support.no("no relu here") if "relu" in n.op else Support.yes())
    compiled = _compiled(backend, fallback=("eager",))
    compiled(torch.randn(4))
    placement = compiled.fairlead.placement
    (decline,) = placement.declines
    assert (decline.op, decline.reason, decline.backend, decline.count) == (
        "aten.relu.default",
        "no relu here",
        "eager",
        1,
    )
    assert decline.location is not None
    assert decline.location.file.endswith("test_failures.py")
    assert placement.native_share == pytest.approx(2 / 3)
    assert [(p.backend, p.nodes) for p in placement.graphs[0].parts] == [("faulty", 2), ("eager", 1)]
    table = str(placement)
    assert "no relu here" in table
    assert "faulty:2, eager:1" in table
    assert [line for line in table.splitlines() if line != line.rstrip()] == []


def test_torch_compile_shows_the_same_error_unwrapped() -> None:
    registry.register(Faulty(on_compile=lambda: _raise(RuntimeError("boom"))))
    compiled = torch.compile(_program, backend="fairlead", options={"backend": "faulty", "fallback": ()})
    with pytest.raises(CompileError, match="boom"):
        compiled(torch.randn(4))
    torch._dynamo.reset()
    with pytest.raises(FairleadError, match="no backend is called"):
        torch.compile(_program, backend="fairlead", options={"backend": "nope"})(torch.randn(4))


def test_a_graph_that_cannot_be_captured_is_left_to_torch_and_counted() -> None:
    def attend(x: torch.Tensor) -> torch.Tensor:
        return flex_attention(x, x, x)

    x = torch.ones(1, 1, 16, 16)
    compiled = fairlead.compile(attend, backend="eager")
    torch.testing.assert_close(compiled(x), x)
    (decline, *_) = compiled.fairlead.placement.declines
    assert "not captured: the higher-order operator flex_attention" in decline.reason
    for backend, demand in (("eager", {"max_fallback": 0}), ("onnxrt", {"fallback": ()})):
        torch._dynamo.reset()
        with pytest.raises(FallbackBudgetError):
            fairlead.compile(attend, backend=backend, **demand)(x)


def test_an_error_in_one_call_does_not_spoil_the_next() -> None:
    state = {"broken": True}
    backend = Faulty(on_compile=lambda: _raise(RuntimeError("not now")) if state["broken"] else None)
    compiled = _compiled(backend, fallback=())
    x = torch.randn(4)
    with pytest.raises(CompileError):
        compiled(x)
    state["broken"] = False
    torch.testing.assert_close(compiled(x), _program(x))
