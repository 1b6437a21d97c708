"""Which device a graph is on, what jax calls it, and why it may be out of reach."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
from collections.abc import Iterator
from importlib import metadata
from typing import TYPE_CHECKING, Any

from fairlead.ir import Graph, TensorType

if TYPE_CHECKING:
    import torch

__all__ = ["cuda_devices", "cuda_plugin", "device_of", "jax_device", "unreachable"]

_PREALLOCATE = "XLA_PYTHON_CLIENT_PREALLOCATE"


def cuda_devices(graph: Graph) -> list[str]:
    """The CUDA devices of a graph's tensors, by torch's names, in order."""
    types = [item.value.type for item in graph.inputs]
    types += [result.type for node in graph.walk() for result in node.results if result is not None]
    return sorted({t.device for t in types if isinstance(t, TensorType) and t.device.startswith("cuda")})


def device_of(graph: Graph) -> torch.device:
    """Where a graph is computed: on its CUDA device, or the CPU where it has none."""
    import torch

    found = cuda_devices(graph)
    if len(found) > 1:
        raise ValueError(f"a program of XLA is of one device, and the graph is on {', '.join(found)}")
    return torch.device(found[0] if found else "cpu")


@functools.cache
def cuda_plugin() -> tuple[str, str] | None:
    """The wheel by which jax knows CUDA, and its version; None where there is none. It is not imported."""
    for module in ("jax_cuda13_plugin", "jax_cuda12_plugin"):
        if importlib.util.find_spec(module) is not None:
            name = module.replace("_", "-")
            with contextlib.suppress(metadata.PackageNotFoundError):
                return name, metadata.version(name)
    return None


def unreachable(device: str) -> str | None:
    """Why jax, as it is installed and configured here, computes nothing on a device of torch's; None where it does."""
    kind = device.partition(":")[0]
    if kind == "cpu":
        return None
    if kind != "cuda":
        return f"device {kind}"
    if cuda_plugin() is None:
        return 'jax is installed without CUDA: pip install "jax[cuda13]", or "jax[cuda12]" where torch has CUDA 12'
    import jax

    platforms = jax.config.jax_platforms
    if platforms and not {"cuda", "gpu"} & set(platforms.split(",")):
        return f"jax is told to use {platforms} alone (jax_platforms, JAX_PLATFORMS)"
    return None


@functools.cache
def jax_device(device: torch.device) -> Any:
    """What jax calls a device of torch's. It starts jax's runtime for it.

    Where jax would start CUDA along with the CPU, which takes half a gigabyte of a GPU, the CPU is started alone.
    """
    import jax

    if device.type == "cpu" and unreachable("cuda") is None:
        from fairlead_openxla._releases import cpu_apart

        if (apart := cpu_apart()) is not None:
            return apart
    with _memory_left_alone():
        found = jax.local_devices(backend=device.type)
    index = device.index or 0
    return next(d for d in found if d.platform == "cpu" or d.local_hardware_id == index)


@contextlib.contextmanager
def _memory_left_alone() -> Iterator[None]:
    """Within, jax starts without taking three quarters of a GPU's memory, unless its user has said how it should."""
    if _PREALLOCATE in os.environ:
        yield
        return
    os.environ[_PREALLOCATE] = "false"
    try:
        yield
    finally:
        del os.environ[_PREALLOCATE]
