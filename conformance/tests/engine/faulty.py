"""An honest backend that computes with NumPy, and a way to make it wrong in one thing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

import fairlead.numpy
from fairlead.backend import API_VERSION, Capabilities, NoOptions, Probe, Support
from fairlead.ir import Graph, Node
from fairlead.registry import registry
from fairlead_conformance import Declined, Failed, Observation, Subject
from fairlead_conformance._graphs import check_graph
from fairlead_conformance._inputs import drawn

DTYPES = ("bool", "u8", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64")

Run = Callable[[Graph, Sequence[Any]], Sequence[Any]]
"""How a backend runs a graph on tensors."""


def honest(graph: Graph, inputs: Sequence[Any]) -> list[torch.Tensor]:
    """The graph by NumPy; bfloat16 and float16 go there and back without a loss."""
    arrays = [array(x) if isinstance(x, torch.Tensor) else x for x in inputs]
    return [tensor(x) for x in fairlead.numpy.run(graph, arrays)]


def array(x: torch.Tensor) -> Any:
    import ml_dtypes

    if x.dtype is torch.bfloat16:
        return x.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return x.numpy()


def tensor(x: Any) -> torch.Tensor:
    import numpy

    x = numpy.array(x)  # in memory of its own
    if x.dtype.name == "bfloat16":
        return torch.from_numpy(x.view(numpy.int16)).view(torch.bfloat16)
    return torch.from_numpy(x)


class FaultyExecutable:
    def __init__(self, backend: Faulty, graph: Graph, constants: Mapping[int, torch.Tensor]) -> None:
        self._backend = backend
        self._graph = graph
        self._constants = dict(constants)
        self.baked = frozenset(constants)
        self.fresh_outputs = backend.fresh_outputs
        self.writes = backend.writes
        self._run = backend.prepare(graph)
        if constants and backend.refits:
            self.refit = self._refit

    def __call__(self, inputs: Sequence[Any], /) -> Sequence[Any]:
        free = iter(inputs)
        count = len(self._graph.inputs)
        given = [self._constants[i] if i in self.baked else next(free) for i in range(count)]
        if isinstance(inputs, list):
            inputs.clear()  # which the contract allows, so whoever calls it may not read the list again
        return self._run(self._graph, given)

    def _refit(self, constants: Mapping[int, torch.Tensor], /) -> None:
        self._constants.update(constants)


class Faulty:
    """A backend whose ``prepare`` gives a function for each graph, the honest one unless it is told otherwise."""

    name = "faulty"
    api_version = API_VERSION
    options_type = NoOptions

    def __init__(
        self,
        run: Run = honest,
        *,
        prepare: Callable[[Graph], Run] | None = None,
        fresh_outputs: bool = True,
        writes: bool = False,
        refits: bool = False,
        declines: Mapping[str, Support] | None = None,
        **capabilities: Any,
    ) -> None:
        self.prepare = prepare or (lambda graph: run)
        self.fresh_outputs = fresh_outputs
        self.writes = writes
        self.refits = refits
        self.declines = declines or {}
        defaults = {"devices": ("cpu",), "dtypes": DTYPES, "training": True, "dynamic_shapes": True}
        self.capabilities = Capabilities(**{**defaults, **capabilities})

    def probe(self) -> Probe:
        return Probe(ok=True, devices=("cpu",))

    def supports(self, node: Node, /) -> Support:
        return self.declines.get(node.op, Support.yes())

    def compile(self, graph: Graph, options: NoOptions, constants: Mapping[int, torch.Tensor], /) -> FaultyExecutable:
        return FaultyExecutable(self, graph, constants)


def judged(backend: Faulty, graph: Graph, inputs: Sequence[Any] | None = None, seed: int = 0) -> Observation:
    """What is seen of one graph; raises `Failed` and `Declined` as `check_graph` does."""
    registry.register(backend, replace=True)
    try:
        seen = Observation()
        check_graph(graph, drawn(graph, seed) if inputs is None else inputs, Subject(backend.name, seed=seed), seen)
        return seen
    finally:
        registry.unregister(backend.name)


def failure(backend: Faulty, graph: Graph, inputs: Sequence[Any] | None = None, seed: int = 0) -> tuple[str, str]:
    """The status and the check by which a backend fails; empty where it passes."""
    try:
        judged(backend, graph, inputs, seed)
    except Failed as failed:
        return failed.status.value, failed.check
    except Declined:
        return "DECLINED", ""
    return "", ""


__all__ = ["Faulty", "array", "failure", "honest", "judged", "tensor"]
