"""Who ran what, by the placement of the programs: what passed natively, was declined, or had to be rescued."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.placement import Placement, Why
from fairlead_conformance._observation import Declined, Failed, Observation
from fairlead_conformance._status import Status

__all__ = ["judge"]


def judge(placements: Sequence[Placement], name: str, seen: Observation) -> None:
    """Note what ran natively; raise `Failed` for a Part that failed and was rescued, and `Declined` for refusals."""
    graphs = [graph for placement in placements for graph in placement.graphs]
    seen.native.update(node.op for graph in graphs for node in graph.nodes if node.why is Why.native)
    for note in (part.note for graph in graphs for part in graph.parts):
        if note.startswith(f"{name} failed to compile"):
            raise Failed(Status.FAIL_COMPILE, "compiles", note)
        if note.startswith(f"{name} failed"):
            raise Failed(Status.FAIL_RUN, "runs", note)
    reasons = {d.op: d.reason for graph in graphs for d in graph.declines}
    for op, reason in reasons.items():
        if reason.startswith("supports() raised"):
            raise Failed(Status.FAIL_COMPILE, "supports-never-raises", f"{op}: {reason}")
    if reasons:
        raise Declined(reasons)
