"""`fairlead.bisect` finds what is planted in a vendor's backend, whatever the fault does, and its script shows it."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

import fairlead
from fairlead._bisect import Limits, bisect_file
from fairlead.bisection import Bisection, Failure, Rung
from fairlead.errors import AccuracyError, ArgumentError, BackendNotFoundError, BackendNotReadyError
from fairlead.hooks import Pass, hookimpl, plugin_manager
from fairlead.ir import Builder, DType, Graph, Input, Kind, Node, Output, TensorType, Value, read, write
from fairlead.registry import registry

from .conftest import Run, Site

PLANTED = """
import ctypes, time
import torch
from fairlead.backend import Capabilities, Options, Probe, Support
from fairlead.interpret import to_fx


class Choice(Options, frozen=True, kw_only=True):
    op: str = "aten.gelu.default"
    fault: str = "wrong"
    after: str = ""
    symbols: bool = False  # only in graphs that have them


class Executable:
    baked = frozenset()
    fresh_outputs = True

    def __init__(self, graph, choice):
        self.module = to_fx(graph)
        self.faults = [n for n in self.module.graph.nodes if "node" in n.meta and applies(n, choice)]
        if choice.symbols and not graph.symbols:
            self.faults = []
        self.fault = choice.fault
        for n in self.faults if self.fault == "wrong" else ():
            with self.module.graph.inserting_after(n):
                n.replace_all_uses_with(other := self.module.graph.call_function(torch.mul, (n, 1.01)))
                other.args = (n, 1.01)
        self.module.recompile()

    def __call__(self, inputs):
        if self.faults and self.fault == "crash":
            ctypes.string_at(0)
        if self.faults and self.fault == "hang":
            time.sleep(600)
        if self.faults and self.fault == "error":
            raise RuntimeError("no kernel")
        return self.module(*inputs)


def applies(n, choice):
    ops = [getattr(a.meta.get("node"), "op", "") for a in n.all_input_nodes]
    return n.meta["node"].op == choice.op and (not choice.after or choice.after in ops)


class Backend:
    name = "planted"
    api_version = 1
    capabilities = Capabilities(
        devices=("cpu",), dtypes=("f32",), training=True, bakes_constants=True, dynamic_shapes=True
    )
    options_type = Choice

    def probe(self):
        return Probe(ok=True, devices=("cpu",))

    def supports(self, node):
        return Support.yes()

    def compile(self, graph, options, constants):
        return Executable(graph, options)


