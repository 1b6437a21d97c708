"""Graphs of training, which Inductor compiles: weights change at each step, so nothing is packed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fairlead.backend import Executable
from fairlead.ir import Graph
from fairlead_inductor import InductorOptions
from fairlead_inductor import backend as inductor

__all__ = ["TrainingExecutable"]


class TrainingExecutable:
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
        self._run: Executable = compiled

    def dump(self) -> bytes:
        """What Inductor stores of its code."""
        return inductor.dump(self._run)

    def readable(self) -> Mapping[str, str]:
        """Inductor's code, generated anew."""
        readable: Callable[[], Mapping[str, str]] = self._run.readable  # type: ignore[attr-defined]
        return readable()

    def __call__(self, inputs: Sequence[Any], /) -> Sequence[Any]:
        return self._run(inputs)
