"""Rules of gradients of activations and normalisations."""

from __future__ import annotations

import math

from fairlead.ir import DType
from fairlead.ir.dims import product
from fairlead_onnx._activations import normal_cdf, normal_density, tanh_of_gelu
from fairlead_onnx._call import Call
from fairlead_onnx._exponentials import sigmoid_of
from fairlead_onnx._norms import as_channels
from fairlead_onnx._reductions import reduce
from fairlead_onnx._rules import rule
from fairlead_onnx._writer import Declined, Ref, Writer

__all__: list[str] = []


@rule("aten.gelu_backward.default")
def gelu_backward(c: Call) -> Ref:
    w, grad, x = c.writer, c.tensor(0, c.dtype), c.tensor(1, c.dtype)
    if c.args[2] == "none":
        slope = w.same("Add", normal_cdf(w, x), w.same("Mul", x, normal_density(w, x)))
        return w.same("Mul", grad, slope)
    half, one = w.number(0.5, x.dtype), w.number(1.0, x.dtype)
    inner = tanh_of_gelu(w, x)
    left = w.same("Mul", half, w.same("Add", inner, one))
    square = w.same("Mul", w.same("Mul", x, x), w.number(3 * 0.044715, x.dtype))
    rise = w.same("Mul", w.same("Add", square, one), w.number(math.sqrt(2 / math.pi), x.dtype))
    flat = w.same("Sub", one, w.same("Mul", inner, inner))
    right = w.same("Mul", w.same("Mul", w.same("Mul", half, x), flat), rise)
    return w.same("Mul", grad, w.same("Add", left, right))


@rule("aten.silu_backward.default")
def silu_backward(c: Call) -> Ref:
    w, grad, x = c.writer, c.tensor(0, c.dtype), c.tensor(1, c.dtype)
    one = w.number(1.0, x.dtype)
    gate = sigmoid_of(w, x)
    slope = w.same("Add", one, w.same("Mul", x, w.same("Sub", one, gate)))
    return w.same("Mul", grad, w.same("Mul", gate, slope))


@rule("aten.sigmoid_backward.default")
def sigmoid_backward(c: Call) -> Ref:
    w, grad, y = c.writer, c.tensor(0, c.dtype), c.tensor(1, c.dtype)
    return w.same("Mul", grad, w.same("Mul", w.same("Sub", w.number(1.0, y.dtype), y), y))


@rule("aten.tanh_backward.default")
def tanh_backward(c: Call) -> Ref:
    w, grad, y = c.writer, c.tensor(0, c.dtype), c.tensor(1, c.dtype)
    return w.same("Mul", grad, w.same("Sub", w.number(1.0, y.dtype), w.same("Mul", y, y)))


@rule("aten.threshold_backward.default")
def threshold_backward(c: Call) -> Ref:
    w, grad = c.writer, c.tensor(0, c.dtype)
    below = w.same("LessOrEqual", c.tensor(1, c.dtype), c.tensor(2, c.dtype), result=DType.bool)
    return w.select(below, _zero(w, grad), grad)


@rule("aten.hardtanh_backward.default")
def hardtanh_backward(c: Call) -> Ref:
    w, grad, x = c.writer, c.tensor(0, c.dtype), c.tensor(1, c.dtype)
    outside = w.op(
        "Or",
        w.same("LessOrEqual", x, c.tensor(2, x.dtype), result=DType.bool),
        w.same("GreaterOrEqual", x, c.tensor(3, x.dtype), result=DType.bool),
    )
    return w.select(outside, _zero(w, grad), grad)


@rule("aten.hardsigmoid_backward.default")
def hardsigmoid_backward(c: Call) -> Ref:
    w, grad, x = c.writer, c.tensor(0, c.dtype), c.tensor(1, c.dtype)
    return w.select(_between(w, x, -3.0, 3.0), w.same("Mul", grad, w.number(1 / 6, x.dtype)), _zero(w, grad))


@rule("aten.hardswish_backward.default")
def hardswish_backward(c: Call) -> Ref:
    w, grad, x = c.writer, c.tensor(0, c.dtype), c.tensor(1, c.dtype)
    slope = w.same("Add", w.same("Div", x, w.number(3.0, x.dtype)), w.number(0.5, x.dtype))
    low = w.same("LessOrEqual", x, w.number(-3.0, x.dtype), result=DType.bool)
    high = w.same("GreaterOrEqual", x, w.number(3.0, x.dtype), result=DType.bool)
    return w.select(low, _zero(w, grad), w.select(high, grad, w.same("Mul", grad, slope)))


