"""A backend that runs everything in torch, in time that passes as it says, and what it is tried with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from fairlead.backend import API_VERSION, Capabilities, NoOptions, Probe, Support
from fairlead.interpret import to_fx
from fairlead.ir import DType, Graph, Kind, Node

SIZE = 2**20


class Clock:
    """Time that passes where a backend says so, and nowhere else."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


class Timed:
    """Runs everything in torch, in the time that it says, and takes note of each run."""

    api_version = API_VERSION
    options_type = NoOptions
    capabilities = Capabilities(devices=("cpu",), dtypes=tuple(DType), training=True, dynamic_shapes=True)

    def __init__(self, name: str, clock: Clock) -> None:
        self.name = name
        self.clock = clock
        self.seconds: Callable[[Graph, Sequence[Any]], float] = lambda graph, inputs: 1.0
        self.runs: list[Kind] = []
        self.fails = False

    def probe(self) -> Probe:
        return Probe(ok=True)

    def supports(self, node: Node, /) -> Support:
        return Support.yes()

    def compile(self, graph: Graph, options: NoOptions, constants: Mapping[int, Tensor], /) -> Any:
        return Executable(self, graph)


class Executable:
    baked: frozenset[int] = frozenset()
    fresh_outputs = True

    def __init__(self, backend: Timed, graph: Graph) -> None:
        self._backend, self._graph = backend, graph
        self._run = to_fx(graph).forward

    def __call__(self, inputs: Sequence[Any], /) -> Sequence[Tensor]:
        if self._backend.fails:
            raise torch.OutOfMemoryError(f"no memory for {self._backend.name}")
        self._backend.runs.append(self._graph.kind)
        self._backend.clock.now += self._backend.seconds(self._graph, inputs)
        results: Sequence[Tensor] = self._run(*inputs)
        return results


class Written(nn.Module):
    """Its writes are in place where it runs as captured, which AOTAutograd makes functions of."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(SIZE))
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.count.add_(1)
        y = x * self.weight
        return y.sin_().mul_(2)
