"""Activations and their gradients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fairlead.numpy._dtypes import Array, operand, wide
from fairlead.numpy._special import erf
from fairlead.numpy._table import Call, op


def logistic(x: Array) -> Array:
    """1 / (1 + exp(-x)), without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, small) / (1 + small)


def softplus(x: Array) -> Array:
    """log(1 + exp(x)), without overflow."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


@op("gelu")
def _gelu(call: Call, x: Array, approximate: str = "none") -> Array:
    x = wide(x)
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + erf(x * math.sqrt(0.5)))


@op("gelu_backward")
def _gelu_backward(call: Call, grad: Array, x: Array, approximate: str = "none") -> Array:
    grad, x = wide(grad), wide(x)
    if approximate == "tanh":
        k = math.sqrt(2 / math.pi)
        t = np.tanh(k * (x + 0.044715 * x**3))
        return grad * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * k * (1 + 3 * 0.044715 * x * x))
    return grad * (0.5 * (1 + erf(x * math.sqrt(0.5))) + x * np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi))


@op("silu")
def _silu(call: Call, x: Array) -> Array:
    x = wide(x)
    return x / (1 + np.exp(-x)) if x.dtype.kind == "c" else x * logistic(x)


@op("silu_backward")
def _silu_backward(call: Call, grad: Array, x: Array) -> Array:
    grad, x = wide(grad), wide(x)
    s = logistic(x)
    return grad * s * (1 + x * (1 - s))


@op("elu")
def _elu(call: Call, x: Array, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Array:
    x = wide(x)
    return np.where(x > 0, x * scale, alpha * scale * np.expm1(np.minimum(x, 0) * input_scale))


@op("elu_backward")
def _elu_backward(
    call: Call, grad: Array, alpha: Any, scale: Any, input_scale: Any, is_result: bool, source: Array
) -> Array:
    """``source`` is the result of the forward, or its operand."""
    grad, y = wide(grad), wide(source)
    if is_result:
        return np.where(y <= 0, grad * input_scale * (y + alpha * scale), grad * scale)
    slope = alpha * scale * input_scale * np.exp(np.minimum(y, 0) * input_scale)
    return np.where(y <= 0, grad * slope, grad * scale)


@op("leaky_relu")
def _leaky_relu(call: Call, x: Array, slope: Any = 0.01) -> Array:
    x = wide(x)
    return np.where(x > 0, x, x * slope)


@op("leaky_relu_backward")
def _leaky_relu_backward(call: Call, grad: Array, x: Array, slope: Any, is_result: bool) -> Array:
    return np.where(wide(x) > 0, wide(grad), wide(grad) * slope)


@op("_prelu_kernel")
def _prelu(call: Call, x: Array, weight: Array) -> Array:
    x = wide(x)
    return np.where(x > 0, x, x * wide(weight))


@op("_prelu_kernel_backward")
def _prelu_backward(call: Call, grad: Array, x: Array, weight: Array) -> tuple[Array, Array]:
    grad, x, weight = wide(grad), wide(x), wide(weight)
    return np.where(x > 0, grad, grad * weight), np.where(x > 0, 0, grad * x)


@op("hardtanh")
def _hardtanh(call: Call, x: Array, low: Any = -1, high: Any = 1) -> Array:
    return np.clip(operand(x, call.dtype), operand(low, call.dtype), operand(high, call.dtype))


@op("hardtanh_backward")
def _hardtanh_backward(call: Call, grad: Array, x: Array, low: Any, high: Any) -> Array:
    x = wide(x)
    return np.where((x <= low) | (x >= high), 0, wide(grad))


@op("hardsigmoid")
def _hardsigmoid(call: Call, x: Array) -> Array:
    return np.clip(wide(x) + 3, 0, 6) / 6


@op("hardsigmoid_backward")
def _hardsigmoid_backward(call: Call, grad: Array, x: Array) -> Array:
    x = wide(x)
    return np.where((x > -3) & (x < 3), wide(grad) / 6, 0)


@op("hardswish")
def _hardswish(call: Call, x: Array) -> Array:
    x = wide(x)
    return x * np.clip(x + 3, 0, 6) / 6


@op("hardswish_backward")
def _hardswish_backward(call: Call, grad: Array, x: Array) -> Array:
    grad, x = wide(grad), wide(x)
    return np.where(x <= -3, 0, np.where(x < 3, grad * (x / 3 + 0.5), grad))


@op("hardshrink")
def _hardshrink(call: Call, x: Array, bound: Any = 0.5) -> Array:
    x = wide(x)
    return np.where((x >= -bound) & (x <= bound), 0, x)


@op("softshrink")
def _softshrink(call: Call, x: Array, bound: Any = 0.5) -> Array:
    x = wide(x)
    return np.where(np.isnan(x), x, np.where(x > bound, x - bound, np.where(x < -bound, x + bound, 0)))


@op("hardshrink_backward", "softshrink_backward")
def _shrink_backward(call: Call, grad: Array, x: Array, bound: Any) -> Array:
    x = wide(x)
    return np.where((x >= -bound) & (x <= bound), 0, wide(grad))


@op("softplus")
def _softplus(call: Call, x: Array, beta: Any = 1, threshold: Any = 20) -> Array:
    x = wide(x)
    return np.where(x * beta > threshold, x, softplus(x * beta) / beta)


@op("softplus_backward")
def _softplus_backward(call: Call, grad: Array, x: Array, beta: Any, threshold: Any) -> Array:
    grad, x = wide(grad), wide(x)
    return np.where(x * beta > threshold, grad, grad * logistic(x * beta))


@op("mish")
def _mish(call: Call, x: Array) -> Array:
    x = wide(x)
    return x * np.tanh(softplus(x))


@op("mish_backward")
def _mish_backward(call: Call, grad: Array, x: Array) -> Array:
    x = wide(x)
    t = np.tanh(softplus(x))
    return wide(grad) * (t + x * logistic(x) * (1 - t * t))


@op("log_sigmoid_forward")
def _log_sigmoid(call: Call, x: Array) -> tuple[Array, Array]:
    """The second result is the kernel's scratch space: exp(-|x|) on the CPU."""
    x = wide(x)
    return -softplus(-x), np.exp(-np.abs(x))