def _between(w: Writer, x: Ref, low: float, high: float) -> Ref:
    above = w.same("Greater", x, w.number(low, x.dtype), result=DType.bool)
    return w.op("And", above, w.same("Less", x, w.number(high, x.dtype), result=DType.bool))


@rule("aten.leaky_relu_backward.default")
def leaky_relu_backward(c: Call) -> Ref:
    w, grad = c.writer, c.tensor(0, c.dtype)
    positive = w.same("Greater", c.tensor(1, c.dtype), _zero(w, grad), result=DType.bool)
    return w.select(positive, grad, w.same("Mul", grad, c.tensor(2, c.dtype)))


@rule("aten.elu_backward.default")
def elu_backward(c: Call) -> Ref:
    """Arguments: grad, alpha, scale, input scale, whether the last is the result, input or result."""
    w, grad, x = c.writer, c.tensor(0, c.dtype), c.tensor(5, c.dtype)
    alpha, scale, input_scale = (float(c.number(i)) for i in (1, 2, 3))
    low = w.same("LessOrEqual", x, _zero(w, x), result=DType.bool)
    if c.args[4]:
        slope = w.same("Mul", w.same("Add", x, w.number(alpha * scale, x.dtype)), w.number(input_scale, x.dtype))
    else:
        exp = w.same("Exp", w.same("Mul", x, w.number(input_scale, x.dtype)))
        slope = w.same("Mul", exp, w.number(input_scale * alpha * scale, x.dtype))
    return w.select(low, w.same("Mul", grad, slope), w.same("Mul", grad, w.number(scale, x.dtype)))


@rule("aten.softplus_backward.default")
def softplus_backward(c: Call) -> Ref:
    w, grad, x = c.writer, c.tensor(0, c.dtype), c.tensor(1, c.dtype)
    scaled = w.same("Mul", x, c.tensor(2, x.dtype))
    linear = w.same("Greater", scaled, c.tensor(3, x.dtype), result=DType.bool)
    return w.select(linear, grad, w.same("Mul", grad, sigmoid_of(w, scaled)))


@rule("aten.native_dropout_backward.default")
def dropout_backward(c: Call) -> Ref:
    w = c.writer
    kept = w.same("Mul", c.tensor(0, c.dtype), c.tensor(1, c.dtype))
    return w.same("Mul", kept, c.tensor(2, c.dtype))


@rule("aten._softmax_backward_data.default")
def softmax_backward(c: Call) -> Ref:
    """``(grad - sum(grad * y)) * y``. Arguments: grad, output, dim, input dtype."""
    w, grad, y, axis = c.writer, c.tensor(0), c.tensor(1), _softmax_axis(c)
    product_ = w.same("Mul", grad, y)
    out = w.same("Sub", product_, w.same("Mul", y, reduce(w, "ReduceSum", product_, (axis,))))
    return w.cast(out, c.dtype)


@rule("aten._log_softmax_backward_data.default")
def log_softmax_backward(c: Call) -> Ref:
    """``grad - exp(y) * sum(grad)``."""
    w, grad, y, axis = c.writer, c.tensor(0), c.tensor(1), _softmax_axis(c)
    out = w.same("Sub", grad, w.same("Mul", w.same("Exp", y), reduce(w, "ReduceSum", grad, (axis,))))
    return w.cast(out, c.dtype)


def _softmax_axis(c: Call) -> int:
    if c.rank(0) == 0 or 0 in c.type(0).shape:
        raise Declined("the gradient of a softmax of a 0-d or empty tensor")
    return c.axis(2)


@rule("aten.native_layer_norm_backward.default")
def layer_norm_backward(c: Call) -> tuple[Ref | None, ...]:
    """The gradients of input, weight and bias.

    Arguments: grad, input, normalised shape, mean, rstd, weight, bias, mask.
    """
    if 0 in c.type(1).shape:
        raise Declined("the normalisation of an empty tensor")
    w, grad, x = c.writer, c.tensor(0), c.tensor(1)
    rank, normal = c.rank(1), len(c.ints(2))
    inner, outer = tuple(range(rank - normal, rank)), tuple(range(rank - normal))
    mean, rstd = c.tensor(3, x.dtype), c.tensor(4, x.dtype)
    y = w.same("Mul", w.same("Sub", x, mean), rstd)
    weight = c.maybe(5, x.dtype)
    grad_y = grad if weight is None else w.same("Mul", grad, weight)
    grad_input = _through_standardisation(w, grad_y, y, rstd, inner) if c.wants(0) else None
    grad_weight = reduce(w, "ReduceSum", w.same("Mul", grad, y), outer, keep=False) if c.wants(1) else None
    return grad_input, grad_weight, reduce(w, "ReduceSum", grad, outer, keep=False) if c.wants(2) else None


