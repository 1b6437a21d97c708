"""Keeps numbers that one step of a kernel reads from contending for one set of the cache.

Kernels of products and convolutions for AVX-512 read their input in place, a dozen rows of it in one step. Where these
lie a multiple of 4096 bytes apart, all fall on one set of the first-level cache, which has fewer ways
(docs/results/cpu-kernels.md, decision 0054).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy
import openvino
from openvino import opset13

from fairlead import processor
from fairlead_openvino._nodes import is_constant

__all__ = ["avoid_conflicts"]

_PERIOD = 4096 // 4
"""Numbers of f32 after which addresses fall on the same set: one of 64, of lines of 64 bytes."""

_ROWS, _COLUMNS, _MOST_DIMENSIONS = 32, 96, 3
"""Of products with at least so many, and with operands of at most so many dimensions, oneDNN is the quicker."""

_FUSED = frozenset({"Clamp", "Elu", "Gelu", "HSwish", "Mish", "PRelu", "Relu", "Sigmoid", "SoftPlus", "Swish", "Tanh"})
"""What the plugin fuses with a product, and so gives to oneDNN by itself."""

_POSITIONS, _USES = 28, 512
"""Of results with at least so many along the last axis, and where each number of the input is multiplied so often
in the mean, a copy of the input is worth it."""

_ADDED = 8
"""Channels of zeros: with the others, no two positions that are read in one step are a multiple of the period apart."""


def avoid_conflicts(model: openvino.Model) -> None:
    """Change products and convolutions whose rows would contend, and no number that they make."""
    if not processor.has_avx512():
        return
    for product in list(_contending_products(model)):
        _give_to_onednn(product)
    for convolution in list(_contending_convolutions(model)):
        _add_channels(convolution)


def _give_to_onednn(product: Any) -> None:
    """Have the plugin fuse a PRelu of slope 1 with a product, and so take oneDNN in place of MLAS.

    MLAS is what it takes for a product with a constant that nothing is fused with.
    """
    biased = _biased(product)
    readers = list(biased.get_target_inputs())
    if not any(reader.get_node().get_type_name() in _FUSED for reader in readers):
        same = opset13.prelu(biased, opset13.constant(numpy.ones(1, numpy.float32)))
        for reader in readers:
            reader.replace_source_output(same.output(0))


def _contending_products(model: openvino.Model) -> Iterator[Any]:
    for product, given, _, result in _with_constants(model, "MatMul"):
        *rows, terms = given
        contends = terms % _PERIOD == 0 and math.prod(rows) >= _ROWS and result[-1] >= _COLUMNS
        if contends and len(given) <= _MOST_DIMENSIONS and not product.get_attributes()["transpose_a"]:
            yield product


def _biased(product: Any) -> Any:
    """The product, or the sum of it and a constant, where that alone reads it."""
    found = product.output(0)
    if len(readers := found.get_target_inputs()) == 1:
        (reader,) = readers
        total = reader.get_node()
        if total.get_type_name() == "Add" and any(is_constant(value.get_node()) for value in total.input_values()):
            return total.output(0)
    return found


def _add_channels(convolution: Any) -> None:
    """Lengthen the positions of a convolution's input, and of its weight, by channels of zeros."""
    for operand in convolution.inputs():
        count, _, *sizes = operand.get_shape()
        zeros = opset13.constant(numpy.zeros((count, _ADDED, *sizes), numpy.float32))
        operand.replace_source_output(opset13.concat([operand.get_source_output(), zeros], 1).output(0))


def _contending_convolutions(model: openvino.Model) -> Iterator[Any]:
    """Those whose windows overlap along the last axis: no others were the quicker for it."""
    for convolution, given, weight, result in _with_constants(model, "Convolution"):
        strides = convolution.get_attributes()["strides"]
        uses = result[1] * math.prod(weight[2:]) / math.prod(strides)
        contends = given[1] * strides[-1] % _PERIOD == 0 and weight[-1] > strides[-1]
        if contends and uses >= _USES and result[-1] >= _POSITIONS:
            yield convolution


def _with_constants(model: openvino.Model, op: str) -> Iterator[tuple[Any, list[int], list[int], list[int]]]:
    """The nodes of an op with a constant, in f32, and the shapes of operands and result, where they are known."""
    for node in model.get_ops():
        if node.get_type_name() == op and node.get_output_element_type(0) == openvino.Type.f32:
            shapes = [*(node.get_input_partial_shape(i) for i in range(2)), node.get_output_partial_shape(0)]
            if all(shape.is_static for shape in shapes) and is_constant(node.input_value(1).get_node()):
                given, weight, result = (list(shape.to_shape()) for shape in shapes)
                yield node, given, weight, result