@op("log_sigmoid_backward")
def _log_sigmoid_backward(call: Call, grad: Array, x: Array, buffer: Array) -> Array:
    return wide(grad) * logistic(-wide(x))


@op("threshold")
def _threshold(call: Call, x: Array, bound: Any, value: Any) -> Array:
    x = operand(x, call.dtype)
    return np.where(x <= bound, value, x)


@op("threshold_backward")
def _threshold_backward(call: Call, grad: Array, x: Array, bound: Any) -> Array:
    return np.where(wide(x) <= bound, 0, operand(grad, call.dtype))


@op("sigmoid_backward")
def _sigmoid_backward(call: Call, grad: Array, y: Array) -> Array:
    grad, y = wide(grad), wide(y)
    return grad * np.conj((1 - y) * y)


@op("tanh_backward")
def _tanh_backward(call: Call, grad: Array, y: Array) -> Array:
    grad, y = wide(grad), wide(y)
    return grad * np.conj(1 - y * y)


@op("glu")
def _glu(call: Call, x: Array, dim: int = -1) -> Array:
    a, b = np.split(wide(x), 2, dim)
    return a * logistic(b)


@op("glu_backward")
def _glu_backward(call: Call, grad: Array, x: Array, dim: int) -> Array:
    (a, b), grad = np.split(wide(x), 2, dim), wide(grad)
    s = logistic(b)
    return np.concatenate([grad * s, grad * a * s * (1 - s)], dim)


@op("rrelu_with_noise_backward")
def _rrelu_backward(
    call: Call, grad: Array, x: Array, noise: Array, lower: Any, upper: Any, training: bool, is_result: bool
) -> Array:
    grad, x = wide(grad), wide(x)
    if training and upper - lower > 1e-6:
        return grad * wide(noise)
    return np.where(x > 0, grad, grad * (lower + upper) / 2)