def _through_standardisation(w: Writer, grad: Ref, y: Ref, rstd: Ref, axes: tuple[int, ...]) -> Ref:
    """The gradient at x of ``y = (x - mean) * rstd``: ``rstd * (grad - mean(grad) - y * mean(grad * y))``."""
    along = w.same("Mul", y, reduce(w, "ReduceMean", w.same("Mul", grad, y), axes))
    centred = w.same("Sub", grad, reduce(w, "ReduceMean", grad, axes))
    return w.same("Mul", w.same("Sub", centred, along), rstd)


@rule("aten.native_group_norm_backward.default")
def group_norm_backward(c: Call) -> tuple[Ref | None, ...]:
    """Arguments: grad, input, mean, rstd, weight, N, C, HxW, groups, mask."""
    w, grad, x, shape = c.writer, c.tensor(0), c.tensor(1), c.type(1).shape
    groups, channels = c.ints(8)[0], shape[1]
    if not isinstance(channels, int) or 0 in shape:
        raise Declined("group_norm of an empty tensor or a dynamic number of channels")
    grouped = (shape[0], groups, product((channels // groups, *shape[2:])))
    mean, rstd = (w.op("Unsqueeze", c.tensor(i, x.dtype), w.ints(2)) for i in (2, 3))
    flat = w.same("Mul", w.same("Sub", w.reshape(x, grouped), mean), rstd)
    y = w.reshape(flat, shape)
    outer = (0, *range(2, len(shape)))
    weight = as_channels(w, c.maybe(4, x.dtype), len(shape))
    grad_y = grad if weight is None else w.same("Mul", grad, weight)
    grad_input = None
    if c.wants(0):
        grad_input = w.reshape(_through_standardisation(w, w.reshape(grad_y, grouped), flat, rstd, (2,)), shape)
    grad_weight = reduce(w, "ReduceSum", w.same("Mul", grad, y), outer, keep=False) if c.wants(1) else None
    return grad_input, grad_weight, reduce(w, "ReduceSum", grad, outer, keep=False) if c.wants(2) else None


@rule("aten.native_batch_norm_backward.default")
def batch_norm_backward(c: Call) -> tuple[Ref | None, ...]:
    """Arguments: grad, input, weight, running mean, running variance, saved mean, saved rstd, training, eps, mask."""
    if 0 in c.type(1).shape:
        raise Declined("the normalisation of an empty tensor")
    w, grad, x, rank = c.writer, c.tensor(0), c.tensor(1), c.rank(1)
    mean, rstd = _statistics(c, x)
    axes = (0, *range(2, rank))
    y = w.same("Mul", w.same("Sub", x, mean), rstd)
    weight = as_channels(w, c.maybe(2, x.dtype), rank)
    grad_y = grad if weight is None else w.same("Mul", grad, weight)
    grad_input = None
    if c.wants(0):
        grad_input = _through_standardisation(w, grad_y, y, rstd, axes) if c.args[7] else w.same("Mul", grad_y, rstd)
    grad_weight = reduce(w, "ReduceSum", w.same("Mul", grad, y), axes, keep=False) if c.wants(1) else None
    return grad_input, grad_weight, reduce(w, "ReduceSum", grad, axes, keep=False) if c.wants(2) else None


def _statistics(c: Call, x: Ref) -> tuple[Ref, Ref]:
    """Mean and reciprocal deviation of the forward pass: of the batch in training, the running ones otherwise."""
    w, rank = c.writer, c.rank(1)
    first, second = (5, 6) if c.args[7] else (3, 4)
    mean, spread = c.tensor(first, x.dtype), c.tensor(second, x.dtype)
    if not c.args[7]:
        spread = w.same("Reciprocal", w.same("Sqrt", w.same("Add", spread, w.number(float(c.number(8)), x.dtype))))
    shaped = [as_channels(w, r, rank) for r in (mean, spread)]
    assert shaped[0] is not None
    assert shaped[1] is not None
    return shaped[0], shaped[1]


def _zero(w: Writer, like: Ref) -> Ref:
    return w.number(0.0, like.dtype)
