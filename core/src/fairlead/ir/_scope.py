"""What a rule of the verifier is, and what it looks at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from fairlead.ir._model import Graph, Value
from fairlead.ir._types import Type


class Scope:
    """What several rules look at: the values that a graph defines, one of each type, and the symbols around it."""

    def __init__(self, graph: Graph, outer: frozenset[str] = frozenset(), depth: int = 0) -> None:
        self.outer = outer
        self.depth = depth
        self.values = [i.value for i in graph.inputs]
        self.values += [r for n in graph.nodes for r in n.results if r is not None]
        # By identity: a graph that is read, and most that are captured, have one object for equal types.
        self.types: list[tuple[Value, Type]] = [
            (v, v.type) for v in {id(v.type): v for v in reversed(self.values)}.values()
        ]


Rule: TypeAlias = Callable[[Graph, Scope], Iterator[str]]
"""Yields what is wrong with a graph, in words."""
