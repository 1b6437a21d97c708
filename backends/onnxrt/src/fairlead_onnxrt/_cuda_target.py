"""What ONNX Runtime's CUDA kernels compute in, and what they get wrong when they are left to.

Source: ONNX Runtime's list of operator kernels, 1.23 to 1.31, for the kernels of opset 20, their sources for the rest.
"""

from __future__ import annotations

from fairlead.ir import DType
from fairlead_onnx import Target

__all__ = ["CUDA_TARGET"]

_FLOATING = frozenset({DType.f32, DType.f64})
_WORDS = frozenset({DType.i32, DType.i64})
_NUMBERS = _FLOATING | _WORDS
_STORED = _NUMBERS | {DType.bool, DType.u8, DType.i8, DType.i16}
_HALVES = frozenset({DType.f16, DType.bf16})

_KERNELS = {
    **dict.fromkeys(("Concat", "Expand", "Gather", "GatherElements", "Reshape", "Slice"), _STORED),
    **dict.fromkeys(("Shape", "Squeeze", "Transpose", "Trilu", "Unsqueeze"), _STORED),
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Mod", "Max", "Min", "Abs", "Neg", "Sign"), _NUMBERS),
    **dict.fromkeys(("Less", "LessOrEqual", "Greater", "GreaterOrEqual"), _NUMBERS),
    **dict.fromkeys(("CumSum", "Range", "ScatterElements", "ScatterND", "Tile", "TopK"), _NUMBERS),
    **dict.fromkeys(("And", "Or", "Xor", "Not"), frozenset({DType.bool})),
    **dict.fromkeys(("Ceil", "Cos", "Erf", "Exp", "Floor", "IsInf", "IsNaN", "Log"), _FLOATING),
    **dict.fromkeys(("Pow", "Reciprocal", "Round", "Sin", "Sqrt", "Tanh"), _FLOATING),
    **dict.fromkeys(("Elu", "Gelu", "HardSigmoid", "LeakyRelu", "Relu", "Sigmoid"), _FLOATING),
    **dict.fromkeys(("LogSoftmax", "Softmax", "SimplifiedLayerNormalization"), frozenset({DType.f32})),  # f64 is coarse
    **dict.fromkeys(("AveragePool", "BatchNormalization", "ConvTranspose", "LayerNormalization", "MaxPool"), _FLOATING),
    **dict.fromkeys(("ArgMax", "ArgMin", "ReduceMean", "ReduceProd", "ReduceSum"), _FLOATING),
    **dict.fromkeys(("Gemm", "MatMul", "FusedMatMul"), _FLOATING | _HALVES),
    "Clip": _FLOATING | {DType.i64},
    "Conv": _FLOATING | {DType.f16},
    "Equal": _NUMBERS | {DType.bool},
    "GatherND": _FLOATING | {DType.i64, DType.bool},
    "Pad": _FLOATING | {DType.bool},
    "ScatterND add": _FLOATING,
    "ReduceMax": _FLOATING | {DType.i32},  # of truth values: numbers are ranked instead, for they lose digits
    "ReduceMin": _FLOATING | {DType.i32},
    "Where": _NUMBERS | {DType.u8},
}

CUDA_TARGET = Target(
    name="ONNX Runtime on CUDA",
    contrib=True,
    complete=True,
    unchecked=True,
    kernels=_KERNELS,
    declined={"aten.convolution_backward.default": "ONNX Runtime has no kernel for the gradient of a convolution"},
    avoided=frozenset({"ReduceMax", "ReduceMin", "ReduceSum", "Split", "TopK"}),
    coarse=frozenset({"Sigmoid", "Softplus"}),
    drops_nan=frozenset({"MaxPool"}),
    where_drops_sign=True,
    most_joined=32,
)
"""The CUDA provider, with its contrib ops. Products of halves are computed in halves, as by torch; all else in f32."""
