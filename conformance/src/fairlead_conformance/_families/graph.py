"""Graphs whose shape is the difficulty: order and identity of inputs and outputs, constants, long chains, no nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from fairlead.ir import Builder, Graph
from fairlead_conformance._case import Case, Level
from fairlead_conformance._graphs import check_graph
from fairlead_conformance._observation import Observation
from fairlead_conformance._subject import Subject

__all__ = ["cases", "run"]


def _chain() -> Graph:
    b = Builder("chain")
    value = b.input("f32[4, 4]", "x")
    for _ in range(500):
        value = b.op("aten.relu.default", b.op("aten.neg.default", value))
    b.output(value)
    return b.graph()


_GRAPHS: dict[str, Callable[[], Graph]] = {"chain": _chain}


def cases() -> Sequence[Case]:
    return [Case(id=f"graph/{name}/f32/s000", level=Level.L1, dtypes=("f32",)) for name in sorted(_GRAPHS)]


def run(case: Case, subject: Subject, seen: Observation) -> None:
    graph = _GRAPHS[case.subject]()
    generator = torch.Generator().manual_seed(subject.seed)
    inputs = [torch.randn(4, 4, generator=generator) / 1e3 for _ in graph.inputs]
    check_graph(graph, inputs, subject, seen)
