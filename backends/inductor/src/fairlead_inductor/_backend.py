"""The backend object: what Inductor takes, and its options."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Mapping
from importlib import metadata
from typing import TYPE_CHECKING, Any, Literal

from fairlead.backend import API_VERSION, Capabilities, Executable, Options, Probe, Support
from fairlead.ir import DType, Graph, Node

if TYPE_CHECKING:
    import torch


class InductorOptions(Options, frozen=True):
    """What Inductor is told.

    ``mode`` as in ``torch.compile``; ``config`` patches ``torch._inductor.config`` on top of it, for example
    ``{"freezing": True}``.
    """

    mode: Literal["default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"] = "default"
    config: dict[str, Any] = {}


def _triton(has_gpu: bool) -> dict[str, str]:
    """The version of the compiler for GPUs, where there are both."""
    try:
        return {"triton": metadata.version("triton")} if has_gpu else {}
    except metadata.PackageNotFoundError:
        return {}


class InductorBackend:
    """Runs a Part through ``torch._inductor``, with composites whole, so that its own pattern matchers see them."""

    name = "inductor"
    api_version = API_VERSION
    capabilities = Capabilities.of_package("fairlead_inductor")
    options_type = InductorOptions

    def probe(self) -> Probe:
        """Ready where torch is installed and, for the CPU, a C++ compiler is found."""
        if importlib.util.find_spec("torch") is None:
            return Probe(ok=False, reason="torch is not installed")
        import torch

        compiler = os.environ.get("CXX") or next(filter(shutil.which, ("g++", "clang++", "cl")), None)
        has_gpu = torch.cuda.device_count() > 0  # is_available starts CUDA, which a forked child could use no more
        if compiler is None and not has_gpu:
            return Probe(ok=False, reason="no C++ compiler is found (g++ or clang++), and no GPU")
        devices = ("cpu", "cuda") if has_gpu else ("cpu",)
        return Probe(ok=True, devices=devices, versions={"torch": torch.__version__} | _triton(has_gpu))

    def supports(self, node: Node, /) -> Support:
        """What torch has, but for what Inductor's code gets wrong: it calls ATen for an op that it has no code for."""
        if node.op == "aten.fractional_max_pool3d.default":
            return Support.no(
                "Inductor pools other windows than torch where the sizes are not multiples of the kernel's"
            )
        if node.op == "aten.nextafter.default" and node.result.tensor.dtype in (DType.f16, DType.bf16):
            return Support.no("Inductor looks for the next number in float32")
        return Support.yes()

    def compile(self, graph: Graph, options: InductorOptions, constants: Mapping[int, torch.Tensor], /) -> Executable:
        """The graph compiled for the sizes of the first call, or for symbolic sizes where it has symbols."""
        from fairlead_inductor._executable import InductorExecutable

        return InductorExecutable(graph, options)
