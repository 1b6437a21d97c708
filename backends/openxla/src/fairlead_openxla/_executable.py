"""Runs what XLA compiled: torch's memory for inputs, fresh outputs, one program for each set of sizes, any thread."""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from fairlead.ir import Graph, ScalarType
from fairlead.passes import widen_products
from fairlead_openxla._artifact import dumped, loaded
from fairlead_openxla._devices import device_of
from fairlead_openxla._layouts import Layout, input_layouts
from fairlead_openxla._lower import Compiled, Written, compile_written, write
from fairlead_openxla._memory import exported, imported, plain
from fairlead_openxla._numbers import Array
from fairlead_openxla._options import OpenXLAOptions
from fairlead_openxla._places import Places
from fairlead_openxla._rules import wanted
from fairlead_openxla._settings import calling

__all__ = ["XlaExecutable"]

_LOG = logging.getLogger("fairlead.openxla")

_MANY = 8
"""After how many compilations of one graph torch gives up by default, and we warn."""


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
        self._options = options
        self._device = device_of(graph)
        is_cpu = self._device.type == "cpu"
        graph, self._wide = widen_products(graph, self.baked) if is_cpu else (graph, frozenset())
        self._graph = graph
        places = functools.partial(wanted, tiled=options.winograd) if is_cpu else lambda node: None
        self._layouts = input_layouts(graph, self.baked, places)
        self._passed = _passed(graph, self.baked, self._layouts)
        self._programs = {} if stored is None else loaded(stored, self._passed.sources, self._device)
        self._lock = threading.Lock()
        self._places = self._found_places()
        self.refit(constants)
        if not self._passed.sources:
            self._program(())

    def dump(self) -> bytes:
        """The programs that have been compiled so far."""
        with self._lock:
            return dumped(self._programs, self._passed.sources)

    def readable(self) -> Mapping[str, str]:
        """For each set of sizes so far, the StableHLO that XLA was given and the HLO that it made of it."""
        files: dict[str, str] = {}
        for number, (sizes, program) in enumerate(list(self._programs.items())):
            written = self._written(dict(zip(self._passed.names, sizes, strict=True)))
            shown = "".join(f"// {name} = {size}\n" for name, size in zip(self._passed.names, sizes, strict=True))
            files[f"{number}.stablehlo.mlir"] = shown + written.lowered.as_text()
            files[f"{number}.hlo.txt"] = shown + program.run.as_text()
        return files

    def refit(self, constants: Mapping[int, torch.Tensor], /) -> None:
        """Place new weights; what is compiled reads them as inputs."""
        with calling():
            self._arrays = [a for i in self._passed.tensors for a in self._place(i, constants.get(i))]
        gaps = [gap for gap, array in enumerate(self._arrays) if array is None]
        self._gaps = [(gap, *place) for gap, place in zip(gaps, self._passed.places, strict=True)]

    def _place(self, index: int, weight: torch.Tensor | None) -> list[Array | None]:
        """The arrays of an input; of one that is passed, none that is known yet."""
        if weight is None:
            return [None]
        layouts = self._layouts[self._graph.inputs[index].value.id]
        weight = weight.detach().float() if index in self._wide else weight.detach()
        return [self._read(array) for layout in layouts for array in layout.arrays(weight)]

    def _read(self, weight: torch.Tensor) -> Array:
        return imported(weight)

    def _found_places(self) -> Places:
        return Places(plain, imported)

    def __call__(self, inputs: Sequence[Any], /) -> list[torch.Tensor]:
        with calling():
            program, arrays = self.bound(inputs)
            results = program(arrays)
        return [exported(r) for r in results]

    def bound(self, inputs: Sequence[Any], /) -> tuple[Compiled, list[Array]]:
        """The program for inputs of these sizes, and what it is called with, which does not keep the inputs.

        To be called within `calling`.
        """
        arrays = self._arrays.copy()
        for gap, at, order in self._gaps:
            arrays[gap], _ = self._places.array(gap, inputs[at] if order is None else inputs[at].permute(order))
        return self._program_for(inputs), arrays

    def _program_for(self, inputs: Sequence[Any]) -> Compiled:
        sizes = self._passed.sizes(inputs)
        return self._programs.get(sizes) or self._program(sizes)

    def _program(self, sizes: tuple[int, ...]) -> Compiled:
        with self._lock:
            known = self._programs.get(sizes)
            if known is None:
                self._refuse_one_more(sizes)
                env = dict(zip(self._passed.names, sizes, strict=True))
                known = self._programs[sizes] = self._compiled(env)
                self._warn_of_many()
            return known

    def _compiled(self, sizes: Mapping[str, int]) -> Compiled:
        return compile_written(self._written(sizes), self._options)

    def _written(self, sizes: Mapping[str, int]) -> Written:
        return write(self._graph, sizes, self._layouts, self._device, tf32=self._options.precision == "tf32")

    def _warn_of_many(self) -> None:
        if len(self._programs) == _MANY:
            _LOG.warning(
                "graph @%s has been compiled for %d sets of sizes, as XLA has no symbols: pad to fewer, or use a "
                "backend that has symbolic sizes",
                self._graph.name,
                _MANY,
            )

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

    ``tensors`` are the tensor inputs of the graph, and ``places`` has, for those that are not baked, the place in the
    call, and the order of dimensions where it is not the declared one; ``sources`` has, for each of ``names``, a place
    in the call, and a dimension where the integer is a size.
    """

    def __init__(
        self,
        tensors: tuple[int, ...],
        places: tuple[tuple[int, tuple[int, ...] | None], ...],
        names: tuple[str, ...],
        sources: tuple[tuple[int, int | None], ...],
    ) -> None:
        self.tensors = tensors
        self.places = places
        self.names = names
        self.sources = sources

    def sizes(self, inputs: Sequence[Any]) -> tuple[int, ...]:
        return tuple(inputs[at] if dim is None else inputs[at].shape[dim] for at, dim in self.sources)


def _passed(graph: Graph, baked: frozenset[int], layouts: Mapping[int, tuple[Layout, ...]]) -> _Passed:
    place = {index: at for at, index in enumerate(i for i in range(len(graph.inputs)) if i not in baked)}
    numbers = [i for i, item in enumerate(graph.inputs) if isinstance(item.value.type, ScalarType)]
    tensors = tuple(i for i in range(len(graph.inputs)) if i not in numbers)
    found = {i: layouts.get(graph.inputs[i].value.id) for i in tensors}
    places = tuple((place[i], known[0].order if known else None) for i, known in found.items() if i in place)
    named = [(s.name, (place[s.source[0]], s.source[1])) for s in graph.symbols]
    named += [(f"in{i}", (place[i], None)) for i in numbers]
    return _Passed(tensors, places, tuple(n for n, _ in named), tuple(s for _, s in named))
