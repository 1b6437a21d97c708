"""Stands for a backend while a program is made and run: torch runs its Parts, and what each is given is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from fairlead._bisect._candidate import Candidate
from fairlead.backend import Backend, Capabilities, Options, Probe, Selective, Support
from fairlead.interpret import to_fx
from fairlead.ir import Graph, Node, Role

__all__ = ["Shadow", "shadow_of"]


def shadow_of(backend: Backend[Any]) -> Shadow:
    """A shadow that takes the same graphs and nodes."""
    return _SelectiveShadow(backend) if isinstance(backend, Selective) else Shadow(backend)


class Shadow:
    """A backend like another, without its compiler. ``parts`` are those that have run, in order, as they ran first."""

    def __init__(self, backend: Backend[Any]) -> None:
        self.inner = backend
        self.name: str = backend.name
        self.api_version: int = backend.api_version
        self.capabilities: Capabilities = backend.capabilities
        self.options_type: type[Options] = backend.options_type
        self.parts: list[Candidate] = []

    def probe(self) -> Probe:
        """As the backend says."""
        return self.inner.probe()

    def supports(self, node: Node, /) -> Support:
        """As the backend says."""
        return self.inner.supports(node)

    def compile(self, graph: Graph, options: Options, constants: Mapping[int, torch.Tensor], /) -> _Interpreted:
        """The graph, op by op, which keeps what it is called with."""
        return _Interpreted(graph, frozenset(constants), self.parts)


class _SelectiveShadow(Shadow):
    def declines_graph(self, graph: Graph, /) -> str | None:
        assert isinstance(self.inner, Selective)
        return self.inner.declines_graph(graph)


class _Interpreted:
    baked: frozenset[int] = frozenset()
    fresh_outputs = True

    def __init__(self, graph: Graph, constants: frozenset[int], parts: list[Candidate]) -> None:
        self._graph = graph
        self._constants = constants
        self._parts = parts
        self._run = to_fx(graph).forward
        self._is_known = False

    def __call__(self, inputs: Sequence[Any], /) -> Sequence[Any]:
        if not self._is_known:
            self._is_known = True
            kept = tuple(map(_kept, inputs, (item.role for item in self._graph.inputs)))
            self._parts.append(Candidate(self._graph, kept, self._constants))
        results: Sequence[Any] = self._run(*inputs)
        return results


def _kept(x: Any, role: Role) -> Any:
    """The value as it is now; a parameter stays as it is while a model is called."""
    return x.clone() if isinstance(x, torch.Tensor) and role is not Role.parameter else x
