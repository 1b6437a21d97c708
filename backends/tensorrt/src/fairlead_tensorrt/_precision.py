"""Every product of a lowered model in half precision, where the caller asks for that."""

from __future__ import annotations

import onnx_ir

from fairlead_tensorrt._target import PRODUCTS

__all__ = ["narrow_products"]

_HALVES = {"f16": onnx_ir.DataType.FLOAT16, "bf16": onnx_ir.DataType.BFLOAT16}


def narrow_products(model: onnx_ir.Model, precision: str) -> None:
    """With ``f16`` or ``bf16``, round the operands of products of f32 to that, and their results.

    TensorRT's networks are strongly typed: what a product is computed in is the type of its operands.
    """
    half = _HALVES.get(precision)
    if half is None:
        return
    graph = model.graph
    for node in [n for n in graph if n.op_type in PRODUCTS and not _is_half(n)]:
        for place, value in enumerate(node.inputs):
            if value is not None:
                cast = _cast(value, half, f"{node.name}_{place}")
                graph.insert_before(node, cast)
                node.replace_input_with(place, cast.outputs[0])
        product = node.outputs[0]
        readers = list(product.uses())
        wide = _cast(product, onnx_ir.DataType.FLOAT, f"{node.name}_wide")
        graph.insert_after(node, wide)
        for reader, place in readers:
            reader.replace_input_with(place, wide.outputs[0])


def _is_half(node: onnx_ir.Node) -> bool:
    """Whether a product is one of halves already: its result is widened, which the lowering does of no other."""
    return any(
        reader.op_type == "Cast" and reader.attributes["to"].as_int() == 1 for reader, _ in node.outputs[0].uses()
    )


def _cast(value: onnx_ir.Value, dtype: onnx_ir.DataType, name: str) -> onnx_ir.Node:
    return onnx_ir.node("Cast", [value], {"to": int(dtype)}, outputs=[onnx_ir.Value(name=name)], name=name)
