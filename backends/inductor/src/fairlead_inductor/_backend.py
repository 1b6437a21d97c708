"""The backend object: what Inductor takes, and its options."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
from collections.abc import Callable, Mapping
from importlib import metadata
from typing import TYPE_CHECKING, Any, Literal, cast

from fairlead.backend import API_VERSION, Capabilities, Executable, Options, Probe, Support
from fairlead.ir import DType, Graph, Node, TensorType, Value, row_major

if TYPE_CHECKING:
    import torch


class InductorOptions(Options, frozen=True):
    """What Inductor is told.

    ``mode`` as in ``torch.compile``; ``config`` patches ``torch._inductor.config`` on top of it, for example
    ``{"freezing": True}``. ``lend_results``: in modes that record on CUDA, results and gradients stay in the memory of
    the recording, as those of ``torch.compile`` do, instead of being copied out of it. The next step overwrites them,
    and nothing tells whoever reads them then: set gradients to None before it, and copy results that are kept.
    """

    mode: Literal["default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"] = "default"
    config: dict[str, Any] = {}
    lend_results: bool = False


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
        devices = (*(("cpu",) if compiler is not None else ()), *(("cuda",) if has_gpu else ()))
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

    def compile_module(self, graph: Graph, options: InductorOptions, module: torch.fx.GraphModule, /) -> Executable:
        """The same of a module that another backend has made of a graph, with what it holds taken for constants.

        The module takes the graph's inputs and gives its results. The graph has no symbols, and no op that `supports`
        declines. The module is the executable's from then on.
        """
        from fairlead_inductor._executable import InductorExecutable

        return InductorExecutable(graph, options, module)

    def dump(self, executable: Executable, /) -> bytes:
        """What the C++ was compiled to; what calls it is generated anew.

        Raises `ArtifactUnsupportedError` for graphs on CUDA.
        """
        from fairlead_inductor._executable import InductorExecutable

        assert isinstance(executable, InductorExecutable)
        return executable.dump()

    def load(
        self, data: bytes, graph: Graph, options: InductorOptions, constants: Mapping[int, torch.Tensor], /
    ) -> Executable:
        """The executable that `dump` stored. ``data`` has to be trusted: it holds machine code, for torch's cache."""
        from fairlead_inductor._stored import lay_out_libraries

        lay_out_libraries(data, graph)
        return self.compile(graph, options, constants)

    def load_module(
        self, data: bytes, graph: Graph, options: InductorOptions, module: torch.fx.GraphModule, /
    ) -> Executable:
        """The same of what `compile_module` made of a module."""
        from fairlead_inductor._stored import lay_out_libraries

        lay_out_libraries(data, graph)
        return self.compile_module(graph, options, module)


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
    if wrong:
        return "Inductor divides by other counts than torch where the last window goes past the padding"
    wrong = ceil_mode and divisor is None and node.op == "aten.avg_pool2d_backward.default" and _is_on_cuda(node)
    return "Inductor adds up other windows than torch on CUDA where the last one goes past the edge" if wrong else None


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
    return _NO_COMPLEX_NUMBERS if is_complex else None


_NO_COMPLEX_NUMBERS = "Inductor has no complex numbers in kernels for CUDA"


def _lstm(node: Node) -> str | None:
    has_kernel = not _is_on_cuda(node) and all(v.tensor.dtype in (DType.f32, DType.bf16) for v in node.operands())
    return None if has_kernel else "Inductor takes an LSTM apart step by step where oneDNN has no kernel"


def _is_row_major(value: Value) -> bool:
    return value.tensor.strides is None or value.tensor.strides == row_major(value.tensor.shape)


def _all_row_major(node: Node) -> bool:
    return all(map(_is_row_major, node.operands()))


def _view_as_complex(node: Node) -> str | None:
    return _NO_COMPLEX_NUMBERS if _is_on_cuda(node) and not _all_row_major(node) else None


