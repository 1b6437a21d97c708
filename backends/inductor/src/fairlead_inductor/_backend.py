"""The backend object: what Inductor takes, and its options."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from fairlead.backend import API_VERSION, Capabilities, Executable, Options, Probe, Support
from fairlead.ir import Graph, Node

if TYPE_CHECKING:
    import torch


class InductorOptions(Options, frozen=True):
    """What Inductor is told.

    ``mode`` as in ``torch.compile``; ``config`` patches ``torch._inductor.config`` on top of it, for example
    ``{"freezing": True}``.
    """

    mode: Literal["default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"] = "default"
    config: dict[str, Any] = {}


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
        if compiler is None and not torch.cuda.is_available():
            return Probe(ok=False, reason="no C++ compiler is found (g++ or clang++), and no GPU")
        devices = ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)
        return Probe(ok=True, devices=devices, versions={"torch": torch.__version__})

    def supports(self, node: Node, /) -> Support:
        """Everything that torch has: Inductor calls the ATen kernel of an op that it does not generate code for."""
        return Support.yes()

    def compile(self, graph: Graph, options: InductorOptions, constants: Mapping[int, torch.Tensor], /) -> Executable:
        """The graph compiled for the sizes of the first call, or for symbolic sizes where it has symbols."""
        from fairlead_inductor._executable import InductorExecutable

        return InductorExecutable(graph, options)
