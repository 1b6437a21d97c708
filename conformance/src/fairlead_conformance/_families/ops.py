"""PyTorch's own samples of its ops, frozen: each op in each dtype, with edge sizes, other layouts and edge values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairlead.ir import Graph, from_bytes
from fairlead_conformance._case import Case
from fairlead_conformance._families._variants import varied
from fairlead_conformance._graphs import check_graph
from fairlead_conformance._observation import Observation
from fairlead_conformance._pack import Content, made, pack
from fairlead_conformance._subject import Subject

__all__ = ["cases", "example", "run", "run_content"]


def cases() -> Sequence[Case]:
    return pack().cases("ops")


def run(case: Case, subject: Subject, seen: Observation) -> None:
    run_content(pack().content(case.id.partition("~")[0]), case, subject, seen)


def example(case: Case, subject: Subject) -> tuple[Graph, Sequence[Any]]:
    """The one graph of a case, and inputs for it."""
    return _example(pack().content(case.id.partition("~")[0]), case, subject)


def run_content(content: Content, case: Case, subject: Subject, seen: Observation) -> None:
    """Run what a pack has, or will have, of a case."""
    check_graph(*_example(content, case, subject), subject, seen)


def _example(content: Content, case: Case, subject: Subject) -> tuple[Graph, Sequence[Any]]:
    graph = from_bytes(content.module).graph
    (given,) = content.inputs
    inputs = made(graph, given, name=case.id.partition("~")[0], seed=subject.seed)
    if case.variant:
        changed = varied(case.variant, given, inputs)
        assert changed is not None, f"{case.id} changes nothing"
        inputs = changed
    return graph, inputs
