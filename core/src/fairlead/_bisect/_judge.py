"""Is what a graph gave right? Against float64, within what eager is off by, as `fairlead compare` has it."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from fairlead._bisect._candidate import SEED, Candidate
from fairlead._compare._reference import Case, in_float64
from fairlead._compare._replay import interpreted, named, shaken
from fairlead._compare._step import GRADIENT, Tensors
from fairlead._compare._verify import Findings, bar
from fairlead.ir import Graph, Kind
from fairlead.passes import draws

__all__ = ["Verdict", "expected", "judge", "limits"]


class Verdict(NamedTuple):
    """The outputs that are wrong, by index, and what is wrong with the first of them; empty where all are right."""

    outputs: tuple[int, ...]
    problem: str


def expected(candidate: Candidate) -> Case | None:
    """What the graph ought to give; None for random numbers, which have no right value."""
    graph, inputs = candidate.graph, candidate.inputs
    if any(draws(node) for node in graph.walk()):
        return None
    eager = _named(graph, interpreted(graph, inputs, SEED))
    exact: Tensors | None = None
    with contextlib.suppress(Exception), in_float64():  # a graph may insist on its types
        exact = _named(graph, interpreted(graph, [_wide(x) for x in inputs], SEED))
    reference = named(graph, list((exact or eager).values()))
    due = shaken(graph, inputs, reference, SEED)
    return Case({}, eager, exact, dict(zip(eager, (due.get(name, 0.0) for name in reference), strict=True)))


def judge(case: Case, results: Sequence[torch.Tensor]) -> Verdict:
    """Compare results with what they ought to be."""
    if len(results) != len(case.eager):
        return Verdict((), f"{len(results)} results where the graph has {len(case.eager)} outputs")
    findings = Findings()
    findings.add("", case, dict(zip(case.eager, results, strict=True)))
    told = {i: p for i, name in enumerate(case.eager) for p in findings.problems if name in p}
    wrong = tuple(sorted(told))
    return Verdict(wrong, told[wrong[0]].removeprefix(": ") if wrong else "")


def limits(case: Case) -> tuple[float, ...]:
    """How far from eager's each output has to be at least to be wrong."""
    found = []
    for name, eager in case.eager.items():
        exact = (case.exact or case.eager)[name]
        real = eager.is_floating_point() or eager.is_complex()
        scale, own, allowed = bar(eager, exact, case.shaken[name]) if real else (0.0, 0.0, 0.0)
        found.append(max(allowed - own, 0.0) * scale)
    return tuple(found)


def _named(graph: Graph, results: Sequence[object]) -> Tensors:
    found = named(graph, results)
    return {f"{GRADIENT}{name}": x for name, x in found.items()} if graph.kind is Kind.backward else found


def _wide(x: Any) -> Any:
    return x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x