def _diagonal_scatter(node: Node) -> str | None:
    if not _is_on_cuda(node):
        return None
    if node.result.tensor.dtype.is_complex:
        return _NO_COMPLEX_NUMBERS
    shares = any(map(_shares_memory, node.operands()))
    return "Inductor's copy of what is expanded shares memory on CUDA, and is written through it" if shares else None


def _shares_memory(value: Value) -> bool:
    """Whether elements along a dimension are one."""
    strides = value.tensor.strides or ()
    return any(stride == 0 and size != 1 for stride, size in zip(strides, value.tensor.shape, strict=False))


def _transform(node: Node) -> str | None:
    if _is_on_cuda(node) and not _all_row_major(node):
        return "Inductor expects other strides than cuFFT's results have where an operand is not row-major"
    wrong = not _is_on_cuda(node) and _misplaces_transforms() and not _is_placed_rightly(node)
    return "torch before 2.12 tells Inductor other strides than the transform's results have" if wrong else None


def _is_placed_rightly(node: Node) -> bool:
    """Whether even those releases of torch say where the elements of a Fourier transform lie on a CPU."""
    given = node.args[0]
    assert isinstance(given, Value)
    dims = cast("tuple[int, ...]", node.args[1])
    if node.op == "aten._fft_r2c.default":
        return _is_row_major(given) and dims == (given.tensor.rank - 1,)
    return len(dims) == 1 or (_is_row_major(given) and list(dims) == sorted(dims))


@functools.cache
def _misplaces_transforms() -> bool:
    return tuple(map(int, metadata.version("torch").split(".")[:2])) < (2, 12)


def _grid_sampler(node: Node) -> str | None:
    wrong = node.args[2] == _BICUBIC and node.result.tensor.dtype is DType.f32 and _is_on_cuda(node)
    return "Inductor's bicubic weights have fewer digits than torch's on CUDA" if wrong else None


_BICUBIC = 2
"""A number of ``interpolation_mode``, as in torch/nn/functional.py."""


def _search(node: Node) -> str | None:
    """Where torch looks among sorted values, NaN, which belongs at the end, is above all; to Triton it is not."""
    if not _is_on_cuda(node):
        return None
    if any(v.tensor.dtype.is_floating for v in node.operands()):
        return "Inductor looks for NaN, and past NaN, at the wrong end on CUDA"
    return None if _all_row_major(node) else "Inductor reads beyond the end on CUDA where strides are not row-major"


def _as_strided(node: Node) -> str | None:
    """Without an offset the place in the storage follows from the shapes.

    A scatter starts from a copy, which has other strides than what is not row-major.
    """
    given = node.args[0]
    assert isinstance(given, Value)
    if node.args[-1] is None and (_is_row_major(given) or node.op != "aten.as_strided_scatter.default"):
        return None
    return "Inductor counts from where a tensor begins, and torch from where its storage does"


_WRONG: dict[str, Callable[[Node], str | None]] = {
    "aten.avg_pool2d_backward.default": _average_gradient,
    "aten.avg_pool3d_backward.default": _average_gradient,
    "aten.fractional_max_pool2d.default": _fractional_pooling_of_halves,
    "aten.fractional_max_pool3d.default": _fractional_pooling,
    "aten.nextafter.default": _nextafter,
    "nn.lstm": _lstm,
    "aten.erfinv.default": _erfinv,
    "aten.frexp.Tensor": _frexp,
    "aten.var.correction": _variance,
    "aten.var_mean.correction": _variance,
    "aten.sort.stable": _sort,
    "aten._to_copy.default": _to_copy,
    "aten.view_as_complex.default": _view_as_complex,
    "aten.diagonal_scatter.default": _diagonal_scatter,
    "aten._fft_r2c.default": _transform,
    "aten._fft_c2c.default": _transform,
    "aten._fft_c2r.default": _transform,
    "aten.grid_sampler_2d.default": _grid_sampler,
    "aten.searchsorted.Tensor": _search,
    "aten.bucketize.Tensor": _search,
    "aten.as_strided.default": _as_strided,
    "aten.as_strided_copy.default": _as_strided,
    "aten.as_strided_scatter.default": _as_strided,
}
"""Why Inductor is not given a node of such an op, or None where its code is right."""
