"""Graphs of training, which Inductor compiles: weights change at each step, so nothing is packed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairlead.ir import Graph
from fairlead_inductor import InductorOptions
from fairlead_inductor import backend as inductor
from fairlead_ipex._fused import OfInductor

__all__ = ["TrainingExecutable"]


class TrainingExecutable(OfInductor):
    """A forward or a backward in Inductor's code, and what that says of itself."""

    baked: frozenset[int] = frozenset()
    fresh_outputs = True

    def __init__(self, graph: Graph, stored: bytes = b"") -> None:
        """``stored``: what `dump` gave, if anything."""
        self.graph = graph
        options = InductorOptions()
        compiled: Any = inductor.load(stored, graph, options, {}) if stored else inductor.compile(graph, options, {})
        self.takes_parameters: bool = compiled.takes_parameters
        self.steady_strides: bool = compiled.steady_strides
        self.writes: bool = compiled.writes
        self._run = compiled

    def __call__(self, inputs: Sequence[Any], /) -> Sequence[Any]:
        return self._run(inputs)
