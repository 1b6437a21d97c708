"""One graph through a backend, as core would hand it over, with every check that holds for any graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from fairlead.ir import Graph
from fairlead_conformance._calls import Checked
from fairlead_conformance._inputs import copies, resolved, salted
from fairlead_conformance._observation import Observation
from fairlead_conformance._oracle import Reference
from fairlead_conformance._parts import parts_of, prepared
from fairlead_conformance._subject import Subject

__all__ = ["check_graph", "prepared"]


def check_graph(
    graph: Graph, inputs: Sequence[Any], subject: Subject, seen: Observation, *, more: Sequence[Sequence[Any]] = ()
) -> None:
    """Compile and run the graph, compare every output with what the graph means, and watch who computes.

    ``inputs``: a tensor or an int for each graph input, in any layout; they are not written. ``more``: further inputs
    for the same executable, such as other sizes where dimensions are symbols. The graph also runs on other values of
    the same shapes, and on the first ones again.

    Raises `Declined` where the backend refuses a node, and `Failed` where anything is wrong.
    """
    graph = prepared(graph, subject)
    parts = parts_of(graph, subject)
    inputs = resolved(inputs)
    calls = [_values(graph, inputs), _values(graph, _others(graph, inputs, subject))]
    calls += [_values(graph, resolved(further)) for further in more]
    for part in parts:
        reference = Reference(part.graph, subject.numerics)
        given = [[values[i.value.id] for i in part.graph.inputs] for values in calls]
        if part.backend == subject.name:
            Checked(part.graph, reference, subject, seen).check(given)
        if part is parts[-1]:
            return
        for values, own in zip(calls, given, strict=True):
            results = reference.eager(own)
            values.update(zip((v.id for v in part.graph.output_values()), results, strict=True))


def _values(graph: Graph, inputs: Sequence[Any]) -> dict[int, Any]:
    return {item.value.id: x for item, x in zip(graph.inputs, inputs, strict=True)}


def _others(graph: Graph, inputs: Sequence[Any], subject: Subject) -> list[Any]:
    """Inputs for the second call, on which torch computes no more NaNs than on the first."""
    reference = Reference(graph)
    if not graph.nodes:
        return copies(inputs)
    least = _nans(reference.eager(inputs))

    def accepts(others: Sequence[Any]) -> bool:
        try:
            return _nans(reference.eager(others)) <= least
        except Exception:
            return False

    return salted(inputs, accepts, subject.seed)


def _nans(results: Sequence[Any]) -> int:
    return sum(int(r.isnan().sum()) for r in results if isinstance(r, torch.Tensor) and r.dtype.itemsize > 1)
