"""Makes a compiled OpenVINO model of a graph, with weights that stay in torch's memory."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy
import openvino
import torch
from openvino import opset13
from openvino.op import Constant

from fairlead.ir import Graph
from fairlead_onnx import DOMAIN, ModelFile, lower
from fairlead_openvino._bounds import drop_guards
from fairlead_openvino._conflicts import avoid_conflicts
from fairlead_openvino._forks import compile_model
from fairlead_openvino._options import OpenVINOOptions
from fairlead_openvino._ranges import largest, largest_that_fits
from fairlead_openvino._snippets import crashes_tokenizer
from fairlead_openvino._target import cuts_bfloat16, saturates, target_here

__all__ = ["Compiled", "compile_file", "evaluable", "model_file", "ov_tensor"]


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled model, and the one that it was compiled of.

    For each input of the graph its index among the model's inputs, or None where nothing reads it. ``check`` is the
    index of the output that says whether every place was in range, where one has to be asked. ``bounded`` are inputs of
    the graph for which `fairlead_openvino._bounds.is_within` has to hold, or the model is not to be asked.
    """

    model: openvino.CompiledModel
    source: openvino.Model
    inputs: tuple[int | None, ...]
    outputs: tuple[int, ...]
    check: int | None
    bounded: frozenset[int]
    weights: tuple[object, ...]


@functools.cache
def _core() -> openvino.Core:
    """OpenVINO, which reads the op of ours that adds up rows of a table as its own."""
    from openvino.frontend.onnx import ConversionExtension

    core = openvino.Core()
    core.add_extension(ConversionExtension("EmbeddingBag", DOMAIN, _bags))
    return core


def _bags(node: Any) -> Any:
    return opset13.embedding_bag_packed_sum(node.get_input(0), node.get_input(1)).outputs()


def model_file(graph: Graph) -> ModelFile:
    """The graph lowered for OpenVINO."""
    return lower(graph, target=target_here()).file()


def compile_file(
    graph: Graph,
    file: ModelFile,
    options: OpenVINOOptions,
    constants: Mapping[int, torch.Tensor],
    *,
    any_numbers: bool = False,
) -> Compiled:
    """Read the file of the graph, and put the tensors of ``constants`` in the places of its inputs.

    With ``any_numbers`` no input has to be bounded.
    """
    model = _core().read_model(file.model, b"")
    _narrow_doubles(model)
    parameters = {p.get_friendly_name(): p for p in model.get_parameters()}
    weights: list[object] = []
    fits = largest_that_fits(graph)
    for index, tensor in constants.items():
        parameter = parameters.pop(file.inputs[index] or "", None)
        if parameter is None:
            continue
        held = tensor.detach().contiguous()
        if held.dtype is torch.float64:
            held = held.float()
        if held.dtype is torch.int64 and largest(held) > fits:
            raise OverflowError(f"OpenVINO computes 64-bit integers in 32 bits, and a constant has one beyond {fits}")
        constant = Constant(ov_tensor(held), shared_memory=True)
        weights += [held, constant]
        parameter.output(0).replace(constant.output(0))
        model.remove_parameter(parameter)
    _divide_exactly(model)
    _turn_apart(model)
    _join_hardswish(model)
    bounded: frozenset[str] = frozenset()
    hint = options.config.get("INFERENCE_PRECISION_HINT", options.precision)
    if (options.device, hint) == ("CPU", "f32"):
        bounded = bounded if any_numbers else drop_guards(model)
        avoid_conflicts(model)
    compiled = compile_model(_core(), model, options.device, _properties(model, options))
    inputs = {name: i for i, port in enumerate(compiled.inputs) for name in port.get_names()}
    outputs = {name: i for i, port in enumerate(compiled.outputs) for name in port.get_names()}
    return Compiled(
        compiled,
        model,
        tuple(
            inputs.get(name) if name is not None and i not in constants else None for i, name in enumerate(file.inputs)
        ),
        tuple(outputs[name] for name in file.outputs),
        None if file.check is None else outputs[file.check],
        frozenset(i for i, name in enumerate(file.inputs) if name in bounded),
        tuple(weights),
    )


def evaluable(model: openvino.Model) -> openvino.Model:
    """A copy, over the same weights, that OpenVINO's reference implementations run.

    They have none of Identity, IsNaN and IsInf, nor of rows that are looked up and added in one step.
    """
    copy = model.clone()
    for node in copy.get_ops():
        match node.get_type_name():
            case "Identity":
                node.output(0).replace(node.input_value(0))
            case "IsNaN":
                node.output(0).replace(opset13.not_equal(node.input_value(0), node.input_value(0)).output(0))
            case "IsInf":
                endless = opset13.constant(numpy.inf, node.get_input_element_type(0))
                node.output(0).replace(opset13.equal(opset13.absolute(node.input_value(0)), endless).output(0))
            case "EmbeddingBagPackedSum":
                rows = opset13.gather(node.input_value(0), node.input_value(1), numpy.array(0))
                node.output(0).replace(opset13.reduce_sum(rows, numpy.array([1])).output(0))
    return copy


