"""Rules of activation functions and softmax."""

from __future__ import annotations

import math

from fairlead.ir import DType
from fairlead_onnx._call import Call
from fairlead_onnx._exponentials import softplus_of
from fairlead_onnx._logic import extremum
from fairlead_onnx._reductions import everywhere, reduce
from fairlead_onnx._rules import rule
from fairlead_onnx._writer import Declined, Ref, Writer

__all__ = ["normal_cdf", "normal_density", "tanh_of_gelu"]

_TAKES_RELU = frozenset({"Add", "BatchNormalization", "Conv", "ConvTranspose", "Gemm", "MatMul"})
"""What a runtime computes together with a ReLU behind it: a pass over the memory less, which is much in a network."""


@rule("aten.relu.default")
def relu(c: Call) -> Ref:
    """Where the runtime's own drops a NaN, and is not fused into what comes before, the larger of 0 and x.

    In this order: OpenVINO's Max is its second operand where one of them is a NaN.
    """
    w, x = c.writer, c.tensor(0)
    if "Relu" not in w.target.drops_nan or not x.dtype.is_floating:
        return w.same("Relu", x)
    source = w.producer(x)
    if source is not None and source.op in _TAKES_RELU:
        return w.op("Relu", x)
    return w.op("Max", w.number(0.0, x.dtype), x)


@rule("aten.gelu.default")
def gelu(c: Call) -> Ref:
    kind = str(c.args[1])
    x = c.tensor(0)
    if c.writer.kernel_dtype("Gelu", x.dtype) is x.dtype:
        return c.writer.op("Gelu", x, approximate=kind)
    raise Declined(f"{c.writer.target.name} has no Gelu for {x.dtype}")


@rule("aten.silu.default")
def silu(c: Call) -> Ref:
    return c.writer.same("Mul", c.tensor(0), c.writer.same("Sigmoid", c.tensor(0)))


@rule("aten.log_sigmoid_forward.default")
def log_sigmoid(c: Call) -> tuple[Ref | None, ...]:
    """``min(0, x) - log(1 + exp(-|x|))``; the buffer is eager's scratch space, empty on the CPU."""
    if c.wants(1):
        raise Declined("the scratch buffer of log_sigmoid")
    w, x = c.writer, c.tensor(0)
    low = extremum(c, "Min", x, w.number(0.0, x.dtype))
    shrunk = w.same("Exp", w.same("Neg", w.abs(x)))
    return w.same("Sub", low, w.same("Log", w.same("Add", shrunk, w.number(1.0, x.dtype)))), None


@rule("aten.elu.default")
def elu(c: Call) -> Ref:
    w, x = c.writer, c.tensor(0)
    alpha, scale, input_scale = (float(c.number(i)) for i in (1, 2, 3))
    if input_scale == 1.0:
        y = w.same("Elu", x, alpha=alpha)
        return y if scale == 1.0 else w.same("Mul", y, w.number(scale, x.dtype))
    raise Declined("elu with an input scale")


@rule("aten.leaky_relu.default")
def leaky_relu(c: Call) -> Ref:
    slope = float(c.number(1))
    if slope < 0:  # runtimes leave a -0 as it is, which torch multiplies
        return _sloped(c)
    return c.writer.same("LeakyRelu", c.tensor(0), alpha=slope)


@rule("aten._prelu_kernel.default")
def prelu(c: Call) -> Ref:
    return _sloped(c)


def _sloped(c: Call) -> Ref:
    w, x = c.writer, c.tensor(0)
    positive = w.same("Greater", x, w.number(0.0, x.dtype), result=DType.bool)
    return w.select(positive, x, w.same("Mul", x, c.tensor(1, x.dtype)))


@rule("aten.hardtanh.default")
def hardtanh(c: Call) -> Ref:
    w, x = c.writer, c.tensor(0)
    if x.dtype is not DType.f32:
        return extremum(c, "Min", extremum(c, "Max", x, c.tensor(1, x.dtype)), c.tensor(2, x.dtype))
    return w.with_nan("Clip", w.op("Clip", x, c.tensor(1, x.dtype), c.tensor(2, x.dtype)), x)


_SLOPE, _OFFSET = 1 / 6, 0.5
"""Of the gate of a hard sigmoid, between 0 and 1."""


@rule("aten.hardsigmoid.default")
def hardsigmoid(c: Call) -> Ref:
    return c.writer.same("HardSigmoid", c.tensor(0), alpha=_SLOPE, beta=_OFFSET)


