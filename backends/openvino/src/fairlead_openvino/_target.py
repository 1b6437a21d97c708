"""What OpenVINO's CPU plugin computes in, and what it is declined for."""

from __future__ import annotations

import functools

import msgspec

from fairlead.ir import DType
from fairlead_onnx import Target

__all__ = ["TARGET", "cuts_bfloat16", "saturates", "target_here"]

_SINGLE = frozenset({DType.f32})
_WORDS = frozenset({DType.i32, DType.i64})
_NUMBERS = _SINGLE | _WORDS

_KERNELS = {
    **dict.fromkeys(("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cosh", "Sinh", "Tan", "Erf"), _SINGLE),
    **dict.fromkeys(("Gelu", "Elu", "LeakyRelu", "HardSigmoid", "Softplus", "LSTM"), _SINGLE),
    **dict.fromkeys(("Conv", "ConvTranspose", "AveragePool", "MaxPool", "BatchNormalization"), _SINGLE),
    **dict.fromkeys(
        ("Exp", "Log", "Sqrt", "Sigmoid", "Tanh", "Ceil", "Floor", "Round", "Reciprocal", "Cos", "Sin"), _SINGLE
    ),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Gemm", "MatMul", "Pow", "Relu"), _SINGLE),
    **dict.fromkeys(("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"), _WORDS),
    **dict.fromkeys(("Expand", "Pad", "Where", "Trilu"), _NUMBERS | {DType.bool}),
    "Equal": _NUMBERS | {DType.bool},
    "Mod": _WORDS,  # of floats it is a - b * trunc(a / b), which is off by b where the quotient rounds up
}

_DECLINED = {
    **dict.fromkeys(("hop.scan", "hop.map"), "OpenVINO reads no Scan whose body reads tensors from around it"),
    "aten.convolution_backward.default": "OpenVINO computes the gradient of a convolution slower than torch",
}

TARGET = Target(
    name="OpenVINO",
    declined=_DECLINED,
    dtypes=frozenset(
        {DType.bool, DType.u8, DType.i8, DType.i16, DType.i32, DType.i64, DType.f16, DType.bf16, DType.f32}
    ),
    readable=frozenset({DType.f64}),
    kernels=_KERNELS,
    drops_nan=frozenset({"Exp", "MaxPool", "Relu", "Max", "Min", "Clip", "HardSigmoid"}),
    reduces_from_finite=True,
    partial_rows=True,
    casts_truth=False,
    sums_serially=True,
    unchecked=True,
    pools=True,
    widened=frozenset({DType.i16}),
    avoided=frozenset(
        {
            *("Abs", "ReduceMax", "ReduceMin", "TopK of equals"),  # shown by defects/edges.py
            *("Div of integers", "Less of integers"),  # both are made in f32
            "GatherND",  # is no reference implementation's
            "Concat of 27",  # products of so many features become a recommender's, whichever were asked for
            "IsNaN",  # is right, and a step of its own, where a comparison is computed with what is around it
        }
    ),
    coarse=frozenset({"Softplus", "Exp"}),
)
"""The CPU plugin. It has no f64: it would compute it in f32."""


def target_here() -> Target:
    """`TARGET`, on this processor."""
    return msgspec.structs.replace(TARGET, cuts=frozenset({DType.bf16})) if cuts_bfloat16() else TARGET


@functools.cache
def cuts_bfloat16() -> bool:
    """Whether a number of float32 becomes another than the nearest of bfloat16, in either of the plugin's conversions.

    It has one for a graph whose sizes are known and one for any other. With AVX2 alone both drop digits; where the
    processor has bfloat16, the second does, unless all of the graph is computed in it.
    """
    import numpy
    import openvino
    from openvino import opset13

    from fairlead_openvino._forks import compile_model

    def made(size: int) -> int:
        x = opset13.parameter([size], openvino.Type.f32)
        model = openvino.Model([opset13.convert(x, openvino.Type.bf16)], [x])
        compiled = compile_model(openvino.Core(), model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        (near,) = compiled([numpy.array([1.0 + 2**-8 + 2**-9], numpy.float32)]).values()
        return int(near.view(numpy.uint16)[0])

    return any(made(size) != 0x3F81 for size in (1, -1))


@functools.cache
def saturates() -> bool:
    """Whether products of unsigned and signed bytes are added in too few bits, as on processors with AVX2 alone."""
    import numpy
    import openvino
    from openvino import opset13

    from fairlead_openvino._forks import compile_model

    def number(value: float) -> openvino.Node:
        return opset13.constant(numpy.float32(value))

    x = opset13.parameter([1, 16], openvino.Type.f32)
    bytes_ = opset13.fake_quantize(x, number(0), number(255), number(0), number(255), 256)
    weight = opset13.convert(opset13.constant(numpy.full((16, 16), 127, numpy.int8)), openvino.Type.f32)
    product = opset13.matmul(bytes_, opset13.multiply(weight, number(1)), False, True)
    compiled = compile_model(
        openvino.Core(), openvino.Model([product], [x]), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
    )
    (found,) = compiled([numpy.full((1, 16), 255, numpy.float32)]).values()
    return float(found[0, 0]) != 16 * 255 * 127
