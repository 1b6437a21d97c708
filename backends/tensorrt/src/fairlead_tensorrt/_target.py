"""What TensorRT computes in, by NVIDIA's list of ops; the parser has the last word on each node."""

from __future__ import annotations

from fairlead.ir import DType
from fairlead_onnx import Target

__all__ = ["PRODUCTS", "TARGET"]

_SINGLE = frozenset({DType.f32})
_WORDS = frozenset({DType.i32, DType.i64})
_NUMBERS = _SINGLE | _WORDS

_FLOATS_ONLY = (
    *("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cos", "Cosh", "Sin", "Sinh", "Tan", "Erf", "Exp", "Log"),
    *("Sqrt", "Sigmoid", "Tanh", "Ceil", "Floor", "Round", "Reciprocal", "Gelu", "Elu", "LeakyRelu", "HardSigmoid"),
    *("Softplus", "Softmax", "LogSoftmax", "AveragePool", "MaxPool", "Pow", "Relu"),
)

PRODUCTS = frozenset({"MatMul", "Gemm", "Conv", "ConvTranspose"})

TARGET = Target(
    name="TensorRT",
    dtypes=frozenset({DType.bool, DType.i32, DType.i64, DType.f16, DType.bf16, DType.f32}),
    kernels={
        **dict.fromkeys(_FLOATS_ONLY, _SINGLE),
        **dict.fromkeys(PRODUCTS, _SINGLE | {DType.f16, DType.bf16}),
        **dict.fromkeys(("Expand", "Pad", "Where", "Trilu", "Equal"), _NUMBERS | {DType.bool}),
    },
    avoided=frozenset({"BatchNormalization", "LayerNormalization"}),
    declined={"aten.convolution_backward.default": "TensorRT has no gradient of a convolution"},
)
"""Strongly typed, without quantised types: bytes are quantised numbers to TensorRT. There is no f64.

The parser folds the weights of a BatchNormalization into one that has no name to be refitted by, and knows no second
result of a LayerNormalization.
"""
