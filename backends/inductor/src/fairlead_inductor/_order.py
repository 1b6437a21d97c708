"""The order of a graph's nodes, which Inductor goes by where it finds out what lies with channels last."""

from __future__ import annotations

import itertools

import msgspec

from fairlead.ir import Graph, Kind, Node
from fairlead.passes import draws

__all__ = ["before_convolutions"]

_CONVOLUTION = "aten.convolution.default"


def before_convolutions(graph: Graph) -> Graph:
    """A forward with what needs no convolution from the last one on in front of that, behind what it is computed of.

    Inductor gives channels last to what comes of a convolution, up to the last one in order. Masks that a forward saves
    for the derivative of an activation come at its end, as AOTAutograd has them, and would be turned.
    """
    if graph.kind is not Kind.forward:
        return graph
    last = max((k for k, node in enumerate(graph.nodes) if node.op == _CONVOLUTION), default=0)
    places: dict[int, list[Node]] = {k: [] for k in range(len(graph.nodes))}
    of: dict[int, int] = {}
    for k, node in enumerate(graph.nodes):
        ready = max((of[v.id] for v in node.operands() if v.id in of), default=last)
        place = ready if ready < last < k and not draws(node) else k
        places[place].append(node)
        of.update((r.id, place) for r in node.results if r is not None)
    return msgspec.structs.replace(graph, nodes=tuple(itertools.chain.from_iterable(places.values())))
