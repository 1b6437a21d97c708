"""What core would hand to a backend of a graph: its Parts, after the passes that come before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import torch

from fairlead.backend import Level, Support
from fairlead.ir import Graph, Node, TensorType, Value, row_major
from fairlead.partition import DRAWS, Part, assign, split, verdict
from fairlead.passes import (
    canonicalize,
    decompose,
    eliminate_common_subexpressions,
    fold_constants,
    recognize_composites,
    split_dropout,
    substitute,
)
from fairlead.placement import Why
from fairlead_conformance._observation import Declined, Failed
from fairlead_conformance._status import Status
from fairlead_conformance._subject import Subject

__all__ = ["laid_out", "parts_of", "prepared"]


def prepared(graph: Graph, subject: Subject) -> Graph:
    """The graph as core would show it to this backend: composites that it does not keep are taken apart."""
    capabilities = subject.capabilities
    graph = recognize_composites(canonicalize(graph))
    if not capabilities.rng:
        graph = split_dropout(graph)
    graph = decompose(graph, capabilities.keeps)
    return eliminate_common_subexpressions(fold_constants(graph))


def laid_out(graph: Graph, inputs: Sequence[Any]) -> Graph:
    """The graph with the strides of these inputs in its types, as capture writes them down.

    Torch captures anew where an input comes in another layout, so a backend may rely on them.
    """
    own = {
        item.value.id: Value(item.value.id, _with_strides(item.value.type, x))
        for item, x in zip(graph.inputs, inputs, strict=True)
        if isinstance(x, torch.Tensor) and isinstance(item.value.type, TensorType) and item.value.type.is_static
    }
    changed = {i.value.id: own[i.value.id] for i in graph.inputs if own.get(i.value.id, i.value) != i.value}
    if not changed:
        return graph
    return msgspec.structs.replace(
        graph,
        inputs=tuple(msgspec.structs.replace(i, value=changed.get(i.value.id, i.value)) for i in graph.inputs),
        nodes=tuple(msgspec.structs.replace(n, args=substitute(n.args, changed)) for n in graph.nodes),
        outputs=tuple(
            msgspec.structs.replace(o, value=changed.get(o.value.id, o.value)) if isinstance(o.value, Value) else o
            for o in graph.outputs
        ),
    )


def _with_strides(type_: TensorType, x: torch.Tensor) -> TensorType:
    strides = None if x.stride() == row_major(tuple(x.shape)) else x.stride()
    return msgspec.structs.replace(type_, strides=strides)


def parts_of(graph: Graph, subject: Subject) -> tuple[Part, ...]:
    """The Parts of a prepared graph in order: the backend's, and those that core has torch draw or compute.

    Views that outputs are, which core has torch make, are the backend's here: it is to be right about them as well.
    Raises `Declined` where it refuses a node, and `Failed` where that breaks what it declares.
    """
    answers: dict[int, Support] = {}

    def ask(_: str, node: Node) -> Support:
        if id(node) not in answers:
            answers[id(node)] = _verdict(subject, node, graph)
        return answers[id(node)]

    assignment = assign(graph, subject.name, (), ask)
    takers: list[str] = []
    refused: list[tuple[Node, Support]] = []
    for node, placed in zip(graph.nodes, assignment.nodes, strict=True):
        if placed.why in (Why.random, Why.collective, Why.number):
            takers.append(DRAWS)
            continue
        takers.append(subject.name)
        if not ask(subject.name, node).accepted:
            refused.append((node, ask(subject.name, node)))
    if refused:
        _refuse(refused, subject)
    return split(graph, takers, subject.name)


def _verdict(subject: Subject, node: Node, graph: Graph) -> Support:
    try:
        return verdict(subject.backend, node, graph.kind)
    except Exception as error:
        what = f"supports({node.op}) raised {type(error).__name__}: {error}"
        raise Failed(Status.FAIL_COMPILE, "supports-never-raises", what) from error


def _refuse(refused: Sequence[tuple[Node, Support]], subject: Subject) -> None:
    for node, answer in refused:
        # A backend that runs some of an op says so of the rest; "planned" and "impossible" contradict the promise.
        if answer.level is not Level.PARTIAL and _promised(node, subject):
            what = f"{node.op} is among the capabilities' ops, and declined: {answer.reason or 'no reason given'}"
            raise Failed(Status.FAIL_OVERCLAIM, "ops", what)
    raise Declined({node.op: answer.reason or "no reason given" for node, answer in refused})


def _promised(node: Node, subject: Subject) -> bool:
    """Whether the capabilities list the op, for the dtypes of this node."""
    capabilities = subject.capabilities
    if node.op not in capabilities.ops:
        return False
    values = [*node.operands(), *(r for r in node.results if r is not None)]
    dtypes = {v.type.dtype.value for v in values if isinstance(v.type, TensorType)}
    return dtypes <= set(capabilities.ops[node.op] or capabilities.dtypes)
