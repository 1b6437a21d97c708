"""The backend object: probe, supports, compile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from fairlead.backend import API_VERSION, Capabilities, Executable, Options, Precision, Probe, Support
from fairlead.ir import DType, Graph, Node
from fairlead.passes import trains_convolutions
from fairlead_openvino._options import OpenVINOOptions

if TYPE_CHECKING:
    import torch

__all__ = ["OpenVINOBackend"]


class OpenVINOBackend:
    """Runs graphs in OpenVINO."""

    name = "openvino"
    api_version = API_VERSION
    capabilities = Capabilities.of_package("fairlead_openvino")

    @property
    def options_type(self) -> type[Options]:
        return OpenVINOOptions

    def probe(self) -> Probe:
        """Whether OpenVINO imports, and which devices it finds."""
        try:
            import onnx_ir
            import openvino

            devices = tuple(openvino.Core().available_devices)
        except Exception as error:  # a broken wheel or driver raises anything
            return Probe(ok=False, reason=f"{type(error).__name__}: {error}")
        versions = {"openvino": openvino.__version__, "onnx-ir": onnx_ir.__version__}
        return Probe(ok=True, devices=devices, versions=versions)

    def supports(self, node: Node, /) -> Support:
        """Whether the rules of `fairlead_onnx` write the node exactly for OpenVINO's CPU plugin."""
        import fairlead_onnx
        from fairlead_openvino._limits import refusal
        from fairlead_openvino._target import TARGET

        support = fairlead_onnx.supports(node, target=TARGET)
        reason = refusal(node) if support.accepted else None  # of a node that is known to be a call of its op
        return support if reason is None else Support.no(reason)

    def declines_graph(self, graph: Graph, /) -> str | None:
        """Training steps that are mostly convolutions, whose gradients are torch's, and what it has in bfloat16."""
        from fairlead.interpret import quicker_in_bfloat16

        return trains_convolutions(graph) or quicker_in_bfloat16(graph, folds_norms=True)

    def compile(self, graph: Graph, options: OpenVINOOptions, constants: Mapping[int, torch.Tensor], /) -> Executable:
        """A compiled model whose weights are the tensors of ``constants``, by reference."""
        from fairlead_openvino._executable import ModelExecutable

        return ModelExecutable(graph, options, constants)

    def options_for_precision(self, options: OpenVINOOptions, precision: Precision, /) -> OpenVINOOptions:
        """In bfloat16 where that is accepted; OpenVINO has nothing between it and float32 on a CPU."""
        return msgspec.structs.replace(options, precision="bf16" if precision == "medium" else "f32")

    def dump(self, executable: Executable, /) -> bytes:
        """The graph as lowered, without its weights: OpenVINO compiles it anew where it is loaded."""
        from fairlead_openvino._executable import ModelExecutable

        assert isinstance(executable, ModelExecutable)
        return executable.file.to_bytes()

    def load(
        self, data: bytes, graph: Graph, options: OpenVINOOptions, constants: Mapping[int, torch.Tensor], /
    ) -> Executable:
        """The executable of a graph that was lowered before, where that is what it would be lowered to here."""
        from fairlead_onnx import ModelFile
        from fairlead_openvino._executable import ModelExecutable
        from fairlead_openvino._target import cuts_bfloat16

        has_halves = any(r is not None and r.tensor.dtype is DType.bf16 for node in graph.nodes for r in node.results)
        if has_halves and cuts_bfloat16():
            return ModelExecutable(graph, options, constants)
        return ModelExecutable(graph, options, constants, ModelFile.from_bytes(data))
