"""One graph through a backend, as core would hand it over, with every check that holds for any graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from fairlead.ir import Graph, Kind, Role
from fairlead.passes import hoist
from fairlead_conformance._calls import Checked
from fairlead_conformance._device import placed
from fairlead_conformance._inputs import copies, resolved, salted
from fairlead_conformance._observation import Declined, Observation
from fairlead_conformance._oracle import Reference, writes_in_any_order
from fairlead_conformance._parts import laid_out, parts_of, prepared
from fairlead_conformance._subject import Subject

__all__ = ["asked", "check_graph", "prepared"]


def check_graph(
    graph: Graph, inputs: Sequence[Any], subject: Subject, seen: Observation, *, more: Sequence[Sequence[Any]] = ()
) -> None:
    """Compile and run the graph, compare every output with what the graph means, and watch who computes.

    The graph and ``inputs``, a tensor or an int for each graph input in any layout, are on the CPU; they run on the
    subject's device, and are not written. ``more``: further inputs
    for the same executable, such as other sizes where dimensions are symbols. The graph also runs on other values of
    the same shapes, and on the first ones again.

    Raises `Declined` where the backend refuses a node, and `Failed` where anything is wrong.
    """
    whole, inputs = graph, resolved(inputs)
    seen.examined = whole, tuple(inputs)
    reference, calls = asked(graph, inputs, subject)
    graph = reference.graph
    _check_parts(reference, [*calls, *map(resolved, more)], frozenset(), subject, seen)
    weights = [i for i, item in enumerate(graph.inputs) if item.role in (Role.parameter, Role.buffer)]
    if weights and subject.capabilities.bakes_constants and graph.kind is Kind.inference:
        _check_weights(reference, calls, weights, subject, seen)


def asked(graph: Graph, inputs: Sequence[Any], subject: Subject) -> tuple[Reference, list[Sequence[Any]]]:
    """What the backend is asked of a graph: it prepared, with what is right, and inputs for two calls.

    Raises `Declined` where core leaves nothing of it to a backend.
    """
    inputs = resolved(inputs)
    whole, graph = graph, prepared(placed(laid_out(graph, inputs), subject.place), subject)
    if whole.nodes and not graph.nodes:
        raise Declined({node.op: "core leaves nothing of it to the backend" for node in whole.nodes})
    reference = Reference(graph, subject.numerics)
    return reference, [inputs, _others(reference, inputs, subject)]


def _check_weights(
    reference: Reference, calls: Sequence[Sequence[Any]], weights: Sequence[int], subject: Subject, seen: Observation
) -> None:
    """The same with weights that are known at compile time, and then exchanged for the others'."""
    graph = reference.graph
    known = {graph.inputs[i].value.id for i in weights}
    if hoisted := hoist(graph, weights):
        setup = Reference(hoisted.setup)
        own = [_values(graph, call) for call in calls]
        made = [setup.eager([values[i.value.id] for i in hoisted.setup.inputs]) for values in own]
        calls = [[*call, *(t.contiguous() for t in more)] for call, more in zip(calls, made, strict=True)]
        reference = Reference(hoisted.main, subject.numerics)
        known |= {item.value.id for item in hoisted.main.inputs[-len(hoisted.setup.outputs) :]}
    _check_parts(reference, calls, frozenset(known), subject, seen)


def _check_parts(
    whole: Reference, inputs: Sequence[Sequence[Any]], known: frozenset[int], subject: Subject, seen: Observation
) -> None:
    """Each Part of the graph by its own, on what torch makes of those before. ``known``: constants, by value."""
    graph = whole.graph
    calls = [_values(graph, call) for call in inputs]
    parts = parts_of(graph, subject)
    if not known and all(part.backend != subject.name for part in parts):
        raise Declined({node.op: "core leaves nothing of it to the backend" for node in graph.nodes})
    for part in parts:
        reference = whole if _same(part.graph, graph) else Reference(part.graph, subject.numerics)
        given = [[values[i.value.id] for i in part.graph.inputs] for values in calls]
        if part.backend == subject.name:
            constants = frozenset(i for i, item in enumerate(part.graph.inputs) if item.value.id in known)
            checked = Checked(part.graph, reference, subject, seen)
            if not known:
                checked.check(given)
            elif constants:
                checked.check_constants(given, constants)
        if part is parts[-1]:
            return
        for values, own in zip(calls, given, strict=True):
            results = reference.eager(own)
            values.update(zip((v.id for v in part.graph.output_values()), results, strict=True))


def _same(part: Graph, graph: Graph) -> bool:
    """Whether they mean the same: a Part has a name of its own, and outputs without roles."""
    same = (part.inputs, part.nodes, part.symbols) == (graph.inputs, graph.nodes, graph.symbols)
    return same and [o.value for o in part.outputs] == [o.value for o in graph.outputs]


def _values(graph: Graph, inputs: Sequence[Any]) -> dict[int, Any]:
    return {item.value.id: x for item, x in zip(graph.inputs, inputs, strict=True)}


def _others(reference: Reference, inputs: Sequence[Any], subject: Subject) -> list[Any]:
    """Inputs for the second call, on which torch computes no more NaNs than on the first."""
    if not reference.graph.nodes:
        return copies(inputs)
    least = _nans(reference.eager(inputs))

    def accepts(others: Sequence[Any]) -> bool:
        try:
            return _nans(reference.eager(others)) <= least
        except Exception:
            return False

    return salted(inputs, accepts, subject.seed, integers=not writes_in_any_order(reference.graph))


def _nans(results: Sequence[Any]) -> int:
    return sum(int(r.isnan().sum()) for r in results if isinstance(r, torch.Tensor) and r.dtype.itemsize > 1)
