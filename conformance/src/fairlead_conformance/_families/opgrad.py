"""The gradients of PyTorch's samples: each forward graph as training captures it, and the backward graph after it."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead import interpret
from fairlead.ir import from_bytes
from fairlead_conformance._case import Case
from fairlead_conformance._graphs import check_graph
from fairlead_conformance._observation import Observation
from fairlead_conformance._pack import Content, made, pack
from fairlead_conformance._subject import Subject

__all__ = ["cases", "run", "run_content"]


def cases() -> Sequence[Case]:
    return pack().cases("opgrad")


def run(case: Case, subject: Subject, seen: Observation) -> None:
    run_content(pack().content(case.id), case, subject, seen)


def run_content(content: Content, case: Case, subject: Subject, seen: Observation) -> None:
    """Run what a pack has, or will have, of a case."""
    forward, backward = from_bytes(content.module).graphs
    inputs = made(forward, content.inputs[0], name=case.id, seed=subject.seed)
    check_graph(forward, inputs, subject, seen)
    # The backward has what the reference saved, so that it is judged by itself.
    before = inputs, interpret.run(forward, inputs)
    given = made(backward, content.inputs[1], name=f"{case.id}.backward", seed=subject.seed, forward=before)
    check_graph(backward, given, subject, seen)
