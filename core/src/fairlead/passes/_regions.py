"""Passes inside the bodies of control flow."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from fairlead.ir import Graph, Node


def in_regions(graph: Graph, rewrite: Callable[[Graph], Graph]) -> Graph:
    """The graph with a rewrite applied to each of its regions, and to nothing else.

    Regions are closed: what a rewrite does to one changes neither the graph around it nor other regions.
    """
    if not any(n.regions for n in graph.nodes):
        return graph
    return msgspec.structs.replace(graph, nodes=tuple(_rewritten(n, rewrite) for n in graph.nodes))


def _rewritten(node: Node, rewrite: Callable[[Graph], Graph]) -> Node:
    return msgspec.structs.replace(node, regions=tuple(map(rewrite, node.regions))) if node.regions else node
