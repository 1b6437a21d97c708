"""Builds the onnx-ir model from what a writer collected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy
import onnx_ir

from fairlead.ir import Dim, DType, Graph, TensorType, Value
from fairlead_onnx._lower import Lowered
from fairlead_onnx._writer import ONNX_DTYPES, Body, Constant, Ref, Step, Writer

__all__ = ["build", "externalize"]

_IR_VERSION = 10
"""The ONNX file format of opset 21 and below; readers of the last two years know it."""


def build(
    graph: Graph, writer: Writer, names: list[str], outputs: tuple[Ref, ...], check: Ref | None = None
) -> Lowered:
    """The model of a graph: inputs in order, dead steps left out. ``check`` is its last output."""
    checks = () if check is None else (check,)
    steps = _live(writer.steps, {r.name for r in (*outputs, *checks)})
    used = _read(steps)
    values: dict[str, onnx_ir.Value] = {"": None}  # type: ignore[dict-item]  # an absent operand
    inputs = [_input(name, i.value) for name, i in zip(names, graph.inputs, strict=True) if name in used]
    values.update((v.name or "", v) for v in inputs)
    nodes, constants = _nodes(steps, list(writer.constants.values()), values)
    results = [_typed(values[r.name], v) for r, v in zip(outputs, graph.output_values(), strict=True)]
    for index, result in enumerate(results):
        result.name = f"out{index}"
    results += [_sized(values[r.name], r, ()) for r in checks]
    imports = {"": writer.target.opset}
    imports |= {step.domain: 1 for step in _all(steps) if step.domain}
    body = onnx_ir.Graph(inputs, results, nodes=nodes, initializers=constants, opset_imports=imports, name=graph.name)
    model = onnx_ir.Model(body, ir_version=_IR_VERSION)
    read = tuple(n if n in used else None for n in names)
    return Lowered(model, read, tuple(f"out{i}" for i in range(len(outputs))), None if check is None else check.name)


def _live(steps: Sequence[Step], wanted: set[str]) -> list[Step]:
    kept = []
    for step in reversed(steps):
        if wanted.intersection(step.outputs):
            wanted.update(step.reads())
            kept.append(step)
    return kept[::-1]


def _read(steps: Sequence[Step]) -> frozenset[str]:
    return frozenset().union(*(step.reads() for step in steps))


def _all(steps: Sequence[Step]) -> Iterator[Step]:
    """The steps, and those of their bodies."""
    for step in steps:
        yield step
        for _, body in step.bodies:
            yield from _all(body.steps)


def _nodes(
    steps: Sequence[Step], constants: Sequence[Constant], values: dict[str, onnx_ir.Value]
) -> tuple[list[onnx_ir.Node], list[onnx_ir.Value]]:
    """The nodes of steps, and the constants that they read; both are entered in ``values``."""
    used = _read(steps)
    held = [_constant(c) for c in constants if c.name in used]
    values.update((v.name or "", v) for v in held)
    return [_node(step, values) for step in steps], held


def _node(step: Step, values: dict[str, onnx_ir.Value]) -> onnx_ir.Node:
    attributes = onnx_ir.convenience.convert_attributes(
        {k: list(v) if isinstance(v, tuple) else v for k, v in step.attributes}
    )
    attributes += [
        onnx_ir.AttrGraph(name, _body(f"{step.outputs[0]}_{name}", body, values)) for name, body in step.bodies
    ]
    outputs = [onnx_ir.Value(name=name) for name in step.outputs]
    values.update(zip(step.outputs, outputs, strict=True))
    return onnx_ir.Node(
        step.domain, step.op, [values[n] for n in step.inputs], attributes, outputs=outputs, name=outputs[0].name
    )


def _body(name: str, body: Body, around: dict[str, onnx_ir.Value]) -> onnx_ir.Graph:
    values = dict(around)
    inputs = [_sized(onnx_ir.Value(name=ref.name), ref, shape) for ref, shape in body.inputs]
    values.update((v.name or "", v) for v in inputs)
    steps = _live(body.steps, {ref.name for ref, _ in body.outputs})
    nodes, constants = _nodes(steps, body.constants, values)
    outputs = [_sized(values[ref.name], ref, shape) for ref, shape in body.outputs]
    return onnx_ir.Graph(inputs, outputs, nodes=nodes, initializers=constants, name=name)


def _sized(value: onnx_ir.Value, ref: Ref, shape: Sequence[Dim]) -> onnx_ir.Value:
    """A value with its element type, and the dimensions that are known."""
    value.type = onnx_ir.TensorType(onnx_ir.DataType(ONNX_DTYPES[ref.dtype]))
    value.shape = onnx_ir.Shape([d if isinstance(d, int) else None for d in shape])
    return value


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
