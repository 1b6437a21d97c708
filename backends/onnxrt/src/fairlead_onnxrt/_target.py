"""What ONNX Runtime's CPU kernels compute in; a test compares this with the installed runtime."""

from __future__ import annotations

import functools

import msgspec

from fairlead import processor
from fairlead.ir import DType
from fairlead_onnx import Target

__all__ = ["TARGET", "contends", "saturates", "target_here"]

_SINGLE = frozenset({DType.f32})
_FLOATING = frozenset({DType.f32, DType.f64})
_WORDS = frozenset({DType.i32, DType.i64})
_NUMBERS = _FLOATING | _WORDS
_BYTES = frozenset({DType.u8, DType.i8})

_KERNELS = {
    **dict.fromkeys(("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cosh", "Sinh", "Tan", "Erf"), _SINGLE),
    **dict.fromkeys(("Gelu", "Elu", "LeakyRelu", "HardSigmoid", "Softplus"), _SINGLE),
    **dict.fromkeys(("Conv", "ConvTranspose", "AveragePool", "LSTM"), _SINGLE),
    **dict.fromkeys(("Cos", "Sin", "LogSoftmax"), _SINGLE),  # of f64 they are coarse, and miss a NaN
    **dict.fromkeys(("Exp", "Log", "Sqrt", "Sigmoid", "Tanh", "Ceil", "Floor", "Round", "Reciprocal"), _FLOATING),
    **dict.fromkeys(("Softmax", "Gemm", "FusedMatMul", "BatchNormalization", "MaxPool"), _FLOATING),
    **dict.fromkeys(("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"), _WORDS | _BYTES),
    **dict.fromkeys(("Expand", "Pad"), _NUMBERS | {DType.bool}),
    "Equal": _NUMBERS | {DType.bool},
    # of i64, their kernels for AVX2 compare halves of 32 bits
    **dict.fromkeys(("Max", "Min", "Sign", "ReduceMax", "ReduceMin"), _FLOATING | {DType.i32}),
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
    avoided=frozenset({"ScatterND add"}),
    coarse=frozenset({"Sigmoid"}),
    drops_nan=frozenset({"MaxPool"}),
    where_drops_sign=True,
    sums_serially=True,
    wraps=True,
    most_added=2**14,
)
"""The CPU provider, with its contrib ops; `backends/onnxrt/defects/edges.py` shows what it gets wrong by itself."""


def target_here() -> Target:
    """`TARGET`, on this processor."""
    return msgspec.structs.replace(TARGET, saturates=saturates(), contends=contends())


def contends() -> int:
    """Bytes after which rows of a product fall on one set of the first-level cache, where that has too few ways.

    MLAS's kernel for AVX-512 reads twelve rows in one step. The set is one of 64, of lines of 64 bytes.
    """
    return 4096 if processor.has_avx512() else 0


@functools.cache
def saturates() -> bool:
    """Whether products of unsigned and signed bytes are added in too few bits, as on processors with AVX2 alone."""
    import numpy
    import onnx_ir
    import onnxruntime

    from fairlead_onnxrt._denormals import as_before

    kinds = {"a": (onnx_ir.DataType.UINT8, (1, 4)), "b": (onnx_ir.DataType.INT8, (4, 1))}
    given = [
        onnx_ir.Value(name=name, type=onnx_ir.TensorType(kind), shape=onnx_ir.Shape(shape))
        for name, (kind, shape) in kinds.items()
    ]
    node = onnx_ir.Node("", "MatMulInteger", given)
    (out,) = node.outputs
    out.name, out.type = "y", onnx_ir.TensorType(onnx_ir.DataType.INT32)
    body = onnx_ir.Graph(given, [out], nodes=[node], opset_imports={"": 20}, name="saturates")
    model = onnx_ir.serde.serialize_model(onnx_ir.Model(body, ir_version=10)).SerializeToString()
    with as_before():
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"a": numpy.full((1, 4), 255, numpy.uint8), "b": numpy.full((4, 1), 127, numpy.int8)})
    return int(found[0, 0]) != 4 * 255 * 127
