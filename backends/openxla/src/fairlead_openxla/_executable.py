"""Runs what XLA compiled: torch's memory for inputs, fresh outputs, one program for each set of sizes, any thread."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from fairlead.ir import Graph, ScalarType
from fairlead_openxla._artifact import dumped, loaded
from fairlead_openxla._convolution import weight_layouts
from fairlead_openxla._lower import Compiled, compile_written, write
from fairlead_openxla._memory import exported, imported
from fairlead_openxla._numbers import Array
from fairlead_openxla._options import OpenXLAOptions
from fairlead_openxla._settings import calling

__all__ = ["XlaExecutable"]


class XlaExecutable:
    """A graph as XLA's programs. ``baked`` are the inputs whose tensors it holds; ``stored`` is what `dump` gave."""

    fresh_outputs = True

    def __init__(
        self,
        graph: Graph,
        options: OpenXLAOptions,
        constants: Mapping[int, torch.Tensor],
        stored: bytes | None = None,
    ) -> None:
        self.baked = frozenset(constants)
        self._graph = graph
        self._options = options
        self._permuted = weight_layouts(graph, self.baked)
        self._passed = _passed(graph, self.baked)
        self._programs = {} if stored is None else loaded(stored, self._passed.sources)
        self._lock = threading.Lock()
        self.refit(constants)
        if not self._passed.sources:
            self._program(())

    def dump(self) -> bytes:
        """The programs that have been compiled so far."""
        with self._lock:
            return dumped(self._programs, self._passed.sources)

    def refit(self, constants: Mapping[int, torch.Tensor], /) -> None:
        """Place new weights; what is compiled reads them as inputs."""
        inputs = self._graph.inputs
        with calling():
            self._placed = {i: self._place(inputs[i].value.id, t.detach()) for i, t in constants.items()}

    def _place(self, value: int, weight: torch.Tensor) -> Array:
        order = self._permuted.get(value)
        return imported(weight if order is None else weight.permute(order))

    def __call__(self, inputs: Sequence[Any], /) -> list[torch.Tensor]:
        sizes = self._passed.sizes(inputs)
        program = self._programs.get(sizes) or self._program(sizes)
        placed = self._placed
        with calling():
            arrays = [placed[i] if at is None else imported(inputs[at]) for i, at in self._passed.tensors]
            results = program(arrays)
        return [exported(r) for r in results]

    def _program(self, sizes: tuple[int, ...]) -> Compiled:
        with self._lock:
            known = self._programs.get(sizes)
            if known is None:
                self._refuse_one_more(sizes)
                env = dict(zip(self._passed.names, sizes, strict=True))
                known = compile_written(write(self._graph, env, self._permuted), self._graph, self._options)
                self._programs[sizes] = known
            return known

    def _refuse_one_more(self, sizes: tuple[int, ...]) -> None:
        if len(self._programs) < self._options.executables:
            return
        shown = ", ".join(f"{n}={s}" for n, s in zip(self._passed.names, sizes, strict=True))
        raise RuntimeError(
            f"XLA compiles for fixed sizes, and this graph has been compiled for {len(self._programs)} sets of them; "
            f"{shown} would be one more\n"
            f"  from: fairlead-openxla, graph @{self._graph.name}\n"
            f'  next: pad to fewer sizes, raise options={{"executables": {2 * self._options.executables}}}, or use a '
            "backend that has symbolic sizes"
        )


class _Passed:
    """Where a call finds what: the tensors of the program, and the integers that it is compiled for.

    ``tensors`` has, for each tensor input of the graph, its index and its place in the call, None where it is baked;
    ``sources``, for each of ``names``, a place in the call, and a dimension where the integer is a size.
    """

    def __init__(
        self,
        tensors: tuple[tuple[int, int | None], ...],
        names: tuple[str, ...],
        sources: tuple[tuple[int, int | None], ...],
    ) -> None:
        self.tensors = tensors
        self.names = names
        self.sources = sources

    def sizes(self, inputs: Sequence[Any]) -> tuple[int, ...]:
        return tuple(inputs[at] if dim is None else inputs[at].shape[dim] for at, dim in self.sources)


def _passed(graph: Graph, baked: frozenset[int]) -> _Passed:
    place = {index: at for at, index in enumerate(i for i in range(len(graph.inputs)) if i not in baked)}
    numbers = [i for i, item in enumerate(graph.inputs) if isinstance(item.value.type, ScalarType)]
    tensors = tuple((i, place.get(i)) for i in range(len(graph.inputs)) if i not in numbers)
    named = [(s.name, (place[s.source[0]], s.source[1])) for s in graph.symbols]
    named += [(f"in{i}", (place[i], None)) for i in numbers]
    return _Passed(tensors, tuple(n for n, _ in named), tuple(s for _, s in named))