backend = Backend()
"""


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.nn.functional.gelu(self.first(x))  # the planted line
        return self.second(y).softmax(-1)


class Faded(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.gelu(x) * 1e-9 + x


P, Q = (Value(i, TensorType(DType.f32, (2,))) for i in range(2))
GRAPH = Graph("g", Kind.inference, (Input(P),), (Node("aten.gelu.default", (P, "none"), (Q,)),), (Output(Q),))
X = torch.linspace(-2, 2, 32).reshape(4, 8)

Search = Callable[..., Bisection]


@pytest.fixture
def search(site: Site, tmp_path: Path) -> Iterator[Search]:
    """Bisect on the planted backend, whose options say what is wrong with it."""
    site.backend("planted", PLANTED)
    registry.refresh()
    torch.manual_seed(0)

    def search(model: Any = None, x: torch.Tensor = X, timeout: float = 60.0, **given: Any) -> Bisection:
        arguments = {name: given.pop(name) for name in ("training", "seconds") if name in given}
        module = Net() if model is None else model
        folder = tmp_path / "out"
        return fairlead.bisect(
            module, [x], backend="planted", options=given, folder=folder, timeout=timeout, **arguments
        )

    yield search
    registry.refresh()


@pytest.mark.parametrize("fault", ["wrong", "crash"])
def test_the_planted_op_is_found_with_its_line_and_a_script_that_shows_it(search: Search, fault: str) -> None:
    found = search(fault=fault)
    assert (found.rung, found.failure, found.ops) == (Rung.backend, Failure(fault), ("aten.gelu.default",))
    assert (found.part_nodes, found.ended, found.reproduces, found.random_inputs) == (4, "", True, True)
    assert found.location is not None
    assert "the planted line" in Path(found.location.file).read_text().splitlines()[found.location.line - 1]
    assert [n.op for n in read(found.file).graph.nodes] == ["aten.gelu.default"]
    assert len(Path(found.script).read_text().splitlines()) <= 30
    assert found.detail in str(found)


def test_a_hang_costs_its_time_and_no_more(search: Search) -> None:
    found = search(fault="hang", timeout=8.0)
    assert (found.failure, found.ops, found.reproduces) == (Failure.hang, ("aten.gelu.default",), True)
    assert found.detail == "no answer within 2 seconds"


def test_a_fault_of_two_ops_together_keeps_both(search: Search) -> None:
    found = search(after="aten.linear.default")
    assert found.ops == ("aten.linear.default", "aten.gelu.default")
    assert found.reproduces


def test_an_error_that_fades_before_it_leaves_its_part_is_found(search: Search) -> None:
    found = search(Faded(), x=torch.ones(4, 8))
    assert (found.ops, found.reproduces) == (("aten.gelu.default",), True)
    assert found.detail.endswith("; what the Part gives is right")


def test_the_backward_of_a_training_step_is_searched_too(search: Search) -> None:
    found = search(op="aten.gelu_backward.default", training=True)
    assert (found.ops, found.reproduces) == (("aten.gelu_backward.default",), True)
    assert found.part.startswith("backward")


def test_time_that_is_up_ends_the_search(search: Search) -> None:
    found = search(seconds=1e-3)
    assert (found.rung, found.trials, found.ended) == (None, 0, "0.001 seconds are up")


def test_an_interrupt_leaves_what_is_known(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fairlead._bisect._reduce.Reduction.search", interrupted)
    found = search(fault="error")
    assert (found.failure, found.ended, len(found.nodes)) == (Failure.error, "interrupted", 4)
    assert (found.detail, found.reproduces) == ("RuntimeError: no kernel", True)


def test_a_model_that_fails_in_eager_breaks_the_first_rung(search: Search) -> None:
    found = search(x=torch.ones(3, 3))
    assert (found.rung, found.failure, found.trials) == (Rung.eager, Failure.error, 0)
    assert "mat1 and mat2 shapes cannot be multiplied" in found.detail


class Zeal:
    """A plugin whose pass takes the approximation for the function."""

    @hookimpl
    def fairlead_passes(self, target: object) -> list[Pass]:
        return [Pass("zeal", self._rewrite)]

    def _rewrite(self, graph: Graph) -> Graph:
        nodes = (
            msgspec.structs.replace(n, args=(n.args[0], "tanh")) if n.op == "aten.gelu.default" else n
            for n in graph.nodes
        )
        return msgspec.structs.replace(graph, nodes=tuple(nodes))


def test_a_pass_that_changes_the_meaning_breaks_the_interpreter(search: Search) -> None:
    zeal = Zeal()
    plugin_manager().register(zeal, "zeal")
    try:
        found = search(op="none")
    finally:
        plugin_manager().unregister(zeal)
    assert (found.rung, found.failure, found.trials) == (Rung.interpreter, Failure.wrong, 0)
    assert found.detail.startswith("example: 0 is off by ")


def test_a_backend_of_this_process_alone_cannot_be_searched() -> None:
    honest = _Here()
    registry.register(honest)
    try:
        with pytest.raises(BackendNotReadyError, match="'here' does not load in a process of its own: FL101"):
            fairlead.bisect(Net(), [X], backend="here")
    finally:
        registry.unregister("here")


class _Here(type(registry.get("eager"))):  # type: ignore[misc]  # eager by another name
    name = "here"


def test_an_unknown_backend_is_an_error_before_anything_runs() -> None:
    with pytest.raises(BackendNotFoundError, match="FL101"):
        fairlead.bisect(Net(), [X], backend="planned")


def test_no_time_at_all_is_an_error() -> None:
    with pytest.raises(ArgumentError, match="seconds is 0 and timeout 120"):
        fairlead.bisect(Net(), [X], backend="eager", seconds=0)


def test_the_command_of_a_wrong_number_shows_it_with_the_options_of_the_program(
    forked: Run, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """By default it is gelu that is wrong, of which the program has none; the folder's name has to be quoted."""
    monkeypatch.setenv("FAIRLEAD_DEBUG", str(tmp_path / "it's here"))
    site.backend("planted", PLANTED)
    registry.refresh()
    request.addfinalizer(registry.refresh)
    options = {"op": "aten.mul.Tensor", "after": "aten.sin.default"}
    program = fairlead.compile(
        lambda x: x.sin() * 3, backend="planted", options=options, dynamic=True, fallback=(), verify="first"
    )
    with pytest.raises(AccuracyError) as raised:
        program(torch.linspace(0.1, 1.0, 9))
    command = re.fullmatch("`fairlead (bisect .*)` finds the smallest graph that shows it", raised.value.next)
    assert command is not None
    assert "--option op=aten.mul.Tensor --option after=aten.sin.default --size " in command[1]
    done = forked("-m", "fairlead", *shlex.split(command[1]), "--json", "-o", str(tmp_path))
    found = json.loads(done.stdout)
    assert (done.returncode, found["rung"], found["failure"]) == (1, "backend", "wrong"), done.stderr
    assert set(found["ops"]) == {"aten.sin.default", "aten.mul.Tensor"}


