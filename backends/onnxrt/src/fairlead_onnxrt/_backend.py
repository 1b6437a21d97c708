"""The backend object: probe, supports, compile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fairlead.backend import API_VERSION, Capabilities, Executable, Options, Probe, Support
from fairlead.ir import Graph, Node
from fairlead_onnxrt._options import OnnxRuntimeOptions

if TYPE_CHECKING:
    import torch

__all__ = ["OnnxRuntimeBackend"]


class OnnxRuntimeBackend:
    """Runs graphs in ONNX Runtime."""

    name = "onnxrt"
    api_version = API_VERSION
    capabilities = Capabilities.of_package("fairlead_onnxrt")

    @property
    def options_type(self) -> type[Options]:
        return OnnxRuntimeOptions

    def probe(self) -> Probe:
        """Whether ONNX Runtime imports, and which execution providers it was built with."""
        try:
            import onnx_ir
            import onnxruntime
        except Exception as error:  # a broken wheel raises anything
            return Probe(ok=False, reason=f"{type(error).__name__}: {error}")
        versions = {"onnxruntime": onnxruntime.__version__, "onnx-ir": onnx_ir.__version__}
        return Probe(ok=True, devices=tuple(onnxruntime.get_available_providers()), versions=versions)

    def supports(self, node: Node, /) -> Support:
        """Whether the rules of `fairlead_onnx` write the node exactly for ONNX Runtime's kernels."""
        import fairlead_onnx
        from fairlead_onnxrt._target import TARGET

        return fairlead_onnx.supports(node, target=TARGET)

    def compile(
        self, graph: Graph, options: OnnxRuntimeOptions, constants: Mapping[int, torch.Tensor], /
    ) -> Executable:
        """A session whose weights are the tensors of ``constants``, by reference."""
        from fairlead_onnxrt._executable import SessionExecutable

        return SessionExecutable(graph, options, constants)

    def dump(self, executable: Executable, /) -> bytes:
        """The graph as lowered, without its weights: ONNX Runtime optimizes it anew where it is loaded."""
        from fairlead_onnxrt._executable import SessionExecutable

        assert isinstance(executable, SessionExecutable)
        return executable.file.to_bytes()

    def load(
        self, data: bytes, graph: Graph, options: OnnxRuntimeOptions, constants: Mapping[int, torch.Tensor], /
    ) -> Executable:
        """The executable of a graph that was lowered before."""
        from fairlead_onnx import ModelFile
        from fairlead_onnxrt._executable import SessionExecutable

        return SessionExecutable(graph, options, constants, ModelFile.from_bytes(data))
