"""Which device a graph is on, and why ONNX Runtime may not reach it, or is not the one to run it."""

from __future__ import annotations

import functools

from fairlead.ir import Graph, Node, TensorType, Value
from fairlead.passes import trains_convolutions

__all__ = ["CPU", "CUDA", "cuda_devices", "declines", "has_cuda", "is_on_cuda", "out_of_reach"]

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"

_ONLY_CPU = (
    "this build of ONNX Runtime computes on the CPU only: pip uninstall -y onnxruntime, then "
    "pip install --force-reinstall --no-deps onnxruntime-gpu"
)


@functools.cache
def has_cuda() -> bool:
    """Whether the installed build of ONNX Runtime has the provider. It is not loaded."""
    import onnxruntime

    return CUDA in onnxruntime.get_available_providers()


def cuda_devices(graph: Graph) -> list[str]:
    """The CUDA devices of a graph's tensors, by torch's names, in order."""
    values = [item.value for item in graph.inputs]
    values += [result for node in graph.walk() for result in node.results if result is not None]
    return sorted({d for d in map(_device, values) if d is not None and d.startswith("cuda")})


def is_on_cuda(node: Node) -> bool:
    """Whether a node is of CUDA: one of its tensors is there."""
    devices = map(_device, (*node.operands(), *(r for r in node.results if r is not None)))
    return any(d is not None and d.startswith("cuda") for d in devices)


def out_of_reach(node: Node) -> str | None:
    """Why the tensors of a node cannot be had by one session; a number on the CPU can."""
    values = [v for v in node.operands() if not _is_number(v)] + [r for r in node.results if r is not None]
    devices = sorted({d for d in map(_device, values) if d is not None})
    if devices in ([], ["cpu"]):
        return None
    kinds = {device.partition(":")[0] for device in devices}
    if other := kinds - {"cpu", "cuda"}:
        return f"device {min(other)}"
    if not has_cuda():
        return _ONLY_CPU
    if len(devices) > 1:
        return f"tensors on {' and '.join(devices)}: a session is of one device"
    if any(_is_complex(v) for v in values):
        return "ONNX Runtime on CUDA is given no complex numbers"
    return "control flow on CUDA waits for the device at every turn" if node.regions else None


def declines(graph: Graph) -> str | None:
    """Why others run a graph as a whole: torch is faster on this CPU, or it is of several devices."""
    found = set(cuda_devices(graph))
    if not found:
        from fairlead.interpret import quicker_in_bfloat16  # which imports torch

        return trains_convolutions(graph) or quicker_in_bfloat16(graph, folds_norms=True)
    if any(_is_of_cpu(node) for node in graph.nodes):
        found.add("cpu")
    return f"tensors on {' and '.join(sorted(found))}: a session is of one device" if len(found) > 1 else None


def _is_of_cpu(node: Node) -> bool:
    """Whether a node reads and writes nothing but tensors on the CPU, and not numbers alone."""
    values = [*node.operands(), *(r for r in node.results if r is not None)]
    devices = {d for d in map(_device, values) if d is not None}
    return devices == {"cpu"} and not all(map(_is_number, values))  # a session on CUDA computes numbers too


def _device(value: Value) -> str | None:
    return value.type.device if isinstance(value.type, TensorType) else None


def _is_complex(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.type.dtype.is_complex


def _is_number(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.type.shape == () and value.type.device == "cpu"
