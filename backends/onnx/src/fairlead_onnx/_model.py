"""Builds the onnx-ir model from what a writer collected."""

from __future__ import annotations

import numpy
import onnx_ir

from fairlead.ir import DType, Graph, TensorType, Value
from fairlead_onnx._lower import Lowered
from fairlead_onnx._writer import CONTRIB, ONNX_DTYPES, Constant, Ref, Step, Writer

__all__ = ["build", "externalize"]

_IR_VERSION = 10
"""The ONNX file format of opset 21 and below; readers of the last two years know it."""


def build(graph: Graph, writer: Writer, names: list[str], outputs: tuple[Ref, ...]) -> Lowered:
    """The model of a graph: inputs in order, dead steps left out."""
    steps = _live(writer.steps, {r.name for r in outputs})
    used = {name for step in steps for name in step.inputs}
    values: dict[str, onnx_ir.Value] = {"": None}  # type: ignore[dict-item]  # an absent operand
    inputs = [_input(name, i.value) for name, i in zip(names, graph.inputs, strict=True) if name in used]
    values.update((v.name or "", v) for v in inputs)
    constants = [_constant(c) for c in writer.constants.values() if c.name in used]
    values.update((v.name or "", v) for v in constants)
    nodes = [_node(step, values) for step in steps]
    results = [_typed(values[r.name], v) for r, v in zip(outputs, graph.output_values(), strict=True)]
    imports = {"": writer.target.opset}
    if any(step.domain for step in steps):
        imports[CONTRIB] = 1
    body = onnx_ir.Graph(inputs, results, nodes=nodes, initializers=constants, opset_imports=imports, name=graph.name)
    model = onnx_ir.Model(body, ir_version=_IR_VERSION)
    return Lowered(model, tuple(n if n in used else None for n in names), tuple(r.name for r in outputs))


def _live(steps: list[Step], wanted: set[str]) -> list[Step]:
    kept = []
    for step in reversed(steps):
        if wanted.intersection(step.outputs):
            wanted.update(step.inputs)
            kept.append(step)
    return kept[::-1]


def _node(step: Step, values: dict[str, onnx_ir.Value]) -> onnx_ir.Node:
    attributes = onnx_ir.convenience.convert_attributes(
        {k: list(v) if isinstance(v, tuple) else v for k, v in step.attributes}
    )
    outputs = [onnx_ir.Value(name=name) for name in step.outputs]
    values.update(zip(step.outputs, outputs, strict=True))
    return onnx_ir.Node(
        step.domain, step.op, [values[n] for n in step.inputs], attributes, outputs=outputs, name=outputs[0].name
    )


def _constant(constant: Constant) -> onnx_ir.Value:
    dtype = onnx_ir.DataType(ONNX_DTYPES[constant.dtype])
    numbers = numpy.array(constant.values, dtype.numpy()).reshape(constant.shape)
    tensor = onnx_ir.Tensor(numbers, dtype, name=constant.name)
    return onnx_ir.Value(name=constant.name, shape=tensor.shape, type=onnx_ir.TensorType(dtype), const_value=tensor)


def externalize(model: onnx_ir.Model, names: list[str]) -> None:
    """Turn inputs of the model into initializers that refer to memory outside of it."""
    wanted = set(names)
    kept = [v for v in model.graph.inputs if v.name not in wanted]
    moved = [v for v in model.graph.inputs if v.name in wanted]
    model.graph.inputs.clear()
    model.graph.inputs.extend(kept)
    for value in moved:
        assert value.name is not None
        assert value.dtype is not None
        assert value.shape is not None
        value.const_value = onnx_ir.ExternalTensor(
            location="weights", offset=0, length=None, dtype=value.dtype, shape=value.shape, name=value.name
        )
        model.graph.register_initializer(value)


def _input(name: str, value: Value) -> onnx_ir.Value:
    return _typed(onnx_ir.Value(name=name), value)


def _typed(ref: onnx_ir.Value, value: Value) -> onnx_ir.Value:
    """Give a value the type that the IR declares; the text of a symbolic dimension is its name."""
    dtype, shape = (value.type.dtype, value.type.shape) if isinstance(value.type, TensorType) else (DType.i64, ())
    ref.type = onnx_ir.TensorType(onnx_ir.DataType(ONNX_DTYPES[dtype]))
    ref.shape = onnx_ir.Shape(list(shape))
    return ref
