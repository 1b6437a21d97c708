"""The backend object: probe, supports, compile."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from fairlead.backend import API_VERSION, Capabilities, Executable, Options, Precision, Probe, Support
from fairlead.ir import Graph, Node
from fairlead_tensorrt._options import TensorRTOptions

if TYPE_CHECKING:
    import torch

__all__ = ["TensorRTBackend"]


class TensorRTBackend:
    """Runs graphs in TensorRT."""

    name = "tensorrt"
    api_version = API_VERSION
    capabilities = Capabilities.of_package("fairlead_tensorrt")

    @property
    def options_type(self) -> type[Options]:
        return TensorRTOptions

    def probe(self) -> Probe:
        """Which flavours of the SDK import, and whether torch finds a device for them."""
        from fairlead_tensorrt._sdk import installed, sdk_of

        if importlib.util.find_spec("torch") is None:
            return Probe(ok=False, reason="torch is not installed")
        try:
            import torch

            versions = {name: sdk_of(name).version for name in installed()}
        except Exception as error:  # a broken wheel raises anything
            return Probe(ok=False, reason=f"{type(error).__name__}: {error}")
        if not versions:
            return Probe(
                ok=False, reason="TensorRT is not installed: pip install tensorrt, or tensorrt_rtx for RTX devices"
            )
        if not torch.cuda.device_count():
            built = "; fairlead_tensorrt.build builds without one" if "tensorrt_rtx" in versions else ""
            reason = f"torch {torch.__version__} finds no CUDA device{built}"
            return Probe(ok=False, reason=reason, versions=versions)
        here = torch.cuda.get_device_capability()
        if not any(sdk_of(name).runs_on(*here) for name in installed()):
            found = f"{torch.cuda.get_device_name()} has compute capability {here[0]}.{here[1]}"
            reason = f"{found}, on which tensorrt_rtx {versions['tensorrt_rtx']} runs nothing: install tensorrt"
            return Probe(ok=False, reason=reason, versions=versions)
        versions |= {
            "torch": torch.__version__,
            "cuda": str(torch.version.cuda),
            "device": torch.cuda.get_device_name(),
        }
        return Probe(ok=True, devices=("cuda",), versions=versions)

    def supports(self, node: Node, /) -> Support:
        """Whether `fairlead_onnx` writes the node for TensorRT, and the parser of the SDK here reads that."""
        from fairlead_tensorrt._answers import answer

        return answer(node)

    def options_for_precision(self, options: TensorRTOptions, precision: Precision, /) -> TensorRTOptions:
        """TF32 where less than float32 is accepted: with halves TensorRT rounds every result, not products alone."""
        return msgspec.structs.replace(options, precision="f32" if precision == "highest" else "tf32")

    def compile(self, graph: Graph, options: TensorRTOptions, constants: Mapping[int, torch.Tensor], /) -> Executable:
        """An engine with the tensors of ``constants`` baked; of a graph with symbols, built at its first call."""
        if options.engine == "torch_tensorrt":
            from fairlead_tensorrt._torch_tensorrt import TorchTensorRTExecutable

            return TorchTensorRTExecutable(graph, options, constants)
        from fairlead_tensorrt._executable import EngineExecutable

        return EngineExecutable(graph, options, constants)

    def dump(self, executable: Executable, /) -> bytes:
        """The lowered graph, what building and running have measured, and, where it can be refitted, the engine."""
        from fairlead_tensorrt._executable import EngineExecutable

        if not isinstance(executable, EngineExecutable):
            raise TypeError("what torch-tensorrt compiled is not stored: use engine='builder'")
        return msgspec.msgpack.encode(executable.stored())

    def load(
        self, data: bytes, graph: Graph, options: TensorRTOptions, constants: Mapping[int, torch.Tensor], /
    ) -> Executable:
        """The executable again: its engine refitted with these weights, or built from what was measured before."""
        from fairlead_tensorrt._executable import EngineExecutable, Stored

        return EngineExecutable(graph, options, constants, msgspec.msgpack.decode(data, type=Stored))
