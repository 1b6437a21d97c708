"""Gives products of many terms to oneDNN, where OpenVINO's CPU plugin would take MLAS for them.

The plugin has both. It takes MLAS for a product with a constant that nothing is fused with, and MLAS goes over the
result once for each stretch of terms. oneDNN's kernels for AVX-512 do not, and are the quicker the more terms there
are, from a thousand on, and unless there are few rows (docs/results/openvino-kernels.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy
import openvino
import torch
from openvino import opset13

from fairlead_openvino._nodes import is_constant

__all__ = ["give_to_onednn"]

_TERMS, _ROWS, _COLUMNS = 1024, 32, 96
"""Of products with at least so many, oneDNN is the quicker."""

_MOST_DIMENSIONS = 3
"""A tensor of more dimensions is no operand of the kernels in question."""

_FUSED = frozenset({"Clamp", "Elu", "Gelu", "HSwish", "Mish", "PRelu", "Relu", "Sigmoid", "SoftPlus", "Swish", "Tanh"})
"""What the plugin fuses with a product, and so gives to oneDNN by itself."""


def give_to_onednn(model: openvino.Model) -> None:
    """Have the plugin fuse a PRelu of slope 1 with each such product, which changes no number, and so leave MLAS."""
    if not torch.backends.cpu.get_cpu_capability().startswith("AVX512"):
        return
    for product in list(_long_products(model)):
        biased = _biased(product)
        readers = list(biased.get_target_inputs())
        if not any(reader.get_node().get_type_name() in _FUSED for reader in readers):
            same = opset13.prelu(biased, opset13.constant(numpy.ones(1, numpy.float32)))
            for reader in readers:
                reader.replace_source_output(same.output(0))


def _long_products(model: openvino.Model) -> Iterator[Any]:
    for node in model.get_ops():
        if node.get_type_name() != "MatMul" or node.get_output_element_type(0) != openvino.Type.f32:
            continue
        given, result = node.get_input_partial_shape(0), node.get_output_partial_shape(0)
        if not (given.is_static and result.is_static and given.rank.get_length() <= _MOST_DIMENSIONS):
            continue
        *rows, terms = given.to_shape()
        is_long = terms >= _TERMS and math.prod(rows) >= _ROWS and result.to_shape()[-1] >= _COLUMNS
        if is_long and not node.get_attributes()["transpose_a"] and is_constant(node.input_value(1).get_node()):
            yield node


def _biased(product: Any) -> Any:
    """The product, or the sum of it and a constant, where that alone reads it."""
    found = product.output(0)
    if len(readers := found.get_target_inputs()) == 1:
        (reader,) = readers
        total = reader.get_node()
        if total.get_type_name() == "Add" and any(is_constant(value.get_node()) for value in total.input_values()):
            return total.output(0)
    return found
