"""A graph with what it runs on, and smaller ones cut out of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from fairlead._accuracy import Reference
from fairlead._compare._replay import interpreted
from fairlead.ir import Graph, Node, Output, TensorType
from fairlead.partition import subgraph
from fairlead.passes import draws, remove_dead_nodes

__all__ = ["SEED", "Candidate", "Cutting", "expected"]

SEED = 0


class Candidate(NamedTuple):
    """A graph, a value for each input, and the inputs that the backend is offered as constants."""

    graph: Graph
    inputs: tuple[Any, ...]
    constants: frozenset[int]

    def with_outputs(self, outputs: Sequence[Output]) -> Candidate:
        """The nodes that these outputs need, on the same inputs."""
        return self._replace(graph=remove_dead_nodes(msgspec.structs.replace(self.graph, outputs=tuple(outputs))))


class Cutting:
    """Takes a candidate apart: each piece runs on the values that its inputs have in the whole, by the interpreter."""

    def __init__(self, whole: Candidate) -> None:
        self._whole = whole
        self._constants = {whole.graph.inputs[i].value.id for i in whole.constants}
        self.exposed = whole.with_outputs(_all_results(whole.graph))
        self._values = self._every_value()

    def cut(self, nodes: Sequence[Node]) -> Candidate:
        """These nodes alone. Some of them have to make something that is used."""
        graph = self._whole.graph
        piece = subgraph(graph, nodes, f"{graph.name}_cut")
        ids = [item.value.id for item in piece.inputs]
        constants = frozenset(place for place, id_ in enumerate(ids) if id_ in self._constants)
        return Candidate(piece, tuple(self._values[id_] for id_ in ids), constants)

    def _every_value(self) -> Mapping[int, Any]:
        graph, inputs = self._whole.graph, self._whole.inputs
        values = {item.value.id: x for item, x in zip(graph.inputs, inputs, strict=True)}
        made = tuple(Output(r) for n in graph.nodes for r in n.results if r is not None)
        results = interpreted(msgspec.structs.replace(graph, outputs=made), inputs, SEED)
        values.update((output.value.id, x) for output, x in zip(made, results, strict=True))  # type: ignore[union-attr]
        return values


def expected(candidate: Candidate) -> Reference | None:
    """What the graph ought to give; None for random numbers, which have no right value."""
    if any(draws(node) for node in candidate.graph.walk()):
        return None
    return Reference(candidate.graph, candidate.inputs)


def _all_results(graph: Graph) -> tuple[Output, ...]:
    results = (r for n in graph.nodes for r in n.results if r is not None)
    return tuple(Output(r) for r in results if isinstance(r.type, TensorType))
