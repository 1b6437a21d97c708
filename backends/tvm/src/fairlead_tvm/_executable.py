"""Runs what TVM compiled: torch's memory for inputs, fresh outputs, a virtual machine for each thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils.dlpack import from_dlpack

from fairlead.ir import DType, Graph, ScalarType, dims
from fairlead.passes import widen_products
from fairlead_tvm import _tvm as t
from fairlead_tvm._artifact import Stored, dumped, loaded
from fairlead_tvm._layouts import input_layouts
from fairlead_tvm._lower import size_names, write
from fairlead_tvm._options import TVMOptions
from fairlead_tvm._rules import wanted
from fairlead_tvm._schedule import Schedule
from fairlead_tvm._tuning import chosen
from fairlead_tvm._turned import turned

__all__ = ["TvmExecutable"]


_STARTED_IN = os.getpid()
"""The process that may have threads for loops, of which a child has none."""


class TvmExecutable:
    """A graph as TVM's program. ``baked`` are the inputs whose tensors it holds; ``stored`` is what `dump` gave."""

    fresh_outputs = True

    def __init__(
        self,
        graph: Graph,
        options: TVMOptions,
        constants: Mapping[int, torch.Tensor],
        stored: bytes | None = None,
    ) -> None:
        self.baked = frozenset(constants)
        graph, self._wide = widen_products(graph, self.baked)
        graph, self._orders = turned(graph, self.baked)
        self._graph = graph
        self._layouts = input_layouts(graph, self.baked, wanted)
        self._threads = 1 if options.threads == "one" or _is_forked() else torch.get_num_threads()
        if stored is None:
            schedules = chosen(graph, self._layouts, threads=self._threads, seconds=options.tune)
            self._program = _compiled(graph, self._layouts, schedules, self._threads)
        else:
            self._program = loaded(stored)
        self._lock = threading.Lock()
        self._names = tuple(size_names(graph))
        place = {index: at for at, index in enumerate(i for i in range(len(graph.inputs)) if i not in self.baked)}
        self._sources = tuple((place[i], d) for i, d in size_names(graph).values())
        self._tensors = tuple(i for i, item in enumerate(graph.inputs) if not isinstance(item.value.type, ScalarType))
        self._places = tuple(place[i] for i in self._tensors if i in place)
        self._halves = tuple(v.tensor.dtype is DType.bf16 for v in graph.output_values())
        self._local = threading.local()
        self.refit(constants)

    def dump(self) -> bytes:
        """The compiled program."""
        return dumped(self._program)

    def readable(self) -> Mapping[str, str]:
        """The program in Relax, and its kernels in TIR, as TVM's script."""
        written = write(self._graph, self._layouts, self._program.schedules, threads=self._threads)
        return {"relax.py": written.module.script()}

    def refit(self, constants: Mapping[int, torch.Tensor], /) -> None:
        """Place new weights; what is compiled reads them as inputs."""
        self._arrays = [a for i in self._tensors for a in self._place(i, constants.get(i))]

    def _place(self, index: int, weight: torch.Tensor | None) -> list[torch.Tensor | None]:
        """The arrays of an input; of one that is passed, none that is known yet."""
        if weight is None:
            return [None]
        layouts = self._layouts[self._graph.inputs[index].value.id]
        weight = weight.detach().float() if index in self._wide else weight.detach()
        lying = weight.permute(self._orders[index]) if index in self._orders else weight
        return [layout.array(_plain(lying)) for layout in layouts]

    def __call__(self, inputs: Sequence[Any], /) -> list[torch.Tensor]:
        sizes = self._sizes(inputs)
        main, arguments = self._bound(inputs, sizes)
        found = list(main(*arguments))
        if found and not isinstance(found[0], torch.Tensor):  # of a call without tensors
            found = [from_dlpack(r) for r in found]
        results, checks = found[: len(self._program.shapes)], found[len(self._program.shapes) :]
        for held, (error, text) in zip(checks, self._program.checks, strict=True):
            if not held.item():
                raise error(text)
        env = dict(zip(self._names, sizes, strict=True))
        shaped = [
            r if shape is None else r.view([dims.evaluate(d, env) for d in shape])
            for r, shape in zip(results, self._program.shapes, strict=True)
        ]
        return [r.view(torch.bfloat16) if half else r for r, half in zip(shaped, self._halves, strict=True)]

    def bound(self, inputs: Sequence[Any], /) -> tuple[Callable[..., Sequence[Any]], list[Any]]:
        """This thread's machine, and what it is called with for these inputs."""
        return self._bound(inputs, self._sizes(inputs))

    def _bound(self, inputs: Sequence[Any], sizes: list[int]) -> tuple[Callable[..., Sequence[Any]], list[Any]]:
        given = (inputs[at] for at in self._places)
        arrays = [_plain(next(given)) if array is None else array for array in self._arrays]
        return self._main(), [*([t.sizes(sizes)] if sizes else ()), *arrays]

    def _sizes(self, inputs: Sequence[Any]) -> list[int]:
        return [inputs[at] if dim is None else inputs[at].shape[dim] for at, dim in self._sources]

    def _main(self) -> Callable[..., Sequence[Any]]:
        """This thread's own machine: a machine has one stack."""
        if self._threads > 1 and _is_forked():
            self._compile_for_one_thread()
        found: Callable[..., Sequence[Any]] | None = getattr(self._local, "main", None)
        if found is None:
            found = self._local.main = t.runner(self._program.program)
        return found

    def _compile_for_one_thread(self) -> None:
        """In a child that was forked: threads stayed with the parent, and a call would wait for them."""
        with self._lock:
            if self._threads > 1:
                self._program = _compiled(self._graph, self._layouts, self._program.schedules, 1)
                self._local, self._threads = threading.local(), 1


def _is_forked() -> bool:
    return os.getpid() != _STARTED_IN


def _compiled(graph: Graph, layouts: Mapping[int, Any], schedules: Mapping[int, Schedule], threads: int) -> Stored:
    written = write(graph, layouts, schedules, threads=threads)
    return Stored(t.compiled(written.module), written.checks, written.shapes, schedules)


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor in order, as kernels read it: bf16 as the bits that they have."""
    found = tensor.resolve_neg().contiguous()
    return found.view(torch.int16) if found.dtype is torch.bfloat16 else found
