"""Runs a graph of one CUDA device: torch's memory for inputs, weights and results, in order with its streams."""

from __future__ import annotations

import contextlib
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import onnxruntime
import torch
from onnxruntime.capi import _pybind_state as ort

from fairlead.ir import Graph
from fairlead_onnx import ModelFile, lower
from fairlead_onnxrt._cuda_session import open_cuda_session, with_sizes_of_tensors
from fairlead_onnxrt._cuda_target import CUDA_TARGET
from fairlead_onnxrt._devices import cuda_devices, declines
from fairlead_onnxrt._options import OnnxRuntimeOptions
from fairlead_onnxrt._signature import BOOL, BoundInput, bound_input, signature_of

__all__ = ["CudaExecutable"]

_ALIGNED = 16
"""Bytes. Kernels read so many at once, and refuse or fail where memory begins elsewhere."""

T = TypeVar("T")


class CudaExecutable:
    """A graph as a session of ONNX Runtime's CUDA provider. ``baked`` are weights, which are bound once, not copied.

    The session has a stream of its own. It waits for torch's current stream before a call's kernels run, and that one
    for the results: so memory of inputs and results is used again only behind the call. A call does not wait.
    """

    fresh_outputs = True

    def __init__(
        self,
        graph: Graph,
        options: OnnxRuntimeOptions,
        constants: Mapping[int, torch.Tensor],
        file: ModelFile | None = None,
    ) -> None:
        if (reason := declines(graph)) is not None:
            raise ValueError(reason)
        self.baked = frozenset(constants)
        self._graph = with_sizes_of_tensors(graph, self.baked)
        self._device = torch.device("cuda", torch.device(cuda_devices(graph)[0]).index or 0)
        self.file = lower(self._graph, target=CUDA_TARGET).file() if file is None else file
        self._options = options
        self._signature = signature_of(self._graph, self.file, self.baked)
        self._to_cpu = [v.tensor.device == "cpu" for v in graph.output_values()]
        self._lock = threading.Lock()
        with torch.cuda.device(self._device):
            self._stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            self._begins, self._ends = (torch.cuda.Event() for _ in range(2))  # type: ignore[no-untyped-call]
            self._nowhere = torch.zeros(1, dtype=torch.int64, device=self._device)
            self._session = self._opened()
        self._at = onnxruntime.OrtDevice.make("cuda", self._device.index)._get_c_device()
        self._on_host = ort.OrtDevice(ort.OrtDevice.cpu(), ort.OrtDevice.default_memory(), 0)
        self._binding = ort.SessionIOBinding(self._session._sess)
        self._run_options = ort.RunOptions()
        self._run_options.add_run_config_entry("disable_synchronize_execution_providers", "1")
        infos = zip(self._session.get_inputs(), self._session.get_input_memory_infos(), strict=True)
        self._read_on_host = {given.name for given, info in infos if info.name == "Cpu"}
        self.refit(constants)

    def readable(self) -> Mapping[str, str]:
        """The model as it was lowered, and as ONNX Runtime rewrote it, in ONNX's text form."""
        with tempfile.TemporaryDirectory(prefix="fairlead-") as folder, torch.cuda.device(self._device):
            written = Path(folder, "model.onnx")
            self._opened(written)
            optimized = ModelFile(written.read_bytes(), self.file.inputs, self.file.outputs).text()
        return {"onnx.txt": self.file.text(), "optimized.onnx.txt": optimized}

    def refit(self, constants: Mapping[int, torch.Tensor], /) -> None:
        """Bind other weights, or other values of the same: they are inputs of the session."""
        with self._lock, torch.cuda.device(self._device):
            self._weights = []
            for i, weight in constants.items():
                spec = bound_input(self._graph, i, self.file.inputs[i])
                if spec.name is not None:
                    self._weights.append(self._bind(spec, self._ready(spec, weight.detach())))

    def __call__(self, inputs: Sequence[Any], /) -> list[torch.Tensor]:
        with torch.cuda.device(self._device):
            if torch.cuda.is_current_stream_capturing():
                raise _recorded(self._graph)
            specs = zip(self._signature.inputs, inputs, strict=True)
            given = [(spec, self._ready(spec, x)) for spec, x in specs if spec.name is not None]
            results = [
                torch.empty(shape, dtype=out.dtype, device=self._device)
                for out, shape in zip(self._signature.outputs, self._signature.shapes(inputs), strict=True)
            ]
            held = None if self.file.check is None else torch.empty((), dtype=torch.bool, device=self._device)
            with self._lock:
                for spec, tensor in given:
                    self._bind(spec, tensor)
                for out, tensor in zip(self._signature.outputs, results, strict=True):
                    self._bind_result(out.name, out.element, tensor)
                if held is not None:
                    self._bind_result(self.file.check, BOOL, held)
                self._enough_memory(self._run)
            if held is not None:
                torch._assert_async(held, f"index out of range in graph @{self._graph.name}"[:_LONGEST])
        return [t.cpu() if moved else t for t, moved in zip(results, self._to_cpu, strict=True)]

    def _run(self) -> None:
        with self._in_order():
            self._session._sess.run_with_iobinding(self._binding, self._run_options)

    @contextlib.contextmanager
    def _in_order(self) -> Iterator[None]:
        """Within, what the session does comes after what torch's current stream has been given, and before the rest."""
        current = torch.cuda.current_stream()
        self._begins.record(current)
        self._stream.wait_event(self._begins)
        try:
            yield
        finally:  # also where half of it failed: what was begun reads the inputs
            self._ends.record(self._stream)
            current.wait_event(self._ends)

    def _ready(self, spec: BoundInput, given: Any) -> torch.Tensor:
        """An input as the session reads it: itself, or a copy on torch's current stream.

        A number, and a tensor of one on the CPU, is written by a kernel: a copy would wait. What ONNX Runtime reads on
        the host (sizes that no tensor has) is copied there, which waits.
        """
        on_host = spec.name in self._read_on_host
        if spec.is_scalar:
            return torch.full((), given, dtype=torch.int64, device="cpu" if on_host else self._device)
        if on_host:
            tensor: torch.Tensor = given.cpu().contiguous()
            return tensor
        if given.device.type == "cpu":
            return torch.full((), given.item(), dtype=given.dtype, device=self._device)
        tensor = given.resolve_neg().contiguous()
        return tensor.clone() if tensor.data_ptr() % _ALIGNED else tensor

    def _bind(self, spec: BoundInput, tensor: torch.Tensor) -> torch.Tensor:
        device = self._on_host if tensor.device.type == "cpu" else self._at
        shape = tuple(tensor.shape) if spec.shape is None else spec.shape
        self._binding.bind_input(spec.name, device, spec.element, shape, self._address(tensor))
        return tensor

    def _bind_result(self, name: str | None, element: int, tensor: torch.Tensor) -> None:
        self._binding.bind_output(name, self._at, element, tuple(tensor.shape), self._address(tensor))

    def _address(self, tensor: torch.Tensor) -> int:
        """Where a tensor begins; of one without elements an address that binding takes."""
        return tensor.data_ptr() or self._nowhere.data_ptr()

    def _opened(self, written: Path | None = None) -> onnxruntime.InferenceSession:
        return self._enough_memory(
            lambda: open_cuda_session(self._graph, self.file, self._options, self._stream, written)
        )

    def _enough_memory(self, act: Callable[[], T]) -> T:
        """What ``act`` gives; where memory is short, once more after torch has given back what it keeps unused."""
        try:
            return act()
        except Exception as error:
            if not _is_out_of_memory(error):
                raise
        torch.cuda.empty_cache()
        try:
            return act()
        except Exception as error:
            if not _is_out_of_memory(error):
                raise
            raise _out_of_memory(self._graph, self._device, error) from error


