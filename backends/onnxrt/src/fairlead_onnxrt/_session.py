"""Makes an ONNX Runtime session of a graph, with weights that stay in torch's memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnxruntime
import torch

from fairlead.ir import DType, Graph
from fairlead_onnx import ModelFile, lower
from fairlead_onnxrt._denormals import FLUSH, as_before, gains
from fairlead_onnxrt._devices import CPU
from fairlead_onnxrt._options import OnnxRuntimeOptions
from fairlead_onnxrt._target import target_here

__all__ = ["Session", "as_ort_value", "disabled_in", "model_file", "open_session", "optimized_text", "settings_of"]

_LEVELS = {
    "disabled": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
_ERRORS_ONLY = 3


@dataclass(frozen=True, slots=True)
class Session:
    """A session, everything that its memory depends on, and whether it takes numbers that are nearly zero for zero."""

    session: onnxruntime.InferenceSession
    weights: tuple[object, ...]
    flushes: bool


def model_file(graph: Graph, constants: Iterable[int]) -> ModelFile:
    """The graph lowered for ONNX Runtime; the inputs that are constants are initializers outside of the file."""
    lowered = lower(graph, target=target_here(), constants=constants)
    lowered.externalize(constants)
    return lowered.file()


def open_session(
    graph: Graph,
    file: ModelFile,
    options: OnnxRuntimeOptions,
    constants: Mapping[int, torch.Tensor],
    written: Path | None = None,
) -> Session:
    """Load the file of the graph, the tensors of ``constants`` being its initializers.

    ``written``: where ONNX Runtime writes the model that it made of it.
    """
    tensors = {name: constants[i].detach().contiguous() for i in constants if (name := file.inputs[i]) is not None}
    values = {name: as_ort_value(t) for name, t in tensors.items()}
    settings = settings_of(options)
    flushes = options.session_config.get(FLUSH)
    if flushes is None:  # a second entry of one name would be warned of
        flushes = str(int(gains(graph)))
        settings.add_session_config_entry(FLUSH, flushes)
    if values:
        settings.add_external_initializers(list(values), list(values.values()))
    if written is not None:
        settings.optimized_model_filepath = str(written)
        settings.add_session_config_entry("session.optimized_model_external_initializers_file_name", "weights")
    with as_before():
        session = onnxruntime.InferenceSession(
            file.model,
            settings,
            providers=[(name, options.provider_options.get(name, {})) for name in options.providers or (CPU,)],
            disabled_optimizers=disabled_in(graph, options),
        )
    return Session(session, (tensors, values), flushes == "1")


def optimized_text(
    graph: Graph, file: ModelFile, options: OnnxRuntimeOptions, constants: Mapping[int, torch.Tensor]
) -> str:
    """What ONNX Runtime makes of the file, in ONNX's text form, without weights; it is loaded anew for that."""
    with tempfile.TemporaryDirectory(prefix="fairlead-") as folder:
        written = Path(folder, "model.onnx")
        open_session(graph, file, options, constants, written)
        return ModelFile(written.read_bytes(), file.inputs, file.outputs).text()


_SINGLE_FUSIONS = ("MatMulScaleFusion", "LayerNormFusion", "SimplifiedLayerNormFusion")
"""Rewrites that keep a factor or an epsilon as an attribute: in f32, whatever the type of the graph."""


def disabled_in(graph: Graph, options: OnnxRuntimeOptions) -> list[str]:
    """The rewrites to leave out of a graph."""
    doubles = any(r is not None and r.tensor.dtype is DType.f64 for node in graph.nodes for r in node.results)
    return [*options.disabled_optimizers, *(_SINGLE_FUSIONS if doubles else ())]


def as_ort_value(tensor: torch.Tensor) -> Any:
    """An OrtValue over the memory of a contiguous tensor; the caller keeps the tensor."""
    is_bool = tensor.dtype is torch.bool
    raw = tensor.view(torch.uint8) if is_bool else tensor
    return onnxruntime.OrtValue(onnxruntime.capi._pybind_state.OrtValue.from_dlpack(raw.__dlpack__(), is_bool))


def settings_of(options: OnnxRuntimeOptions) -> Any:
    """ONNX Runtime's settings of a session, as options have them."""
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = _ERRORS_ONLY
    settings.graph_optimization_level = _LEVELS[options.graph_optimization]
    settings.intra_op_num_threads = options.intra_op_threads or torch.get_num_threads()
    settings.inter_op_num_threads = options.inter_op_threads
    if options.inter_op_threads > 1:
        settings.execution_mode = onnxruntime.ExecutionMode.ORT_PARALLEL
    settings.use_deterministic_compute = options.deterministic
    settings.enable_cpu_mem_arena = options.memory_arena
    settings.enable_mem_pattern = options.memory_pattern
    entries = {
        "session.intra_op.allow_spinning": str(int(options.spinning)),
        # otherwise idle threads take the cores from torch's ops, and from the caller, after a call
        "session.force_spinning_stop": "1",
        **options.session_config,
    }
    for key, value in entries.items():
        settings.add_session_config_entry(key, value)
    return settings
