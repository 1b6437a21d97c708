"""The backend object: probe, supports, compile."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from importlib import metadata
from typing import TYPE_CHECKING

import msgspec

from fairlead.backend import API_VERSION, Capabilities, Executable, Options, Precision, Probe, Support
from fairlead.ir import Graph, Node
from fairlead_openxla._devices import cuda_devices, cuda_plugin
from fairlead_openxla._options import OpenXLAOptions

if TYPE_CHECKING:
    import torch

    from fairlead_openxla._executable import XlaExecutable

__all__ = ["OpenXLABackend"]


class OpenXLABackend:
    """Runs graphs that XLA compiled."""

    name = "openxla"
    api_version = API_VERSION
    capabilities = Capabilities.of_package("fairlead_openxla")

    @property
    def options_type(self) -> type[Options]:
        return OpenXLAOptions

    def probe(self) -> Probe:
        """Whether jax is installed; it is not imported, which takes a second."""
        if any(importlib.util.find_spec(name) is None for name in ("jax", "jaxlib")):
            return Probe(ok=False, reason="jax is not installed: pip install jax")
        versions = {name: metadata.version(name) for name in ("jax", "jaxlib")}
        if (plugin := cuda_plugin()) is None or not _torch_has_cuda():
            return Probe(ok=True, devices=("cpu",), versions=versions)
        return Probe(ok=True, devices=("cpu", "cuda"), versions=versions | dict([plugin]))

    def supports(self, node: Node, /) -> Support:
        """Whether there is a rule that writes this node exactly."""
        from fairlead_openxla._support import supports

        return supports(node)

    def declines_graph(self, graph: Graph, /) -> str | None:
        """Training steps of convolutions, in which torch is faster, and graphs of several CUDA devices."""
        from fairlead_openxla._support import declines

        return declines(graph)

    def options_for_precision(self, options: OpenXLAOptions, precision: Precision, /) -> OpenXLAOptions:
        """TF32 where less than float32 is accepted, as XLA has nothing below it on CUDA, and else no tiles on a CPU."""
        if precision == "highest":
            return msgspec.structs.replace(options, precision="f32", winograd=False)
        return msgspec.structs.replace(options, precision="tf32")

    def compile(self, graph: Graph, options: OpenXLAOptions, constants: Mapping[int, torch.Tensor], /) -> XlaExecutable:
        """The graph, compiled now where its sizes are known, and else at the first call with each set of sizes."""
        return _executable(graph)(graph, options, constants)

    def dump(self, executable: Executable, /) -> bytes:
        """The machine code of every set of sizes that was compiled; weights are its inputs."""
        from fairlead_openxla._executable import XlaExecutable

        assert isinstance(executable, XlaExecutable)
        return executable.dump()

    def load(
        self, data: bytes, graph: Graph, options: OpenXLAOptions, constants: Mapping[int, torch.Tensor], /
    ) -> XlaExecutable:
        """The executable, which compiles for further sizes as before. ``data`` has to be trusted: it holds a pickle."""
        return _executable(graph)(graph, options, constants, data)


def _executable(graph: Graph) -> type[XlaExecutable]:
    if cuda_devices(graph):
        from fairlead_openxla._cuda import CudaExecutable

        return CudaExecutable
    from fairlead_openxla._executable import XlaExecutable

    return XlaExecutable


def _torch_has_cuda() -> bool:
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.device_count() > 0
