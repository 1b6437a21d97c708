"""A failure becomes a script of at most 30 lines, which shows it, and a graph that is as small as it gets."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from fairlead import ir
from fairlead.registry import registry
from fairlead_conformance import Case, Level, Subject
from fairlead_conformance._families import fuzz
from fairlead_conformance._repro import shrunk, write_repro
from fairlead_conformance._repro._shrink import Failing

from . import faults
from .faults import Faulty


class WrongTanh(faults.Run):
    def __call__(self, *inputs: Any) -> list[Any]:
        results = super().__call__(*inputs)
        wrong = any(node.op == "aten.tanh.default" for node in self.graph.nodes)
        return [t + 0.125 if wrong and t.is_floating_point() else t for t in results]


@pytest.fixture
def subject() -> Iterator[Subject]:
    registry.register(Faulty(WrongTanh, extern_aten=("*",)))
    yield Subject(faults.NAME)
    registry.unregister(faults.NAME)


def _with_tanh() -> Case:
    for case in fuzz.endless(0):
        graph = fuzz.drawn(int(case.id.rpartition("/s")[2]))
        if len(graph.nodes) > 4 and any(node.op == "aten.tanh.default" for node in graph.nodes):
            return case
    raise AssertionError


def test_a_failing_graph_becomes_a_script_with_one_node(subject: Subject, tmp_path: Path) -> None:
    script, graph, inputs = write_repro(_with_tanh(), subject, tmp_path)
    assert len(script.read_text("utf-8").splitlines()) <= 30
    assert [node.op for node in ir.read(graph).graph.nodes] == ["aten.tanh.default"]
    assert all(x.numel() <= 2 for x in torch.load(inputs))
    with pytest.raises(AssertionError, match="Tensor-likes are not close"):
        runpy.run_path(str(script))


class OffByOne(faults.Run):
    def __call__(self, *inputs: Any) -> list[Any]:
        return [t + 1 for t in super().__call__(*inputs)]


def test_a_script_declares_the_strides_of_its_inputs(tmp_path: Path) -> None:
    registry.register(Faulty(OffByOne, extern_aten=("*",)))
    case = Case(id="ops/masked.argmax/f32/s004~transposed", level=Level.L2)
    _, graph, inputs = write_repro(case, Subject(faults.NAME), tmp_path, seconds=0.0)
    registry.unregister(faults.NAME)
    pairs = zip(ir.read(graph).graph.inputs, torch.load(inputs), strict=True)
    declared = {item.value.tensor.strides: x.stride() for item, x in pairs if not x.is_contiguous()}
    assert declared == {(1, 3): (1, 3)}


def test_what_does_not_fail_becomes_nothing(tmp_path: Path) -> None:
    case = next(fuzz.endless(0))
    assert write_repro(case, Subject("eager"), tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_a_failing_program_becomes_a_script_that_runs_the_case(tmp_path: Path) -> None:
    registry.register(Faulty(faults.ClobbersInputs))
    case = Case(id="semantics/inputs-are-left-alone/f32/s000", level=Level.L1)
    (script,) = write_repro(case, Subject(faults.NAME), tmp_path)
    with pytest.raises(SystemExit) as left:
        runpy.run_path(str(script))
    registry.unregister(faults.NAME)
    assert left.value.code


def test_graphs_drawn_at_random_are_the_same_for_the_same_number() -> None:
    assert ir.to_text(fuzz.drawn(7)) == ir.to_text(fuzz.drawn(7))
    assert len({ir.to_text(fuzz.drawn(number)) for number in range(20)}) == 20


def test_nothing_smaller_is_taken_that_does_not_fail() -> None:
    graph = fuzz.drawn(3)
    inputs = tuple(fuzz._filled(item.value.tensor, torch.Generator()) for item in graph.inputs)
    failing = Failing(graph, inputs)
    assert shrunk(failing, lambda candidate: False) is failing
