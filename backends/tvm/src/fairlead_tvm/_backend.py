"""The backend object: probe, supports, compile."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from importlib import metadata
from typing import TYPE_CHECKING

from fairlead.backend import API_VERSION, Capabilities, Executable, Options, Probe, Support
from fairlead.ir import Graph, Node
from fairlead_tvm._options import TVMOptions

if TYPE_CHECKING:
    import torch

    from fairlead_tvm._executable import TvmExecutable

__all__ = ["TVMBackend"]

_PACKAGES = {"tvm": "apache-tvm", "tvm_ffi": "apache-tvm-ffi"}


class TVMBackend:
    """Runs graphs that TVM compiled."""

    name = "tvm"
    api_version = API_VERSION
    capabilities = Capabilities.of_package("fairlead_tvm")

    @property
    def options_type(self) -> type[Options]:
        return TVMOptions

    def probe(self) -> Probe:
        """Whether apache-tvm is installed; it is not imported, which takes a second."""
        if any(importlib.util.find_spec(name) is None for name in _PACKAGES):
            return Probe(ok=False, reason="apache-tvm is not installed: pip install apache-tvm")
        versions = {name: metadata.version(name) for name in _PACKAGES.values()}
        return Probe(ok=True, devices=("cpu",), versions=versions)

    def supports(self, node: Node, /) -> Support:
        """Whether there is a rule that writes this node exactly."""
        from fairlead_tvm._support import supports

        return supports(node)

    def declines_graph(self, graph: Graph, /) -> str | None:
        """Graphs in which torch is faster."""
        from fairlead_tvm._support import declines

        return declines(graph)

    def compile(self, graph: Graph, options: TVMOptions, constants: Mapping[int, torch.Tensor], /) -> TvmExecutable:
        """The graph, compiled once for all sizes that its symbols may have."""
        from fairlead_tvm._executable import TvmExecutable

        return TvmExecutable(graph, options, constants)

    def dump(self, executable: Executable, /) -> bytes:
        """The compiled program; weights are its inputs."""
        from fairlead_tvm._executable import TvmExecutable

        assert isinstance(executable, TvmExecutable)
        return executable.dump()

    def load(
        self, data: bytes, graph: Graph, options: TVMOptions, constants: Mapping[int, torch.Tensor], /
    ) -> TvmExecutable:
        """The executable that `dump` stored. ``data`` has to be trusted: it holds machine code."""
        from fairlead_tvm._executable import TvmExecutable

        return TvmExecutable(graph, options, constants, data)
