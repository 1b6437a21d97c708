"""Drop what nothing uses."""

from __future__ import annotations

import msgspec

from fairlead.ir import Graph, Node
from fairlead.passes._communication import communicates
from fairlead.passes._regions import in_regions


def remove_dead_nodes(graph: Graph) -> Graph:
    """Without nodes whose results nobody uses; unused results of the others become None.

    Before: any graph. After: each node has a result that a later node or an output uses, or none at all, which makes it
    a check, or takes part in communication, which other processes wait for; in regions too. Inputs and outputs stay.
    """
    graph = in_regions(graph, remove_dead_nodes)
    live = {v.id for v in graph.output_values()}
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        results = tuple(r if r is not None and r.id in live else None for r in node.results)
        if results and not any(results) and not communicates(node):
            continue
        live.update(v.id for v in node.operands())
        kept.append(node if results == node.results else msgspec.structs.replace(node, results=results))
    return msgspec.structs.replace(graph, nodes=tuple(reversed(kept)))