@pytest.mark.parametrize("symbols", ["false", "true"])
def test_the_command_takes_options_and_sizes_of_symbols(forked: Run, site: Site, tmp_path: Path, symbols: str) -> None:
    """A fault that is there without symbols is shown without them; one that is not, with them."""
    site.backend("planted", PLANTED)
    builder = Builder("g", "inference")
    x = builder.input(TensorType(DType.f32, ("s", 2)))
    builder.output(builder.op("aten.gelu.default", builder.op("aten.sin.default", x), "none"))
    write(tmp_path / "saved.fir", builder.graph())
    given = ["--size", "s=6", "--option", "fault=error", "--option", f"symbols={symbols}"]
    command = ["bisect", str(tmp_path / "saved.fir"), "--backend", "planted", "-o", str(tmp_path), "--json"]
    done = forked("-m", "fairlead", *command, *given)
    found = json.loads(done.stdout)
    assert (done.returncode, found["rung"], found["failure"]) == (1, "backend", "error")
    assert (found["ops"], found["reproduces"], Path(found["script"]).parent) == (["aten.gelu.default"], True, tmp_path)
    left = read(Path(found["file"])).module.graphs
    shapes = [graph.inputs[0].value.tensor.shape for graph in left]
    assert shapes == ([("s", 2), (6, 2)] if symbols == "true" else [(6, 2)])


def test_sizes_have_to_be_those_of_a_symbol(tmp_path: Path) -> None:
    builder = Builder("g", "inference")
    builder.output(builder.op("aten.sin.default", builder.input(TensorType(DType.f32, ("s", 2)))))
    write(tmp_path / "saved.fir", builder.graph())
    for sizes, said in [({"t": 6}, "there is no symbol 't'"), ({"s": 0}, "s cannot be 0")]:
        with pytest.raises(ArgumentError, match=said) as raised:
            bisect_file(tmp_path / "saved.fir", "eager", {}, Limits(), lambda text: None, sizes=sizes)
        assert "whose symbols are: s from 1" in raised.value.where


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["saved.fir", "--size", "s=six"], "the size of s is 'six'"),
        (["mlp", "--size", "s=6"], "mlp has no symbols"),
        (["mlp", "--option", "fault"], "'fault' is no NAME=VALUE"),
    ],
)
def test_what_the_command_cannot_read_is_an_error(forked: Run, tmp_path: Path, given: list[str], said: str) -> None:
    write(tmp_path / "saved.fir", GRAPH)
    given = [str(tmp_path / "saved.fir"), *given[1:]] if given[0] == "saved.fir" else given
    done = forked("-m", "fairlead", "bisect", *given, "--backend", "eager")
    assert (done.returncode, said in done.stderr) == (2, True)
