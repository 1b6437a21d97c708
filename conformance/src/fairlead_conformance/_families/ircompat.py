"""Golden files of every released version of the IR: each is read, upgraded, verified and run.

They lie in ``_golden/``, with the distributions that their inputs are drawn from, and are never written anew.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

import msgspec

from fairlead.ir import TensorType, read, verify
from fairlead.ir.random import Distribution
from fairlead_conformance._case import Case, Level
from fairlead_conformance._graphs import check_graph
from fairlead_conformance._observation import Observation
from fairlead_conformance._pack import Drawn, made
from fairlead_conformance._subject import Subject

__all__ = ["cases", "run"]

_FOLDER = Path(__file__).with_name("_golden")


@functools.cache
def cases() -> Sequence[Case]:
    return [_case(name) for name in sorted(_inputs())]


def run(case: Case, subject: Subject, seen: Observation) -> None:
    graph = verify(read(_FOLDER / f"{case.subject}.fir").module).graph
    given = [Drawn(distribution) for distribution in _inputs()[case.subject]]
    check_graph(graph, made(graph, given, name=case.id, seed=subject.seed), subject, seen)


@functools.cache
def _inputs() -> dict[str, list[Distribution]]:
    return msgspec.json.decode((_FOLDER / "inputs.json").read_bytes(), type=dict[str, list[Distribution]])


def _case(name: str) -> Case:
    graph = read(_FOLDER / f"{name}.fir").graph
    types = [i.value.type for i in graph.inputs if isinstance(i.value.type, TensorType)]
    return Case(
        id=f"ircompat/{name}/{types[0].dtype}/s000",
        level=Level.L2,
        dtypes=tuple(sorted({t.dtype.value for t in types})),
        ops=tuple(sorted({n.op for n in graph.walk()})),
    )
