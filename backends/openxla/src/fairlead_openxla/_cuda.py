"""Tensors on CUDA as arrays and back, and calls of what XLA compiled for them, of which none waits on the host."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import torch
from torch.utils import dlpack

from fairlead.ir import Graph
from fairlead_openxla._devices import device_of, jax_device
from fairlead_openxla._executable import XlaExecutable
from fairlead_openxla._lower import Compiled
from fairlead_openxla._memory import plain, to_capsule
from fairlead_openxla._numbers import Array
from fairlead_openxla._options import OpenXLAOptions
from fairlead_openxla._places import Places
from fairlead_openxla._releases import direct_exporter, direct_importer
from fairlead_openxla._settings import calling
from fairlead_openxla._streams import Order

__all__ = ["CudaExecutable", "CudaMemory", "cuda_memory"]

_LONGEST = 250

_NOTHING = contextlib.nullcontext()

_ALIGNED = 16
"""Bytes. XLA refuses to read what begins elsewhere (``kEntryParameterAlignBytes``)."""


@functools.cache
def cuda_memory(device: torch.device) -> CudaMemory:
    """The memory of a device; one for the process, as its streams are."""
    return CudaMemory(device)


class CudaMemory:
    """Tensors of one device as arrays and back."""

    def __init__(self, device: torch.device) -> None:
        self.index = device.index or 0
        self._device = torch.device("cuda", self.index)
        self._xla = jax_device(self._device)
        self.order = Order(self._xla, self.index)
        self._import, self._export = direct_importer(), direct_exporter()
        if not self._goes_directly():
            self._import = self._export = None

    def current(self) -> contextlib.AbstractContextManager[Any]:
        """A block in which the device is torch's current one, as it mostly is."""
        return _NOTHING if torch.cuda.current_device() == self.index else torch.cuda.device(self.index)

    def ready(self, tensor: torch.Tensor) -> torch.Tensor:
        """A tensor as XLA can read it: itself, or a copy on torch's current stream.

        A number that is on the CPU is written by a kernel, as torch's own kernels take it: a copy would wait.
        """
        if tensor.device.type == "cpu":
            if tensor.dim() == 0:
                return torch.full((), tensor.item(), dtype=tensor.dtype, device=self._device)
            tensor = tensor.to(self._device)
        tensor = plain(tensor)
        return tensor.clone() if tensor.data_ptr() % _ALIGNED else tensor

    def imported(self, tensor: torch.Tensor, waits: bool = True) -> Array:
        """A tensor that is `ready` as an array over its memory.

        Where it ``waits``, programs that read it wait for what torch had done when `Order.current` was called last.
        """
        if self._import is None:
            return jax.dlpack.from_dlpack(tensor)
        return self._import(to_capsule(tensor), self._xla, self.order.handle if waits else None)

    def exported(self, arrays: Sequence[Array], stream: int) -> list[torch.Tensor]:
        """The results of one program as tensors that own their memory, for which the stream of this handle waits.

        Each is told of the stream, though they are there at once: without one, jax waits on the host.
        """
        if self._export is None:
            return [dlpack.from_dlpack(array) for array in arrays]
        return [dlpack.from_dlpack(self._export(array, stream)) for array in arrays]

    def wait(self) -> None:
        """Until the device has done all that it was given: what it gives back may be read by torch's kernels still."""
        torch.cuda.synchronize(self._device)

    def _goes_directly(self) -> bool:
        """Whether jax's private functions do what the public ones end in; tried once, for that is not promised."""
        try:
            with torch.cuda.device(self._device):
                sample = torch.tensor([1, 2**40], device=self._device)
                stream, _ = self.order.current()
                (found,) = self.exported([self.imported(sample)], stream)
                return found.tolist() == [1, 2**40] and found.data_ptr() == sample.data_ptr()
        except Exception:  # they may have become other functions
            return False


class CudaExecutable(XlaExecutable):
    """A graph of one CUDA device as XLA's programs.

    An index that is out of range ends as in eager, by an assertion on the device: whether it is, the host would have to
    wait for.
    """

    def __init__(
        self,
        graph: Graph,
        options: OpenXLAOptions,
        constants: Mapping[int, torch.Tensor],
        stored: bytes | None = None,
    ) -> None:
        self._memory = cuda_memory(device_of(graph))
        self._to_cpu = [k for k, v in enumerate(graph.output_values()) if v.tensor.device == "cpu"]
        super().__init__(graph, options, constants, stored)

    def __call__(self, inputs: Sequence[Any], /) -> list[torch.Tensor]:
        memory = self._memory
        if torch.cuda.is_current_stream_capturing():
            raise _recorded(self._graph)
        with calling(), memory.current():
            program = self._program_for(inputs)
            arrays = self._arrays.copy()
            read: list[torch.Tensor] = []
            for gap, at, order in self._gaps:
                tensor = inputs[at] if order is None else inputs[at].permute(order)
                arrays[gap], tensor = self._places.array(gap, tensor)
                read.append(tensor)
            stream, waits = memory.order.current()
            if not read:  # nothing that could wait
                memory.wait()
            elif waits:
                arrays[self._gaps[0][0]] = memory.imported(memory.ready(read[0]))
            tensors = memory.exported(program.run(*arrays), stream)
            del arrays, read  # not sooner: from here on whoever takes the memory of copies waits
        if program.checks:
            torch._assert_async(tensors.pop(), _message(program))
        for k in self._to_cpu:
            tensors[k] = tensors[k].cpu()
        return tensors

    def _found_places(self) -> Places:
        return Places(self._memory.ready, lambda tensor: self._memory.imported(tensor, waits=False))

    def _read(self, weight: torch.Tensor) -> Array:
        tensor = self._memory.ready(weight)
        self._memory.order.current()
        return self._memory.imported(tensor)

    def _compiled(self, sizes: Mapping[str, int]) -> Compiled:
        """XLA tries kernels while it compiles, in memory that torch may be reading."""
        self._memory.wait()
        return super()._compiled(sizes)


def _message(program: Compiled) -> str:
    """What may be wrong, each once, in as many bytes as torch takes."""
    return "; ".join(dict.fromkeys(text for _, text in program.checks)).encode()[:_LONGEST].decode(errors="ignore")


def _recorded(graph: Graph) -> RuntimeError:
    return RuntimeError(
        "XLA runs on streams of its own, which cannot become part of a CUDA graph\n"
        f"  from: fairlead-openxla, graph @{graph.name}\n"
        "  next: record without this backend, or call the program outside torch.cuda.graph"
    )
