"""Compute once what only the weights determine."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import msgspec

from fairlead.ir import DimExpr, Graph, Input, Node, Output, Role, TensorType
from fairlead.passes._dead import remove_dead_nodes
from fairlead.passes._memory import seen_by_outputs
from fairlead.passes._random import draws

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
    is a graph output, random, a collective, custom (it may do anything), of a symbolic shape, or cheaper to make than
    to keep (constants, views) is hoisted.
    """
    determined = _determined(graph, static)
    moved = {id(n) for n in determined} - _made_again(graph, determined)
    made = {r.id for n in determined if id(n) in moved for r in n.results if r is not None}
    rest = tuple(n for n in graph.nodes if id(n) not in moved)
    boundary = {v.id: v for n in rest for v in n.operands() if v.id in made}
    if not boundary:
        return None
    setup = Graph(
        f"{graph.name}_setup",
        graph.kind,
        graph.inputs,
        tuple(determined),
        tuple(Output(v, Role.intermediate) for v in boundary.values()),
        graph.symbols,
    )
    inputs = (*graph.inputs, *(Input(v, Role.constant, f"hoisted_{i}") for i, v in enumerate(boundary.values())))
    main = msgspec.structs.replace(graph, inputs=inputs, nodes=rest)
    return Hoisted(remove_dead_nodes(setup), remove_dead_nodes(main))


def _determined(graph: Graph, static: Collection[int]) -> list[Node]:
    """The nodes that depend on nothing but static inputs, and that may be hoisted."""
    known = {i.value.id for index, i in enumerate(graph.inputs) if index in static}
    outputs = seen_by_outputs(graph)
    determined: list[Node] = []
    for node in graph.nodes:
        if _is_movable(node, known, outputs):
            determined.append(node)
            known.update(r.id for r in node.results if r is not None)
    return determined


def _is_movable(node: Node, known: set[int], outputs: set[int]) -> bool:
    results = [r for r in node.results if r is not None]
    return (
        all(v.id in known for v in node.operands())
        and node.op.startswith(("aten.", "prims.", "nn."))
        and not draws(node)
        and not any(r.id in outputs for r in results)
        and all(isinstance(r.type, TensorType) and r.type.is_static for r in results)
        and not _has_expression(node.args)
    )


def _made_again(graph: Graph, determined: list[Node]) -> set[int]:
    """The cheap ones of the nodes that the rest reads, by identity: keeping their results would only cost memory."""
    inside = {id(n) for n in determined}
    read = {v.id for n in graph.nodes if id(n) not in inside for v in n.operands()}
    again: set[int] = set()
    for node in reversed(determined):
        if node.op in _RECREATED and any(r is not None and r.id in read for r in node.results):
            again.add(id(node))
            read.update(v.id for v in node.operands())
    return again


def _has_expression(arg: object) -> bool:
    if isinstance(arg, tuple):
        return any(map(_has_expression, arg))
    return isinstance(arg, DimExpr)
