"""The backend object: what Inductor takes, and its options."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from collections.abc import Callable, Mapping
from importlib import metadata
from typing import TYPE_CHECKING, Any, Literal

from fairlead.backend import API_VERSION, Capabilities, Executable, Options, Probe, Support
from fairlead.ir import DType, Graph, Node, TensorType, Value, row_major

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
        wrong = _WRONG.get(node.op, _never) if node.args else _never
        reason = _NO_STATED_DIGITS if _UNSTATED.match(node.op) else wrong(node)
        return Support.yes() if reason is None else Support.no(reason)

    def compile(self, graph: Graph, options: InductorOptions, constants: Mapping[int, torch.Tensor], /) -> Executable:
        """The graph compiled for the sizes of the first call, or for symbolic sizes where it has symbols."""
        from fairlead_inductor._executable import InductorExecutable

        return InductorExecutable(graph, options)


def _never(node: Node) -> str | None:
    return None


def _fractional_pooling(node: Node) -> str | None:
    return "Inductor pools other windows than torch where the sizes are not multiples of the kernel's"


def _fractional_pooling_of_halves(node: Node) -> str | None:
    halves = node.results[0] is not None and node.results[0].tensor.dtype in (DType.f16, DType.bf16)
    return "Inductor finds the windows in float32, torch in 16 bits" if halves else None


def _sort(node: Node) -> str | None:
    floating = any(v.tensor.dtype.is_floating for v in node.operands())
    wrong = floating and _is_on_cuda(node) and node.args[1]
    return "Inductor misplaces NaN in stable sorts on CUDA" if wrong else None


def _nextafter(node: Node) -> str | None:
    if _is_on_cuda(node):
        return "Inductor takes denormal numbers for zero on CUDA, and the next ones for the least normal one"
    halves = node.result.tensor.dtype in (DType.f16, DType.bf16)
    return "Inductor looks for the next number in float32" if halves else None


def _erfinv(node: Node) -> str | None:
    result = node.result.tensor
    rough = result.device == "cpu" and result.dtype in (DType.f32, DType.f64)
    return "near 1 Inductor's inverse error function has fewer digits than torch's" if rough else None


def _variance(node: Node) -> str | None:
    given = node.args[0]
    assert isinstance(given, Value)
    return "Inductor's variance of no elements is 0 and not NaN" if 0 in given.tensor.shape else None


def _average_gradient(node: Node) -> str | None:
    _, _, _, _, _, ceil_mode, count_include_pad, divisor = node.args
    wrong = ceil_mode and count_include_pad and divisor is None
    return "Inductor divides by other counts than torch where the last window goes past the padding" if wrong else None


_UNSTATED = re.compile(r"aten\.special_(airy_ai|\w*bessel_\w+|\w+_polynomial_\w)\.")
"""Functions computed by recurrences and series, of which nobody says how many digits they have."""

_NO_STATED_DIGITS = (
    "its digits are those of torch's own kernel; Inductor compiles the formula anew and rounds otherwise"
)


def _is_on_cuda(node: Node) -> bool:
    return any(isinstance(v.type, TensorType) and v.type.device.startswith("cuda") for v in node.operands())


def _frexp(node: Node) -> str | None:
    return "Inductor takes denormal numbers apart wrongly on CUDA" if _is_on_cuda(node) else None


def _to_copy(node: Node) -> str | None:
    is_complex = node.result.tensor.dtype.is_complex and _is_on_cuda(node)
    return "Inductor has no complex numbers in kernels for CUDA" if is_complex else None


def _as_strided(node: Node) -> str | None:
    """Without an offset the place in the storage follows from the shapes.

    A scatter starts from a copy, which has other strides than what is not row-major.
    """
    given = node.args[0]
    assert isinstance(given, Value)
    type_ = given.tensor
    row_major_ = type_.strides is None or type_.strides == row_major(type_.shape)
    if node.args[-1] is None and (row_major_ or node.op != "aten.as_strided_scatter.default"):
        return None
    return "Inductor counts from where a tensor begins, and torch from where its storage does"


_WRONG: dict[str, Callable[[Node], str | None]] = {
    "aten.avg_pool2d_backward.default": _average_gradient,
    "aten.avg_pool3d_backward.default": _average_gradient,
    "aten.fractional_max_pool2d.default": _fractional_pooling_of_halves,
    "aten.fractional_max_pool3d.default": _fractional_pooling,
    "aten.nextafter.default": _nextafter,
    "aten.erfinv.default": _erfinv,
    "aten.frexp.Tensor": _frexp,
    "aten.var.correction": _variance,
    "aten.var_mean.correction": _variance,
    "aten.sort.stable": _sort,
    "aten._to_copy.default": _to_copy,
    "aten.as_strided.default": _as_strided,
    "aten.as_strided_copy.default": _as_strided,
    "aten.as_strided_scatter.default": _as_strided,
}
"""Why Inductor is not given a node of such an op, or None where its code is right."""
