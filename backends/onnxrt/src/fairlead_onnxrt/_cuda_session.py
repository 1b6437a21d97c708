"""Opens a session of the CUDA provider, and refuses one that would compute on the CPU."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import onnxruntime

from fairlead.ir import Graph, Symbol, TensorType
from fairlead_onnx import ModelFile
from fairlead_onnxrt._denormals import as_before
from fairlead_onnxrt._devices import CPU, CUDA
from fairlead_onnxrt._options import OnnxRuntimeOptions
from fairlead_onnxrt._session import disabled_in, settings_of

if TYPE_CHECKING:
    import torch

__all__ = ["TO_SPLIT", "computed_on_cpu", "cuda_options", "open_cuda_session", "with_sizes_of_tensors"]


def open_cuda_session(
    graph: Graph, file: ModelFile, options: OnnxRuntimeOptions, stream: torch.cuda.Stream, written: Path | None = None
) -> onnxruntime.InferenceSession:
    """A session whose kernels run on the stream. ``written``: where ONNX Runtime writes what it made of the model.

    Its kernels are those that give the same bits at each call, as eager's sums do.

    Raises RuntimeError where its libraries cannot be loaded, and, unless the caller has named the CPU among the
    providers, where it has no kernel on CUDA for something: it would copy tensors to the host and back.
    """
    if options.providers and (options.providers[0] != CUDA or set(options.providers) - {CPU, CUDA}):
        raise ValueError(
            f"option 'providers' has {', '.join(options.providers)}, and the graph is on CUDA: it takes {CUDA}, or "
            f"{CUDA} and {CPU}"
        )
    threads = options.intra_op_threads or 1  # for arithmetic on sizes
    settings = settings_of(msgspec.structs.replace(options, intra_op_threads=threads, deterministic=True))
    settings.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    if written is not None:
        settings.optimized_model_filepath = str(written)
    with as_before():
        session = onnxruntime.InferenceSession(
            file.model,
            settings,
            providers=[(CUDA, cuda_options(options, stream)), (CPU, options.provider_options.get(CPU, {}))],
            disabled_optimizers=[*disabled_in(graph, options), TO_SPLIT],
            enable_fallback=0,
        )
    if CUDA not in session.get_providers():
        raise _not_loaded()
    placed = session.get_provider_graph_assignment_info()
    on_cpu = [(node.name, node.op_type) for part in placed if part.ep_name == CPU for node in part.get_nodes()]
    if (slow := computed_on_cpu(file, on_cpu)) and CPU not in options.providers:
        raise _on_the_cpu(graph, slow)
    return session


TO_SPLIT = "GatherSliceToSplitFusion"
"""The rewrite that makes a Split. Where calls are not waited for, its kernel keeps memory of the host until the session
ends, and then aborts the process: that is freed in a callback of CUDA's, where CUDA permits no such call."""


def cuda_options(options: OnnxRuntimeOptions, stream: torch.cuda.Stream) -> dict[str, str]:
    """The provider's options: ours, and over them the caller's.

    Convolutions take the algorithm that cuDNN guesses: trying all of them would be done again for each new size. Memory
    is taken from the device in pieces of the size that is needed, so that less of it is kept from torch.
    """
    return {
        "device_id": str(stream.device.index),
        "user_compute_stream": str(stream.cuda_stream),
        "do_copy_in_default_stream": "1",
        "use_tf32": str(int(options.precision == "tf32")),
        "cudnn_conv_algo_search": "HEURISTIC",
        "arena_extend_strategy": "kSameAsRequested",
        **options.provider_options.get(CUDA, {}),
    }


def computed_on_cpu(file: ModelFile, nodes: Iterable[tuple[str, str]]) -> list[str]:
    """Of nodes that run on the CPU, by name and op, the ops of those that read more than sizes and constants.

    Arithmetic on sizes belongs there: the kernels that take sizes read them on the host.
    """
    sizes = _sizes(file)
    return sorted({op for name, op in nodes if name not in sizes})


def _sizes(file: ModelFile) -> set[str]:
    """The names of the nodes that compute nothing but sizes. A node has the name of its first result."""
    import onnx

    graph = onnx.ModelProto.FromString(file.model).graph
    known = {initializer.name for initializer in graph.initializer} | {""}
    found = set()
    for node in graph.node:
        if node.op_type == "Shape" or known.issuperset(node.input):
            known.update(node.output)
            found.add(node.name)
    return found


def with_sizes_of_tensors(graph: Graph, baked: frozenset[int]) -> Graph:
    """The graph with each symbol read from the shape of a tensor, where one has it.

    An integer that is an input lies on the device, and sizes are needed on the host.
    """
    dims = {
        dim: (index, axis)
        for index, item in reversed(list(enumerate(graph.inputs)))
        if index not in baked and isinstance(item.value.type, TensorType)
        for axis, dim in enumerate(item.value.type.shape)
        if isinstance(dim, str)
    }

    def from_tensor(symbol: Symbol) -> Symbol:
        return msgspec.structs.replace(symbol, source=dims.get(symbol.name, symbol.source))

    return msgspec.structs.replace(graph, symbols=tuple(map(from_tensor, graph.symbols)))


def _not_loaded() -> RuntimeError:
    import torch

    return RuntimeError(
        "ONNX Runtime could not load its CUDA provider\n"
        f"  from: onnxruntime {onnxruntime.__version__}, torch {torch.__version__} with CUDA {torch.version.cuda}\n"
        "  next: install a build of onnxruntime-gpu for torch's CUDA; what it misses says "
        'python -c "import torch, onnxruntime; onnxruntime.print_debug_info()"'
    )


def _on_the_cpu(graph: Graph, ops: list[str]) -> RuntimeError:
    return RuntimeError(
        f"ONNX Runtime would compute {', '.join(ops)} on the CPU, with copies of tensors at each call\n"
        f"  from: fairlead-onnxrt, graph @{graph.name}, onnxruntime {onnxruntime.__version__}\n"
        f'  next: leave it to another backend, or accept it: options={{"providers": ["{CUDA}", "{CPU}"]}}'
    )
