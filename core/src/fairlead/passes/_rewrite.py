"""The one loop that every pass runs on: nodes in order, each kept or replaced by a rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import msgspec

from fairlead.ir import Argument, Graph, Location, Node, Output, Type, Value

Replacement: TypeAlias = Sequence[Value | None]
"""What stands for each result of a replaced node from here on."""

Rule: TypeAlias = "Callable[[Node, Emitter], Replacement | None]"
"""Given a node whose operands are already rewritten: None keeps it, anything else replaces its results."""


class Emitter:
    """Where a rule puts new nodes; they take the location of the node that is being replaced."""

    def __init__(self, next_id: int) -> None:
        self.nodes: list[Node] = []
        self.location: Location | None = None
        self._next = next_id

    def __call__(self, op: str, args: tuple[Argument, ...], type_: Type) -> Value:
        """Append a node with one result of this type."""
        return self.many(op, args, (type_,))[0]

    def many(self, op: str, args: tuple[Argument, ...], types: Iterable[Type]) -> tuple[Value, ...]:
        """Append a node with several results."""
        results = []
        for type_ in types:
            results.append(Value(self._next, type_))
            self._next += 1
        self.nodes.append(Node(op, args, tuple(results), self.location))
        return tuple(results)


def rewrite(graph: Graph, rule: Rule) -> Graph:
    """The graph with the rule applied to each node once, in order."""
    emitter = Emitter(graph.next_id())
    renamed: dict[int, Value] = {}
    for old in graph.nodes:
        node = msgspec.structs.replace(old, args=substitute(old.args, renamed)) if renamed else old
        emitter.location = node.location
        replacement = rule(node, emitter)
        if replacement is None:
            emitter.nodes.append(node)
            continue
        for result, value in zip(node.results, replacement, strict=True):
            if result is not None and value is not None:
                renamed[result.id] = value
    return msgspec.structs.replace(graph, nodes=tuple(emitter.nodes), outputs=with_values(graph.outputs, renamed))


def with_values(outputs: tuple[Output, ...], renamed: Mapping[int, Value]) -> tuple[Output, ...]:
    """The outputs with values replaced by id."""
    return tuple(
        msgspec.structs.replace(o, value=renamed[o.value.id])
        if isinstance(o.value, Value) and o.value.id in renamed
        else o
        for o in outputs
    )


def substitute(args: tuple[Argument, ...], renamed: Mapping[int, Value]) -> tuple[Argument, ...]:
    """The arguments with values replaced by id."""
    out: list[Argument] = []
    for arg in args:
        if isinstance(arg, Value):
            out.append(renamed.get(arg.id, arg))
        else:
            out.append(substitute(arg, renamed) if isinstance(arg, tuple) else arg)
    return tuple(out)


def by_op(rules: Mapping[str, Rule]) -> Rule:
    """One rule out of a table by op."""

    def rule(node: Node, emit: Emitter) -> Replacement | None:
        found = rules.get(node.op)
        return None if found is None else found(node, emit)

    return rule
