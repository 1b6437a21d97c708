"""What ONNX Runtime's CPU kernels compute in; a test compares this with the installed runtime."""

from __future__ import annotations

from fairlead.ir import DType
from fairlead_onnx import Target

__all__ = ["TARGET"]

_SINGLE = frozenset({DType.f32})
_FLOATING = frozenset({DType.f32, DType.f64})
_WORDS = frozenset({DType.i32, DType.i64})
_NUMBERS = _FLOATING | _WORDS
_BYTES = frozenset({DType.u8, DType.i8})

_KERNELS = {
    **dict.fromkeys(("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cosh", "Sinh", "Tan", "Erf"), _SINGLE),
    **dict.fromkeys(("Gelu", "Elu", "LeakyRelu", "HardSigmoid", "Softplus"), _SINGLE),
    **dict.fromkeys(("Conv", "ConvTranspose", "AveragePool"), _SINGLE),
    **dict.fromkeys(("Cos", "Sin", "LogSoftmax"), _SINGLE),  # of f64 they are coarse, and miss a NaN
    **dict.fromkeys(("Exp", "Log", "Sqrt", "Sigmoid", "Tanh", "Ceil", "Floor", "Round", "Reciprocal"), _FLOATING),
    **dict.fromkeys(("Softmax", "Gemm", "FusedMatMul", "BatchNormalization", "MaxPool"), _FLOATING),
    **dict.fromkeys(("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"), _WORDS | _BYTES),
    **dict.fromkeys(("Expand", "Pad"), _NUMBERS | {DType.bool}),
    "Equal": _NUMBERS | {DType.bool},
    "Relu": _FLOATING | {DType.i32},
    "Trilu": _FLOATING | {DType.i64, DType.bool},
    "Where": _NUMBERS | {DType.u8},
}

_DECLINED = {
    "aten.convolution_backward.default": "ONNX Runtime has no kernel for the gradient of a convolution",
}

TARGET = Target(
    name="ONNX Runtime",
    contrib=True,
    kernels=_KERNELS,
    declined=_DECLINED,
    coarse=frozenset({"Sigmoid"}),
    drops_nan=frozenset({"MaxPool"}),
    where_drops_sign=True,
    sums_serially=True,
)
"""The CPU provider, with its contrib ops; `backends/onnxrt/defects/edges.py` shows what it gets wrong by itself."""
