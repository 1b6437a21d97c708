"""Where each node went and why, as data that a program can read and a table that a person can."""

from __future__ import annotations

import enum
from collections import Counter

import msgspec

from fairlead.ir import Kind, Location

__all__ = ["Decline", "GraphPlacement", "NodePlacement", "PartPlacement", "Placement", "Why"]


class Why(enum.StrEnum):
    """How a node came to its backend.

    Chosen, declined by the one that was asked for, drawn by torch, communication between processes that is left to
    torch, a view that torch makes, one Python number computed from others, or hoisted out.
    """

    native = "native"
    declined = "declined"
    random = "random"
    collective = "collective"
    view = "view"
    number = "number"
    hoisted = "hoisted"


class NodePlacement(msgspec.Struct, frozen=True):
    """One node: the backend that runs it, why, and the line of the user's program that it stems from.

    ``within``: the ops in the regions of a node of control flow, which run where the node does.
    """

    op: str
    backend: str
    why: Why
    reason: str = ""
    location: Location | None = None
    within: tuple[str, ...] = ()


class PartPlacement(msgspec.Struct, frozen=True):
    """A run of nodes that one backend compiles together. ``backend`` ran it; ``note`` says where another was to."""

    backend: str
    nodes: int
    note: str = ""


class Decline(msgspec.Struct, frozen=True):
    """Nodes of one op that were declined for one reason, and the first line of the user's program that has one."""

    op: str
    reason: str
    backend: str
    count: int
    location: Location | None = None


class GraphPlacement(msgspec.Struct, frozen=True):
    """One captured graph."""

    name: str
    kind: Kind
    backend: str
    nodes: tuple[NodePlacement, ...]
    parts: tuple[PartPlacement, ...] = ()

    @property
    def total(self) -> int:
        """How many nodes had to be placed.

        All but what torch draws, exchanges or shows, single numbers, and what was hoisted.
        """
        return sum(n.why in (Why.native, Why.declined) for n in self.nodes)

    @property
    def native(self) -> int:
        """How many of them run on the backend that was asked for."""
        return sum(n.why is Why.native for n in self.nodes)

    @property
    def declines(self) -> tuple[Decline, ...]:
        """The nodes that were declined, grouped by op and reason, the most frequent first."""
        groups: Counter[tuple[str, str, str]] = Counter()
        first: dict[tuple[str, str, str], Location | None] = {}
        for node in self.nodes:
            if node.why is Why.declined:
                key = (node.op, node.reason, node.backend)
                groups[key] += 1
                first[key] = first.get(key) or node.location
        return tuple(Decline(*key, count, first[key]) for key, count in groups.most_common())


class Placement(msgspec.Struct, frozen=True):
    """Every graph that a compiled program has made so far, in order."""

    graphs: tuple[GraphPlacement, ...]

    @property
    def native_share(self) -> float:
        """The share of nodes that run on the backend that was asked for; 1.0 where there are none."""
        total = sum(g.total for g in self.graphs)
        return sum(g.native for g in self.graphs) / total if total else 1.0

    @property
    def declines(self) -> tuple[Decline, ...]:
        """The declined nodes of all graphs."""
        return tuple(d for g in self.graphs for d in g.declines)

    def to_json(self) -> str:
        """The whole report as JSON."""
        return msgspec.json.encode(self).decode()

    def __str__(self) -> str:
        """A table: one row a graph, then one a reason."""
        from fairlead._placement_table import render

        return render(self)
