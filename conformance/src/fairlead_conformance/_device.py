"""The device that a backend is judged on: where its graphs and inputs are, and what a case must not leave there.

What is right is worked out on the CPU. A graph of the suite, and its inputs, are written down for the CPU, and placed
on the device when a backend, or eager beside it, runs them; results come back to be compared.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import torch

from fairlead.ir import Graph, TensorType, Token, opset
from fairlead_conformance._device_names import kind_of
from fairlead_conformance._retyped import Change, retyped

__all__ = [
    "device_of",
    "exact_convolutions",
    "generators",
    "home",
    "limit_memory",
    "lost",
    "memory_held",
    "onto",
    "placed",
    "restored",
    "settle",
]


def placed(graph: Graph, device: str) -> Graph:
    """The graph with all its tensors on ``device``, and factories that make theirs there.

    >>> from fairlead.ir import Builder
    >>> b = Builder()
    >>> _ = b.output(b.op("aten.relu.default", b.input("f32[3]")))
    >>> placed(b.graph(), "cuda:0").nodes[0].result.tensor.device
    'cuda:0'
    """
    if device_of(graph) == device:
        return graph

    def type_(old: TensorType) -> TensorType:
        return msgspec.structs.replace(old, device=device)

    def token(old: Token) -> Token:
        return Token("device", device) if old.kind == "device" else old

    return _with_devices(retyped(graph, Change(type_, token)), device)


def _with_devices(graph: Graph, device: str) -> Graph:
    """The graph with ``device`` for factories that name none, which the IR has make theirs on the CPU."""
    nodes = []
    for node in graph.nodes:
        known = opset.spec(node.op)
        names = (
            [p.name for p in opset.signature(known.signature).operands] if known and not any(node.operands()) else []
        )
        if "device" in names and node.args[place := names.index("device")] is None:
            args = (*node.args[:place], Token("device", device), *node.args[place + 1 :])
            node = msgspec.structs.replace(node, args=args)
        nodes.append(node)
    return msgspec.structs.replace(graph, nodes=tuple(nodes))


def device_of(graph: Graph) -> str:
    """The device of the graph's tensors, which all have one in the suite; the CPU where there are none."""
    values = [*(i.value for i in graph.inputs), *(r for n in graph.nodes for r in n.results if r is not None)]
    return next((v.type.device for v in values if isinstance(v.type, TensorType)), "cpu")


def onto(tensor: torch.Tensor, device: str) -> torch.Tensor:
    """The tensor in memory of its own on ``device``, with its strides and offset."""
    whole = torch.as_strided(tensor, (tensor.untyped_storage().nbytes() // tensor.itemsize,), (1,), 0)
    memory = whole.clone() if device == "cpu" else whole.to(device)
    return memory.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())


def home(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor on the CPU, itself where it is there."""
    return tensor.cpu()


def settle(device: str) -> None:
    """Wait until everything that was asked of the device is done, so that its errors are raised here."""
    if kind_of(device) == "cuda":
        torch.cuda.synchronize(device)


def lost(device: str) -> str:
    """Why this process can use the device no more, as after a failed assertion in a kernel; empty where it can."""
    try:
        settle(device)
    except (RuntimeError, AssertionError) as error:  # a torch without CUDA asserts
        return f"{error}".strip().splitlines()[0]
    return ""


def limit_memory(device: str, most: int) -> None:
    """Let torch in this process take at most so many bytes of the device's memory."""
    if kind_of(device) == "cuda":
        whole = torch.cuda.get_device_properties(device).total_memory
        torch.cuda.set_per_process_memory_fraction(min(most / whole, 1.0), device)


def memory_held(device: str) -> int:
    """Bytes of the device's memory that tensors of this process have; 0 on the CPU, where the system knows."""
    return torch.cuda.memory_allocated(device) if kind_of(device) == "cuda" else 0


def generators(device: str) -> tuple[torch.Tensor, ...]:
    """The states of torch's generators: the CPU's, and the device's where that is another."""
    own = torch.get_rng_state()
    return (own,) if kind_of(device) == "cpu" else (own, torch.cuda.get_rng_state(device))


def restored(device: str, states: Sequence[torch.Tensor]) -> None:
    """Set the generators to what `generators` gave."""
    torch.set_rng_state(states[0])
    if kind_of(device) == "cuda":
        torch.cuda.set_rng_state(states[1], device)


@contextlib.contextmanager
def exact_convolutions() -> Iterator[None]:
    """Within, cuDNN's convolutions of float32 are of float32: it rounds them to TF32 unless it is told."""
    flags: Any = torch.backends.cudnn
    before = flags.allow_tf32
    flags.allow_tf32 = False
    try:
        yield
    finally:
        flags.allow_tf32 = before
