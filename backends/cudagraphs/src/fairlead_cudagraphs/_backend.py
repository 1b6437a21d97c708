"""The backend object: which nodes can be recorded, and its options."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fairlead.backend import API_VERSION, Capabilities, Executable, Options, Probe, Support
from fairlead.ir import DType, Graph, Node, TensorType, Token, Value

if TYPE_CHECKING:
    import torch


class CudaGraphsOptions(Options, frozen=True):
    """How much is recorded.

    ``recordings``: how many recordings a graph has at most, one for each set of sizes and of weights' addresses; the
    one that was replayed longest ago makes room. ``warm_ups``: how often a set of sizes runs op by op before it is
    recorded.
    """

    recordings: int = 16
    warm_ups: int = 1


class CudaGraphsBackend:
    """Runs torch's kernels op by op at first, then replays a recording of them."""

    name = "cudagraphs"
    api_version = API_VERSION
    capabilities = Capabilities.of_package("fairlead_cudagraphs")
    options_type = CudaGraphsOptions

    def probe(self) -> Probe:
        """Ready where torch finds a CUDA device."""
        if importlib.util.find_spec("torch") is None:
            return Probe(ok=False, reason="torch is not installed")
        import torch

        if not torch.cuda.device_count():
            return Probe(ok=False, reason=f"torch {torch.__version__} finds no CUDA device")
        versions = {"torch": torch.__version__, "cuda": str(torch.version.cuda)}
        return Probe(ok=True, devices=("cuda",), versions=versions)

    def supports(self, node: Node, /) -> Support:
        """Everything but what waits for the device, which a recording cannot."""
        name = node.op.split(".")[1] if "." in node.op else node.op
        if node.regions:
            return Support.no("control flow waits for a value on the device")
        if not node.op.startswith(("aten.", "nn.", "prims.")):
            return Support.no("a custom op may wait for the device")
        if name in _WAITS or (name.startswith(_SOLVERS) and name not in _NO_SOLVERS):
            return Support.no("it waits for a value on the device")
        if name in _STRIDED:
            return Support.no("it counts from where a storage begins, and a recording reads a copy")
        if name in _INDEXED and _reads_truth(node):
            return Support.no("indices that are truth values make a size that depends on data")
        if name in _ATTENTION and _argument(node, _ATTENTION[name]) not in (None, 0.0):
            return Support.no("attention keeps the seed of its dropout on the CPU unless it is recorded")
        if _leaves(node):
            return Support.no("a copy to another device waits")
        return Support.yes()

    def compile(self, graph: Graph, options: CudaGraphsOptions, constants: Mapping[int, torch.Tensor], /) -> Executable:
        """The graph, recorded once its sizes have been seen."""
        from fairlead_cudagraphs._executable import CudaGraphsExecutable

        return CudaGraphsExecutable(graph, options.recordings, options.warm_ups)


def _reads_truth(node: Node) -> bool:
    return any(v.tensor.dtype in (DType.bool, DType.u8) for v in _values(_argument(node, 1)))


def _argument(node: Node, place: int) -> object:
    return node.args[place] if place < len(node.args) else None


def _values(arg: object) -> list[Value]:
    items = arg if isinstance(arg, tuple) else (arg,)
    return [v for v in items if isinstance(v, Value) and isinstance(v.type, TensorType)]


def _leaves(node: Node) -> bool:
    """Whether operands, results and arguments that name a device are not all of one."""
    values = (*node.operands(), *(r for r in node.results if r is not None))
    devices = {v.type.device for v in values if isinstance(v.type, TensorType)}
    devices |= {a.name for a in node.args if isinstance(a, Token) and a.kind == "device"}
    return len(devices) > 1


_WAITS = frozenset(
    {
        *("nonzero", "masked_select", "masked_scatter", "_unique2", "unique_dim", "unique_consecutive", "unique"),
        *("bincount", "histc", "histogram", "repeat_interleave", "item", "_local_scalar_dense", "equal"),
        *(
            "multinomial",
            "normal",
            "randperm",
            "embedding_renorm",
            "mode",
            "_ctc_loss",
            "_ctc_loss_backward",
            "segment_reduce",
            "searchsorted",
        ),
        *("_segment_reduce_backward", "_assert_async", "lu_unpack", "_embedding_bag", "_embedding_bag_forward_only"),
        *("lift_fresh_copy", "combinations", "tensor_split", "_sample_dirichlet", "_standard_gamma", "binomial"),
    }
)
"""Ops whose kernels copy a value to the CPU, by the name without the overload: a size, a check, or what to do next."""

_SOLVERS = ("linalg_", "_linalg_", "cholesky", "geqrf", "ormqr", "lu_", "triangular_solve", "_lstsq", "orgqr", "eig")
"""How the names of ops begin that ask cuSOLVER or MAGMA, and wait for what they say."""

_NO_SOLVERS = frozenset({"linalg_vector_norm", "linalg_cross"})

_STRIDED = frozenset({"as_strided", "as_strided_copy", "as_strided_scatter"})

_INDEXED = frozenset({"index", "index_put", "_unsafe_index", "_unsafe_index_put"})

_ATTENTION: Mapping[str, int] = {
    "scaled_dot_product_attention": 4,
    "scaled_dot_product_attention_backward": 7,
    "_scaled_dot_product_efficient_attention": 5,
    "_scaled_dot_product_efficient_attention_backward": 9,
    "_scaled_dot_product_flash_attention": 3,
    "_scaled_dot_product_flash_attention_backward": 10,
    "_scaled_dot_product_cudnn_attention": 5,
    "_scaled_dot_product_cudnn_attention_backward": 13,
}
"""Where attention takes the share that it drops out."""