_LONGEST = 250
"""Characters that torch takes of the message of an assertion."""


_OUT_OF_MEMORY = ("Failed to allocate memory", "out of memory", "smaller than requested bytes", "STATUS_ALLOC_FAILED")


def _is_out_of_memory(error: Exception) -> bool:
    text = str(error)
    return any(sign in text for sign in _OUT_OF_MEMORY)


def _out_of_memory(graph: Graph, device: torch.device, error: Exception) -> torch.OutOfMemoryError:
    free, total = torch.cuda.mem_get_info(device)
    return torch.OutOfMemoryError(
        f"ONNX Runtime ran out of memory on {device} with graph @{graph.name} of {len(graph.nodes)} nodes: "
        f"{(str(error).splitlines() or [''])[0][:300]}\n"
        f"  from: fairlead-onnxrt, onnxruntime {onnxruntime.__version__}; {free >> 20} of {total >> 20} MiB are free\n"
        "  next: pass smaller batches, or drop other programs: what each has taken for its intermediates it keeps"
    )


def _recorded(graph: Graph) -> RuntimeError:
    return RuntimeError(
        "ONNX Runtime's session takes memory while it runs, which cannot become part of a CUDA graph\n"
        f"  from: fairlead-onnxrt, graph @{graph.name}\n"
        "  next: record without this backend, or call the program outside torch.cuda.graph"
    )
