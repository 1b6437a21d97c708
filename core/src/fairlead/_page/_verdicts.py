"""What a backend says of each node of a graph, in a word and a reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairlead._registry import registry
from fairlead.ir import Graph, Node
from fairlead.partition import verdict
from fairlead.passes import DECOMPOSABLE

__all__ = ["Verdict", "verdicts"]

Verdict = tuple[str, str]
"""``accepted``, ``declined`` or ``decomposed``, and why."""


def verdicts(name: str, graphs: Sequence[Graph]) -> Mapping[int, Mapping[int, Verdict]]:
    """By number of the graph and of the node. Nodes of regions are judged with the node that they belong to."""
    backend = registry.get(name)

    def judge(node: Node, kind: str) -> Verdict:
        keeps = backend.capabilities.keeps
        if node.op in DECOMPOSABLE and not {"*", node.op} & set(keeps):
            return "decomposed", f"core takes it apart before {name} sees it"
        try:
            support = verdict(backend, node, kind)
        except Exception as error:  # the vendor's code: whatever it raises is about this node
            return "declined", f"supports() raised {type(error).__name__}: {error}"
        return ("accepted", "") if support.accepted else ("declined", f"{support.level}: {support.reason}")

    return {
        number: {index: judge(node, graph.kind) for index, node in enumerate(graph.nodes)}
        for number, graph in enumerate(graphs)
    }
