"""Compute once what only the weights determine."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import msgspec

from fairlead.ir import DimExpr, Graph, Input, Node, Output, Role, TensorType
from fairlead.passes._dead import remove_dead_nodes
from fairlead.passes._memory import seen_by_outputs
from fairlead.passes._random import draws_random_numbers

_RECREATED = frozenset(
    [
        "aten.full.default",
        "aten.view.default",
        "aten.permute.default",
        "aten.expand.default",
        "aten.unsqueeze.default",
        "aten.squeeze.dims",
        "aten.select.int",
        "aten.slice.Tensor",
        "aten.split_with_sizes.default",
        "aten.unbind.int",
        "aten.diagonal.default",
        "aten.clone.default",
    ]
)


class Hoisted(NamedTuple):
    """``setup`` computes, from the static inputs, the values of the last ``len(setup.outputs)`` inputs of ``main``."""

    setup: Graph
    main: Graph


def hoist(graph: Graph, static: Collection[int]) -> Hoisted | None:
    """Split off the nodes that depend on nothing but the inputs ``static`` (by index); None where there are none.

    Before: any graph. After: ``main`` has one more constant input for each hoisted value that it reads. Nothing that
    is a graph output, random, of a symbolic shape, or cheaper to make than to keep (constants, views) is hoisted.
    """
    moved = _movable(graph, static)
    if not moved:
        return None
    inside = {id(n) for n in moved}
    rest = tuple(n for n in graph.nodes if id(n) not in inside)
    made = {r.id: r for n in moved for r in n.results if r is not None}
    read = {v.id for n in rest for v in n.operands()}
    boundary = tuple(v for v in made.values() if v.id in read)
    setup = Graph(
        f"{graph.name}_setup",
        graph.kind,
        graph.inputs,
        tuple(moved),
        tuple(Output(v, Role.intermediate) for v in boundary),
    )
    inputs = (*graph.inputs, *(Input(v, Role.constant, f"hoisted_{i}") for i, v in enumerate(boundary)))
    main = msgspec.structs.replace(graph, inputs=inputs, nodes=rest)
    return Hoisted(remove_dead_nodes(setup), remove_dead_nodes(main))


def _movable(graph: Graph, static: Collection[int]) -> list[Node]:
    known = {i.value.id for index, i in enumerate(graph.inputs) if index in static}
    outputs = seen_by_outputs(graph)
    moved: list[Node] = []
    for node in graph.nodes:
        if _is_movable(node, known, outputs):
            moved.append(node)
            known.update(r.id for r in node.results if r is not None)
    return _without_recreated(graph, moved)


def _is_movable(node: Node, known: set[int], outputs: set[int]) -> bool:
    results = [r for r in node.results if r is not None]
    return (
        all(v.id in known for v in node.operands())
        and not draws_random_numbers(node.op)
        and not any(r.id in outputs for r in results)
        and all(isinstance(r.type, TensorType) and r.type.is_static for r in results)
        and not _has_expression(node.args)
    )


def _without_recreated(graph: Graph, moved: list[Node]) -> list[Node]:
    """Give back the cheap nodes whose results the rest reads: keeping those would only cost memory."""
    inside = {id(n) for n in moved}
    read = {v.id for n in graph.nodes if id(n) not in inside for v in n.operands()}
    kept: list[Node] = []
    for node in reversed(moved):
        ids = [r.id for r in node.results if r is not None]
        if node.op in _RECREATED and any(i in read for i in ids):
            read.update(v.id for v in node.operands())
        else:
            kept.append(node)
    alive = {v.id for n in kept for v in n.operands()}
    kept = [n for n in kept if any(r is not None and (r.id in read or r.id in alive) for r in n.results)]
    return list(reversed(kept))


def _has_expression(arg: object) -> bool:
    if isinstance(arg, tuple):
        return any(map(_has_expression, arg))
    return isinstance(arg, DimExpr)
