"""The backend object: probe, supports, compile."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fairlead.backend import API_VERSION, Capabilities, Executable, Options, Probe, Support
from fairlead.errors import ArtifactFormatError
from fairlead.ir import Graph, Node, fingerprint
from fairlead_ipex._options import IpexOptions

if TYPE_CHECKING:
    import torch

    from fairlead_ipex._executable import IpexExecutable
    from fairlead_ipex._training import TrainingExecutable

__all__ = ["IpexBackend"]


class IpexBackend:
    """Runs graphs as torch does, but for linear layers and convolutions with known weights, which oneDNN runs."""

    name = "ipex"
    api_version = API_VERSION
    capabilities = Capabilities.of_package("fairlead_ipex")

    @property
    def options_type(self) -> type[Options]:
        return IpexOptions

    def probe(self) -> Probe:
        """Ready where torch was built with oneDNN."""
        if importlib.util.find_spec("torch") is None:
            return Probe(ok=False, reason="torch is not installed")
        import torch

        if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
            return Probe(ok=False, reason=f"torch {torch.__version__} was built without oneDNN")
        return Probe(ok=True, devices=("cpu",), versions={"torch": torch.__version__})

    def supports(self, node: Node, /) -> Support:
        """Everything: what oneDNN has no op for runs as torch runs it."""
        return Support.yes()

    def declines_graph(self, graph: Graph, /) -> str | None:
        """Graphs in which others are faster."""
        from fairlead_ipex._worth import declines

        return declines(graph)

    def compile(
        self, graph: Graph, options: IpexOptions, constants: Mapping[int, torch.Tensor], /
    ) -> IpexExecutable | TrainingExecutable:
        """The graph with its weights packed. Other weights, or new values, are packed anew.

        One of training as Inductor compiles it, where that takes all of it and ``fuse`` is not off.
        """
        return _executable(graph, options, constants)

    def dump(self, executable: Executable, /) -> bytes:
        """The graph's fingerprint, and what Inductor stores where it compiles: what was made of the weights is not."""
        from fairlead_ipex._executable import IpexExecutable
        from fairlead_ipex._training import TrainingExecutable

        assert isinstance(executable, IpexExecutable | TrainingExecutable)
        return fingerprint(executable.graph).encode() + executable.dump()

    def load(
        self, data: bytes, graph: Graph, options: IpexOptions, constants: Mapping[int, torch.Tensor], /
    ) -> IpexExecutable | TrainingExecutable:
        """The executable, its weights packed anew, where ``data`` is of this graph."""
        head = fingerprint(graph).encode()
        if not data.startswith(head):
            raise ArtifactFormatError(
                "the bytes are not what ipex stored of this graph",
                where=f"{len(data)} bytes, graph @{graph.name}",
                next="delete them and compile again",
            )
        return _executable(graph, options, constants, data.removeprefix(head))


def _executable(
    graph: Graph, options: IpexOptions, constants: Mapping[int, torch.Tensor], stored: bytes = b""
) -> IpexExecutable | TrainingExecutable:
    from fairlead_ipex._executable import IpexExecutable
    from fairlead_ipex._worth import inductor_takes, is_of_training

    if is_of_training(graph) and options.fuse and inductor_takes(graph):
        from fairlead_ipex._training import TrainingExecutable

        return TrainingExecutable(graph, stored)
    return IpexExecutable(graph, options, constants, stored)
