"""Several cases as one graph: who passes is the same, and whoever does not pass is left to be judged alone."""

from __future__ import annotations

import pytest
import torch

from conformance.tests.engine.faulty import Faulty, Run, honest
from fairlead.backend import Support
from fairlead.ir import Builder, Graph, to_text, verify
from fairlead.registry import registry
from fairlead_conformance import Case, Level, Result, Subject, execute, manifest
from fairlead_conformance._together import execute_together, joined

pytestmark = pytest.mark.filterwarnings("ignore")

CASES = [case for case in manifest(Level.L1) if case.family in ("ops", "directed")][::67]


def _of(*prefixes: str) -> list[Case]:
    return [next(c for c in manifest(Level.L1) if c.id.startswith(prefix)) for prefix in prefixes]


def _together(backend: Faulty, cases: list[Case]) -> dict[str, Result]:
    registry.register(backend, replace=True)
    try:
        return {result.id: result for result in execute_together(cases, Subject(backend.name))}
    finally:
        registry.unregister(backend.name)


def _wrong_in(op: str) -> Run:
    def run(graph: Graph, inputs: list[object]) -> list[torch.Tensor]:
        results = honest(graph, inputs)
        wrong = {r.id for node in graph.nodes if node.op == op for r in node.results if r}
        return [
            torch.zeros_like(x) if v.id in wrong else x for v, x in zip(graph.output_values(), results, strict=True)
        ]

    return run


def test_as_many_pass_as_alone_and_as_much_is_compared() -> None:
    subject = Subject("eager")
    alone = {case.id: execute(case, subject) for case in CASES}
    parts = [CASES[i : i + 12] for i in range(0, len(CASES), 12)]
    found = [result for part in parts for result in execute_together(part, subject)]
    assert len(found) > 0.9 * len(CASES)
    for result in found:
        own = alone[result.id]
        assert own.status.passed
        assert (result.native, result.compared) == (own.native, own.compared)


OF_VALUES = [case for case in manifest(Level.L3) if case.id.partition("~")[0] == "ops/add/f32/s008"]
"""One sample: with its own values and four others, and in three other layouts."""


def test_cases_of_one_graph_are_calls_of_it() -> None:
    compiled: list[Graph] = []

    def noted(graph: Graph, inputs: list[object]) -> list[torch.Tensor]:
        compiled.append(graph)
        return honest(graph, inputs)

    assert set(_together(Faulty(noted), OF_VALUES)) == {case.id for case in OF_VALUES}
    assert len(OF_VALUES) == 8
    assert {len(graph.nodes) for graph in compiled} == {4}


def test_each_of_them_is_compared_as_alone() -> None:
    subject = Subject("eager")
    found = {result.id: result.compared for result in execute_together(OF_VALUES, subject)}
    assert found == {case.id: execute(case, subject).compared for case in OF_VALUES}


@pytest.mark.parametrize("variant", ["nan", "inf"])
def test_a_value_that_is_wrong_in_one_of_them_leaves_all(variant: str) -> None:
    def changed(x: torch.Tensor) -> torch.Tensor:
        return torch.where(x.isnan() if variant == "nan" else x.isinf(), torch.ones(()), x)

    def wrong(graph: Graph, inputs: list[object]) -> list[torch.Tensor]:
        return honest(graph, [changed(x) if isinstance(x, torch.Tensor) else x for x in inputs])

    others = [case for case in OF_VALUES if case.variant not in ("nan", "inf")]
    assert len(_together(Faulty(wrong), others)) == len(others)
    assert _together(Faulty(wrong), [*others, next(case for case in OF_VALUES if case.variant == variant)]) == {}


def test_what_is_wrong_with_one_leaves_all_to_be_judged_alone() -> None:
    cases = _of("ops/abs/f32", "ops/neg/f32", "ops/exp/f32")
    assert set(_together(Faulty(), cases)) == {case.id for case in cases}
    assert _together(Faulty(_wrong_in("aten.neg.default")), cases) == {}


def test_what_is_declined_is_no_member() -> None:
    cases = _of("ops/abs/f32", "ops/neg/f32", "ops/exp/f32")
    declines = Faulty(declines={"aten.neg.default": Support.no("not today")})
    assert set(_together(declines, cases)) == {cases[0].id, cases[2].id}


def test_one_member_is_no_bundle() -> None:
    assert _together(Faulty(), _of("ops/abs/f32")) == {}


def test_the_joint_graph_is_a_valid_one() -> None:
    def negated(size: int) -> Graph:
        b = Builder()
        b.output(b.op("aten.neg.default", b.input(f"f32[{size}]", "x")))
        return b.graph()

    graph = joined([negated(2), negated(3)])
    verify(graph)
    assert [value.tensor.shape for value in graph.output_values()] == [(2,), (3,)]
    assert to_text(graph).count("aten.neg.default") == 2