def _narrow_doubles(model: openvino.Model) -> None:
    """Have inputs of f64, which are only read to be made f32, as that: OpenVINO's conversion keeps them finite."""
    doubles = [p for p in model.get_parameters() if p.get_element_type() == openvino.Type.f64]
    for parameter in doubles:
        parameter.set_element_type(openvino.Type.f32)
    if doubles:
        model.validate_nodes_and_infer_types()


def _divide_exactly(model: openvino.Model) -> None:
    """Keep the plugin from turning a / b into a * (1 / b), which rounds twice.

    The mark is that of `ov::disable_divide_conversion`, which has no name in Python. A division by or of a constant
    that the plugin fuses into what computes the other operand is wrong with it (defects/edges.py), and by a power of
    two the product is as exact, and faster.
    """
    for node in model.get_ops():
        if node.get_type_name() != "Divide":
            continue
        dividend, divisor = (node.input_value(i).get_node() for i in range(2))
        other = divisor if isinstance(dividend, Constant) else dividend
        varies = not (isinstance(dividend, Constant) or isinstance(divisor, Constant))
        if varies or (other.get_type_name() in ("Parameter", "Convert") and not _is_power_of_two(divisor)):
            node.get_rt_info()["nonconvertable_divide_0"] = True


def _turn_apart(model: openvino.Model) -> None:
    """Turn the input of an LSTM in a way that the plugin does not see through, where something else reads it.

    The plugin has an LSTM read steps first where its input is turned to have batches first, and its result back. It
    takes that turn from whatever else reads it too, in graphs whose sizes are known (defects/lstm.py).
    """
    for layer in model.get_ops():
        if (
            layer.get_type_name() != "LSTMSequence"
            or (turn := layer.input_value(0).get_node()).get_type_name() != "Transpose"
        ):
            continue
        source = turn.input_value(0)
        readers = [r.get_node().get_type_name() for r in source.get_target_inputs()]
        if len(readers) - readers.count("ShapeOf") > 1:
            turned = opset13.transpose(opset13.unsqueeze(source, 0), numpy.array([2, 1, 3, 0]))
            layer.input(0).replace_source_output(opset13.squeeze(turned, numpy.array([3])).output(0))


def _join_hardswish(model: openvino.Model) -> None:
    """Make one op of a product with a hard sigmoid, which ONNX has but by its parts, and the plugin does not see."""
    for product in model.get_ops():
        if product.get_type_name() != "Multiply":
            continue
        for given, gate in itertools.permutations(product.input_values()):
            if _is_gate(gate.get_node(), given):
                product.output(0).replace(opset13.hswish(given).output(0))
                break


def _is_gate(node: Any, given: Any) -> bool:
    if node.get_type_name() != "HardSigmoid":
        return False
    of, *ends = node.input_values()
    slope, offset = (end.get_node() for end in ends)
    if not isinstance(slope, Constant) or not isinstance(offset, Constant):
        return False
    return bool(of == given and slope.data.item() == numpy.float32(1 / 6) and offset.data.item() == 0.5)


def _is_power_of_two(node: Any) -> bool:
    if not isinstance(node, Constant) or math.prod(node.shape) != 1:
        return False
    return abs(math.frexp(float(node.data.item()))[0]) == 0.5


def ov_tensor(tensor: torch.Tensor) -> openvino.Tensor:
    """An OpenVINO tensor over the memory of a contiguous tensor; the caller keeps the tensor."""
    if tensor.dtype is torch.bfloat16:
        return openvino.Tensor(tensor.view(torch.uint16).numpy(), list(tensor.shape), openvino.Type.bf16)
    array = tensor.numpy()
    return openvino.Tensor(array, shared_memory=True) if array.size else openvino.Tensor(numpy.zeros_like(array))


def _properties(model: openvino.Model, options: OpenVINOOptions) -> dict[str, Any]:
    properties: dict[str, Any] = {
        "PERFORMANCE_HINT": options.performance_hint.upper(),
        "INFERENCE_PRECISION_HINT": options.precision,
        "NUM_STREAMS": options.streams,
    }
    if options.cache_dir:
        properties["CACHE_DIR"] = options.cache_dir
    if options.device == "CPU":
        properties |= {"INFERENCE_NUM_THREADS": options.threads or torch.get_num_threads(), "ENABLE_CPU_PINNING": False}
        if crashes_tokenizer(model) or (cuts_bfloat16() and _has_bfloat16(model)):
            properties["SNIPPETS_MODE"] = "DISABLE"
        if any(node.get_type_name() == "FakeQuantize" for node in model.get_ops()) and saturates():
            properties["LP_TRANSFORMS_MODE"] = "NO"
    return properties | options.config


def _has_bfloat16(model: openvino.Model) -> bool:
    """Whether a model converts to or from bfloat16.

    Where the processor cannot, the tokenizer ends the process on attention beside the ops that round.
    """
    return any(
        port.get_element_type() == openvino.Type.bf16
        for node in model.get_ops()
        if node.get_type_name() == "Convert"
        for port in (node.input(0), node.output(0))
    )
