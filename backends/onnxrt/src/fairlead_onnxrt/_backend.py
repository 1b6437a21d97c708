"""The backend object: probe, supports, compile."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import msgspec

from fairlead.backend import API_VERSION, Capabilities, Executable, Options, Precision, Probe, Support
from fairlead.ir import Graph, Node
from fairlead_onnxrt._devices import cuda_devices, declines, has_cuda, is_on_cuda, out_of_reach
from fairlead_onnxrt._options import OnnxRuntimeOptions

if TYPE_CHECKING:
    import torch

    from fairlead_onnx import ModelFile
    from fairlead_onnxrt._cuda import CudaExecutable
    from fairlead_onnxrt._executable import SessionExecutable

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
        """Whether ONNX Runtime imports, and whether its build and torch have CUDA."""
        try:
            import onnx_ir
            import onnxruntime
        except Exception as error:  # a broken wheel raises anything
            return Probe(ok=False, reason=f"{type(error).__name__}: {error}")
        versions = {"onnxruntime": onnxruntime.__version__, "onnx-ir": onnx_ir.__version__}
        return Probe(ok=True, devices=("cpu", "cuda") if _reaches_cuda() else ("cpu",), versions=versions)

    def supports(self, node: Node, /) -> Support:
        """Whether the rules of `fairlead_onnx` write the node exactly for ONNX Runtime's kernels on its device."""
        import fairlead_onnx
        from fairlead_onnxrt._cuda_target import CUDA_TARGET
        from fairlead_onnxrt._target import TARGET

        if (reason := out_of_reach(node)) is not None:
            return Support.no(reason)
        return fairlead_onnx.supports(node, target=CUDA_TARGET if is_on_cuda(node) else TARGET)

    def declines_graph(self, graph: Graph, /) -> str | None:
        """Graphs of several devices, and training steps that are mostly convolutions."""
        return declines(graph)

    def options_for_precision(self, options: OnnxRuntimeOptions, precision: Precision, /) -> OnnxRuntimeOptions:
        """TF32 on CUDA where less than float32 is accepted."""
        return msgspec.structs.replace(options, precision="f32" if precision == "highest" else "tf32")

    def compile(
        self, graph: Graph, options: OnnxRuntimeOptions, constants: Mapping[int, torch.Tensor], /
    ) -> Executable:
        """A session whose weights are the tensors of ``constants``, by reference."""
        return _executable(graph)(graph, options, constants)

    def dump(self, executable: Executable, /) -> bytes:
        """The graph as lowered, without its weights: ONNX Runtime optimizes it anew where it is loaded."""
        file: ModelFile = cast(Any, executable).file
        return file.to_bytes()

    def load(
        self, data: bytes, graph: Graph, options: OnnxRuntimeOptions, constants: Mapping[int, torch.Tensor], /
    ) -> Executable:
        """The executable of a graph that was lowered before."""
        from fairlead_onnx import ModelFile

        return _executable(graph)(graph, options, constants, ModelFile.from_bytes(data))


def _executable(graph: Graph) -> type[SessionExecutable | CudaExecutable]:
    if cuda_devices(graph):
        from fairlead_onnxrt._cuda import CudaExecutable

        return CudaExecutable
    from fairlead_onnxrt._executable import SessionExecutable

    return SessionExecutable


def _reaches_cuda() -> bool:
    if not has_cuda() or importlib.util.find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.device_count() > 0
