"""Activations and their gradients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fairlead.numpy._dtypes import Array, operand, wide
from fairlead.numpy._pointwise import sigmoid
from fairlead.numpy._special import erf
from fairlead.numpy._table import Call, op


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
    return x * sigmoid(x)


@op("silu_backward")
def _silu_backward(call: Call, grad: Array, x: Array) -> Array:
    grad, x = wide(grad), wide(x)
    s = sigmoid(x)
    return grad * s * (1 + x * (1 - s))


@op("elu")
def _elu(call: Call, x: Array, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Array:
    x = wide(x)
    return np.where(x > 0, x * scale, alpha * scale * np.expm1(np.minimum(x, 0) * input_scale))


@op("leaky_relu")
def _leaky_relu(call: Call, x: Array, slope: Any = 0.01) -> Array:
    x = wide(x)
    return np.where(x > 0, x, x * slope)


@op("hardtanh")
def _hardtanh(call: Call, x: Array, low: Any = -1, high: Any = 1) -> Array:
    return np.clip(operand(x, call.dtype), operand(low, call.dtype), operand(high, call.dtype))


@op("hardsigmoid")
def _hardsigmoid(call: Call, x: Array) -> Array:
    return np.clip(wide(x) + 3, 0, 6) / 6


@op("hardswish")
def _hardswish(call: Call, x: Array) -> Array:
    x = wide(x)
    return x * np.clip(x + 3, 0, 6) / 6


@op("softplus")
def _softplus(call: Call, x: Array, beta: Any = 1, threshold: Any = 20) -> Array:
    x = wide(x)
    return np.where(x * beta > threshold, x, softplus(x * beta) / beta)


@op("mish")
def _mish(call: Call, x: Array) -> Array:
    x = wide(x)
    return x * np.tanh(softplus(x))


@op("threshold_backward")
def _threshold_backward(call: Call, grad: Array, x: Array, bound: Any) -> Array:
    return np.where(wide(x) <= bound, 0, operand(grad, call.dtype))


@op("sigmoid_backward")
def _sigmoid_backward(call: Call, grad: Array, y: Array) -> Array:
    grad, y = wide(grad), wide(y)
    return grad * np.conj((1 - y) * y)


@op("rrelu_with_noise_backward")
def _rrelu_backward(
    call: Call, grad: Array, x: Array, noise: Array, lower: Any, upper: Any, training: bool, is_result: bool
) -> Array:
    grad, x = wide(grad), wide(x)
    if training and upper - lower > 1e-6:
        return grad * wide(noise)
    return np.where(x > 0, grad, grad * (lower + upper) / 2)
