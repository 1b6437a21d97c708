"""Compute once what is written twice."""

from __future__ import annotations

import struct
from collections.abc import Hashable

import msgspec

from fairlead.ir import Argument, Complex, Graph, Node, Value
from fairlead.passes._dead import remove_dead_nodes
from fairlead.passes._memory import is_view, seen_by_outputs
from fairlead.passes._random import draws
from fairlead.passes._regions import in_regions
from fairlead.passes._rewrite import substitute, with_values


def eliminate_common_subexpressions(graph: Graph) -> Graph:
    """The graph with one node in place of all that compute the same, in regions too.

    Before: any graph. After: no two pure nodes have the same op, arguments and types of results, but where both are in
    the memory of outputs, which eager keeps apart, and where one is a view that an output is. Numbers are the same only
    with the same kind and bits: neither ``1`` and ``1.0`` nor ``0.0`` and ``-0.0`` are. Random numbers, collectives,
    custom ops and control flow are not pure.
    """
    graph = in_regions(graph, eliminate_common_subexpressions)
    return remove_dead_nodes(_Shared(graph).graph())


class _Shared:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._shown = seen_by_outputs(graph)
        self._nodes: list[Node] = []
        self._known: dict[Hashable, list[int]] = {}
        """Where in the list are the nodes with an op and arguments."""
        self._renamed: dict[int, Value] = {}

    def graph(self) -> Graph:
        for old in self._graph.nodes:
            node = msgspec.structs.replace(old, args=substitute(old.args, self._renamed)) if self._renamed else old
            self._add(node)
        outputs = with_values(self._graph.outputs, self._renamed)
        return msgspec.structs.replace(self._graph, nodes=tuple(self._nodes), outputs=outputs)

    def _add(self, node: Node) -> None:
        if not _is_pure(node):
            self._nodes.append(node)
            return
        positions = self._known.setdefault((node.op, key(node.args)), [])
        for position in positions:
            merged = self._merged(self._nodes[position], node)
            if merged is not None:
                self._nodes[position] = merged
                return
        positions.append(len(self._nodes))
        self._nodes.append(node)

    def _merged(self, first: Node, second: Node) -> Node | None:
        """The first node with the results of both, if it may stand for the second, whose results it then takes over."""
        shown = self._is_shown(first), self._is_shown(second)
        if all(shown) or (any(shown) and is_view(first.op)) or len(first.results) != len(second.results):
            return None
        pairs = list(zip(first.results, second.results, strict=True))
        if any(a is not None and b is not None and a.type != b.type for a, b in pairs):
            return None
        self._renamed.update((b.id, a) for a, b in pairs if a is not None and b is not None)
        merged = msgspec.structs.replace(first, results=tuple(a or b for a, b in pairs))
        if any(shown):
            self._shown.update(r.id for r in merged.results if r is not None)
        return merged

    def _is_shown(self, node: Node) -> bool:
        return any(r is not None and r.id in self._shown for r in node.results)


def _is_pure(node: Node) -> bool:
    return node.op.startswith(("aten.", "prims.", "nn.")) and not node.regions and not draws(node)


def key(arg: Argument) -> Hashable:
    """Equal for arguments that mean the same; Python's own ``==`` takes 1, 1.0 and True for one, and -0.0 for 0.0."""
    match arg:
        case tuple():
            return tuple(map(key, arg))
        case Value(id=number):
            return Value, number
        case float():
            return float, struct.pack("d", arg)
        case Complex(re=re, im=im):
            return Complex, struct.pack("dd", re, im)
    return type(arg), arg
