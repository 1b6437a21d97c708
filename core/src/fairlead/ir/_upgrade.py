"""Versions of ops: what changed from one to the next, and how a node is rewritten forward and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from fairlead.errors import ArgumentError, IRVersionError
from fairlead.ir._model import Graph, Module, Node, OpUse, Value
from fairlead.ir._types import Type

NewValue: TypeAlias = Callable[[Type], Value]
"""Gives a value of this type with a number that the graph does not have."""

Rewrite: TypeAlias = Callable[[Node, NewValue], "tuple[Node, ...] | None"]
"""The nodes that say the same in the other version and define the same results, or None where it cannot be said."""


class OpChange(msgspec.Struct, frozen=True):
    """The step of an op from ``version - 1`` to ``version``, which opset ``opset`` was the first to have.

    ``signature`` is the frozen signature of the older version. An upgrade always succeeds; a downgrade gives None for a
    node that uses what the older version did not have.
    """

    op: str
    version: int
    opset: int
    signature: str
    upgrade: Callable[[Node, NewValue], tuple[Node, ...]]
    downgrade: Rewrite


CHANGES: dict[str, tuple[OpChange, ...]] = {}
"""By op, its changes from version 2 on, in order. Opset 1 is the first, so there is none yet; tests have their own."""


def current_version(op: str) -> int:
    """The version of an op that this Fairlead writes; 1 for ops that it does not know."""
    changes = CHANGES.get(op)
    return changes[-1].version if changes else 1


def upgrade(module: Module, where: str, known: Mapping[str, OpUse]) -> Module:
    """The module with each op at its current version, and ``known`` telling their current signatures.

    An `IRVersionError` names an op of a newer version.
    """
    steps = {}
    for op, use in module.ops.items():
        if use.version > current_version(op) and (op in CHANGES or op in known):
            raise IRVersionError(
                f"it uses version {use.version} of {op}; this Fairlead reads up to {current_version(op)}",
                where=where,
                next="pip install --upgrade fairlead, or write the file with an older opset",
            )
        steps[op] = tuple(change.upgrade for change in CHANGES.get(op, ()) if change.version > use.version)
    if not any(steps.values()):
        return module
    graphs = tuple([_rewritten(g, steps) for g in module.graphs])
    return _with_ops(module, graphs, {op: known.get(op, OpUse(current_version(op))) for op in steps if steps[op]})


def downgrade(module: Module, opset: int, since: Callable[[str], int]) -> Module:
    """The module with each op at the version that an older opset has.

    An `ArgumentError` names an op that is newer than that opset, or that says what its older version could not.
    """
    steps: dict[str, tuple[Rewrite, ...]] = {}
    older = {}
    for op, use in module.ops.items():
        if op not in CHANGES and since(op) > opset:
            raise _cannot(op, f"opset {since(op)} is the first to have it", opset)
        changes = [c for c in CHANGES.get(op, ()) if opset < c.opset and c.version <= use.version]
        steps[op] = tuple(change.downgrade for change in reversed(changes))
        if changes:
            older[op] = OpUse(changes[0].version - 1, changes[0].signature)
    if not older:
        return module
    return _with_ops(module, tuple([_rewritten(g, steps, opset) for g in module.graphs]), older)


def _with_ops(module: Module, graphs: tuple[Graph, ...], changed: Mapping[str, OpUse]) -> Module:
    used = sorted({n.op for g in graphs for n in g.walk()})
    ops = {op: changed.get(op) or module.ops.get(op) or OpUse(current_version(op)) for op in used}
    return msgspec.structs.replace(module, graphs=graphs, ops=ops)


def _rewritten(graph: Graph, steps: Mapping[str, tuple[Rewrite, ...]], opset: int = 0) -> Graph:
    """The graph, regions included, with the steps of its op applied to each node, one after the other."""
    next_id = graph.next_id()

    def new_value(type_: Type) -> Value:
        nonlocal next_id
        next_id += 1
        return Value(next_id - 1, type_)

    nodes: list[Node] = []
    for node in graph.nodes:
        regions = tuple([_rewritten(r, steps, opset) for r in node.regions])
        nodes += _applied(msgspec.structs.replace(node, regions=regions), steps.get(node.op, ()), new_value, opset)
    return msgspec.structs.replace(graph, nodes=tuple(nodes))


def _applied(node: Node, steps: tuple[Rewrite, ...], new_value: NewValue, opset: int) -> tuple[Node, ...]:
    nodes: tuple[Node, ...] = (node,)
    for step in steps:
        # A step rewrites what has this op; what an earlier step put beside it stays.
        after: list[Node] = []
        for one in nodes:
            found = step(one, new_value) if one.op == node.op else (one,)
            if found is None:
                raise _cannot(node.op, f"`{node.op}` at {node.location or 'an unknown line'} uses what is newer", opset)
            after += [n if n.location else msgspec.structs.replace(n, location=node.location) for n in found]
        nodes = tuple(after)
    return nodes


def _cannot(op: str, why: str, opset: int) -> ArgumentError:
    return ArgumentError(
        f"{op} cannot be written for opset {opset}: {why}",
        where="fairlead.ir.write",
        next="write for a newer opset, or decompose the op before",
    )
