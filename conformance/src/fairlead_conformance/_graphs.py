"""One graph through a backend, as core would hand it over, with every check that holds for any graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from fairlead import interpret
from fairlead.backend import Executable
from fairlead.ir import Graph, Value
from fairlead.partition import verdict
from fairlead.passes import canonicalize, decompose, recognize_composites, split_dropout
from fairlead_conformance._observation import Declined, Failed, Observation
from fairlead_conformance._status import Status
from fairlead_conformance._subject import Subject

__all__ = ["check_graph", "compiled", "prepared"]


def check_graph(graph: Graph, inputs: Sequence[Any], subject: Subject, seen: Observation) -> None:
    """Compile and run the graph and compare every output with what the graph means.

    ``inputs``: a tensor or an int for each graph input. Raises `Declined` where the backend refuses a node, and
    `Failed` where anything is wrong.
    """
    graph = prepared(graph, subject)
    executable = compiled(graph, subject)
    seen.native.update(node.op for node in graph.walk())
    try:
        results = executable(inputs)
    except Exception as error:
        raise Failed(Status.FAIL_RUN, "runs", f"{type(error).__name__}: {error}") from error
    expected = interpret.run(graph, inputs)
    for index, (got, wanted) in enumerate(zip(results, expected, strict=True)):
        _compare(index, got, wanted, seen)


def prepared(graph: Graph, subject: Subject) -> Graph:
    """The graph as core would show it to this backend: composites that it does not keep are taken apart."""
    capabilities = subject.capabilities
    graph = recognize_composites(canonicalize(graph))
    if not capabilities.rng:
        graph = split_dropout(graph)
    return decompose(graph, capabilities.keeps)


def compiled(graph: Graph, subject: Subject) -> Executable:
    """The graph compiled, if the backend takes every node of it."""
    reasons = {
        node.op: answer.reason
        for node in graph.nodes
        if not (answer := verdict(subject.backend, node, graph.kind)).accepted
    }
    if reasons:
        raise Declined(reasons)
    try:
        return interpret.in_clean_thread(lambda: subject.backend.compile(graph, subject.options, {}))
    except Exception as error:
        raise Failed(Status.FAIL_COMPILE, "compiles", f"{type(error).__name__}: {error}") from error


def _compare(index: int, got: Any, wanted: Any, seen: Observation) -> None:
    if isinstance(wanted, Value) or not isinstance(wanted, torch.Tensor):
        return
    got = got if isinstance(got, torch.Tensor) else torch.utils.dlpack.from_dlpack(got)
    if got.dtype != wanted.dtype:
        raise Failed(Status.FAIL_DTYPE, "dtype", f"output {index} is {got.dtype}, not {wanted.dtype}")
    if got.shape != wanted.shape:
        raise Failed(Status.FAIL_SHAPE, "shape", f"output {index} is {list(got.shape)}, not {list(wanted.shape)}")
    seen.compared += wanted.numel()
    if not torch.allclose(got, wanted, rtol=1e-4, atol=1e-5, equal_nan=True):
        raise Failed(Status.FAIL_MISMATCH, "values", f"output {index} has wrong values")