@rule("aten.hardswish.default")
def hardswish(c: Call) -> Ref:
    """Of a NaN the gate may be any number: the product is NaN, and the runtime may have it all in one step."""
    w, x = c.writer, c.tensor(0)
    wide = w.kernel_dtype("HardSigmoid", x.dtype)
    numbers = w.cast(x, wide)
    gate = w.op("HardSigmoid", numbers, alpha=_SLOPE, beta=_OFFSET)
    return w.cast(w.same("Mul", numbers, gate), x.dtype)


@rule("aten.softplus.default")
def softplus(c: Call) -> Ref:
    """``log(1 + exp(x * beta)) / beta``, and x itself above the threshold."""
    w, x = c.writer, c.tensor(0)
    beta, threshold = w.number(float(c.number(1)), x.dtype), w.number(float(c.number(2)), x.dtype)
    scaled = x if c.number(1) == 1 else w.same("Mul", x, beta)
    smooth = softplus_of(w, scaled)
    smooth = smooth if c.number(1) == 1 else w.same("Div", smooth, beta)
    return w.select(w.same("Greater", scaled, threshold, result=DType.bool), x, smooth)


@rule("aten.mish.default")
def mish(c: Call) -> Ref:
    w, x = c.writer, c.tensor(0)
    return w.same("Mul", x, w.same("Tanh", softplus_of(w, x)))


@rule("aten._softmax.default")
def softmax(c: Call) -> Ref:
    return _normalised(c, "Softmax")


@rule("aten._log_softmax.default")
def log_softmax(c: Call) -> Ref:
    return _normalised(c, "LogSoftmax")


@rule("aten._safe_softmax.default")
def safe_softmax(c: Call) -> Ref:
    """Softmax with rows of zeros where every element is minus infinity."""
    w, x, axis = c.writer, c.tensor(0, c.dtype), c.axis(1)
    if c.rank(0) == 0:
        raise Declined("the safe softmax of a 0-d tensor")
    dead = everywhere(w, w.same("Equal", x, w.number(-math.inf, x.dtype), result=DType.bool), (axis,))
    return w.select(dead, w.number(0.0, x.dtype), w.same("Softmax", x, axis=axis))


def _normalised(c: Call, op: str) -> Ref:
    w, x = c.writer, c.tensor(0, c.dtype)
    if c.rank(0) == 0:  # one or zero, or a NaN
        difference = w.same("Sub", x, x)
        return w.same("Exp", difference) if op == "Softmax" else difference
    if op == "LogSoftmax" and x.dtype not in w.target.kernels.get(op, {x.dtype}):
        return _log_softmax(w, x, c.axis(1))
    out = w.same(op, x, axis=c.axis(1))
    if not w.target.partial_rows:
        return out
    total = reduce(w, "ReduceSum", out if op == "Softmax" else w.op("Exp", out), (c.axis(1),))  # 1 or not finite
    return w.same("Add", out, w.same("Sub", total, total))


def _log_softmax(w: Writer, x: Ref, axis: int) -> Ref:
    centred = w.same("Sub", x, reduce(w, "ReduceMax", x, (axis,)))
    return w.same("Sub", centred, w.same("Log", reduce(w, "ReduceSum", w.same("Exp", centred), (axis,))))


def normal_cdf(w: Writer, x: Ref) -> Ref:
    """The distribution function of the standard normal."""
    erf = w.same("Erf", w.same("Mul", x, w.number(math.sqrt(0.5), x.dtype)))
    return w.same("Mul", w.same("Add", erf, w.number(1.0, x.dtype)), w.number(0.5, x.dtype))


def normal_density(w: Writer, x: Ref) -> Ref:
    """The density of the standard normal."""
    exponent = w.same("Mul", w.same("Mul", x, x), w.number(-0.5, x.dtype))
    return w.same("Mul", w.same("Exp", exponent), w.number(1 / math.sqrt(2 * math.pi), x.dtype))


def tanh_of_gelu(w: Writer, x: Ref) -> Ref:
    """The inner tanh of the approximate gelu: ``tanh(sqrt(2/pi) * (x + 0.044715 x^3))``."""
    cube = w.same("Mul", w.same("Mul", x, x), x)
    inner = w.same("Add", x, w.same("Mul", cube, w.number(0.044715, x.dtype)))
    return w.same("Tanh", w.same("Mul", inner, w.number(math.sqrt(2 / math.pi), x.dtype)))
