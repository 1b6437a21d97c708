"""The reference backend: each op as torch runs it.

In core's own wheel, so that Fairlead runs with nothing else installed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fairlead.backend import API_VERSION, Capabilities, Executable, NoOptions, Probe, Support
from fairlead.errors import ArtifactFormatError
from fairlead.ir import Graph, Node, fingerprint

if TYPE_CHECKING:
    import torch


class EagerExecutable:
    """A graph as a torch function; its outputs are whatever torch makes, views of inputs included."""

    baked: frozenset[int] = frozenset()
    fresh_outputs = True
    takes_parameters = True

    def __init__(self, graph: Graph, function: Callable[..., Sequence[Any]]) -> None:
        self.graph = graph
        self._function = function

    def __call__(self, inputs: Sequence[Any], /) -> Sequence[Any]:
        return self._function(*inputs)


class EagerBackend:
    """Runs everything that capture can express, one torch op at a time."""

    name = "eager"
    api_version = API_VERSION
    options_type = NoOptions
    capabilities = Capabilities.of_package("fairlead")

    def probe(self) -> Probe:
        """Ready wherever torch is installed."""
        try:
            import torch
        except ImportError as error:
            return Probe(ok=False, reason=f"torch is not installed ({error})")
        devices = ("cpu", "cuda") if torch.cuda.device_count() else ("cpu",)
        return Probe(ok=True, devices=devices, versions={"torch": torch.__version__})

    def supports(self, node: Node, /) -> Support:
        """Everything: the node was captured from torch."""
        return Support.yes()

    def compile(self, graph: Graph, options: NoOptions, constants: Mapping[int, torch.Tensor], /) -> EagerExecutable:
        """The graph as a torch function."""
        from fairlead.interpret import to_fx
        from fairlead.interpret._additions import adding_rows

        return EagerExecutable(graph, adding_rows(to_fx(graph)).forward)

    def dump(self, executable: Executable, /) -> bytes:
        """The graph's fingerprint: there is nothing else to keep."""
        assert isinstance(executable, EagerExecutable)
        return fingerprint(executable.graph).encode()

    def load(
        self, data: bytes, graph: Graph, options: NoOptions, constants: Mapping[int, torch.Tensor], /
    ) -> EagerExecutable:
        """The graph as a torch function, where ``data`` is its fingerprint."""
        if data != fingerprint(graph).encode():
            raise ArtifactFormatError(
                "the bytes are not what eager stored of this graph",
                where=f"{len(data)} bytes, graph @{graph.name}",
                next="delete them and compile again",
            )
        return self.compile(graph, options, constants)


backend = EagerBackend()
