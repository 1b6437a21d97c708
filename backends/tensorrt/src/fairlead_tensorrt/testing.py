"""The build-only profile: the backend tensorrt where there is no device. Engines are built, and torch computes.

Nothing that this finds says that an engine runs. It says that a graph was lowered, that TensorRT's parser read it, and
that its builder made an engine of it, which can be looked at.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

import fairlead_tensorrt
from fairlead.backend import API_VERSION, Capabilities, Executable, NoOptions, Options, Probe, Support
from fairlead.ir import Graph, Node
from fairlead.registry import registry
from fairlead_tensorrt import Engine, TensorRTOptions

if TYPE_CHECKING:
    import torch

__all__ = ["BuildOnly", "Made"]


@dataclass(frozen=True)
class Made:
    """One engine, how many tensors were baked into it, and the seconds that lowering and building took."""

    engine: Engine
    constants: int
    seconds: float


class BuildOnly:
    """A backend for `fairlead.registry.Registry.register` that keeps, in ``made``, an engine of each Part.

    It takes what tensorrt takes, as long as it is on the CPU. Needs ``tensorrt_rtx``.
    """

    name = "tensorrt-build-only"
    api_version = API_VERSION
    options_type: type[Options] = TensorRTOptions
    capabilities: Capabilities = msgspec.structs.replace(fairlead_tensorrt.backend.capabilities, devices=("cpu",))

    def __init__(self) -> None:
        self.made: list[Made] = []

    def probe(self) -> Probe:
        """Ready wherever the SDK imports."""
        found = fairlead_tensorrt.backend.probe()
        if "tensorrt_rtx" not in found.versions:
            return Probe(ok=False, reason="tensorrt_rtx is not installed, which builds without a device")
        return Probe(ok=True, devices=("cpu",), versions=found.versions)

    def supports(self, node: Node, /) -> Support:
        """What tensorrt says."""
        return fairlead_tensorrt.backend.supports(node)

    def compile(self, graph: Graph, options: TensorRTOptions, constants: Mapping[int, torch.Tensor], /) -> Executable:
        """Build an engine, and give back what has torch compute the graph."""
        start = time.perf_counter()
        engine = fairlead_tensorrt.build(graph, constants=constants, options=options)
        self.made.append(Made(engine, len(constants), time.perf_counter() - start))
        found: Executable = registry.get("eager").compile(graph, NoOptions(), constants)
        return found
