"""Rules of activations and their gradients, in f32 for halves."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax

from fairlead_openxla._arithmetic import divided, multiplied
from fairlead_openxla._call import Call
from fairlead_openxla._exponentials import sigmoid
from fairlead_openxla._numbers import Array, cast, constant, dtype_of, operand, wide
from fairlead_openxla._rules import Rule, rule

__all__: list[str] = []

_INNER = math.sqrt(2 / math.pi)
_CUBE = 0.044715


def _number(value: Any, x: Array) -> Array:
    return constant(value, dtype_of(x))


def _twice_cdf(x: Array) -> Array:
    """Twice the distribution function of the standard normal, as ATen has it: ``erfc`` takes three times as long."""
    return 1 + lax.erf(x * math.sqrt(0.5))


@rule("gelu")
def gelu(c: Call, x: Array, approximate: str = "none") -> Array:
    x = wide(x)
    if approximate == "tanh":
        return 0.5 * x * (1 + jnp.tanh(_INNER * (x + _CUBE * x * x * x)))
    return 0.5 * x * _twice_cdf(x)


@rule("gelu_backward")
def gelu_backward(c: Call, grad: Array, x: Array, approximate: str = "none") -> Array:
    grad, x = wide(grad), wide(x)
    if approximate == "tanh":
        t = jnp.tanh(_INNER * (x + _CUBE * x * x * x))
        return grad * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * _INNER * (1 + 3 * _CUBE * x * x))
    density = jnp.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
    return grad * (0.5 * _twice_cdf(x) + x * density)


@rule("silu")
def silu(c: Call, x: Array) -> Array:
    x = wide(x)
    return x * sigmoid(x)


@rule("silu_backward")
def silu_backward(c: Call, grad: Array, x: Array) -> Array:
    grad, x = wide(grad), wide(x)
    s = sigmoid(x)
    return grad * s * (1 + x * (1 - s))


@rule("elu")
def elu(c: Call, x: Array, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Array:
    x = wide(x)
    below = _number(alpha * scale, x) * jnp.expm1(jnp.minimum(x, 0) * _number(input_scale, x))
    return jnp.where(x > 0, x * _number(scale, x), below)


@rule("elu_backward")
def elu_backward(c: Call, grad: Array, alpha: Any, scale: Any, input_scale: Any, is_result: bool, x: Array) -> Array:
    """``x`` is the result of the forward where ``is_result``."""
    grad, x = wide(grad), wide(x)
    negative, inner, outer = _number(alpha * scale, x), _number(input_scale, x), _number(scale, x)
    below = grad * inner * (x + negative if is_result else negative * jnp.exp(jnp.minimum(x, 0) * inner))
    return jnp.where(x > 0, grad * outer, below)


@rule("leaky_relu")
def leaky_relu(c: Call, x: Array, slope: Any = 0.01) -> Array:
    x = wide(x)
    return jnp.where(x > 0, x, x * _number(slope, x))


@rule("leaky_relu_backward")
def leaky_relu_backward(c: Call, grad: Array, x: Array, slope: Any, is_result: bool) -> Array:
    grad = wide(grad)
    return jnp.where(x > 0, grad, grad * _number(slope, grad))


@rule("_prelu_kernel")
def prelu(c: Call, x: Array, weight: Array) -> Array:
    x = wide(x)
    return jnp.where(x > 0, x, x * wide(weight))


@rule("hardtanh")
def hardtanh(c: Call, x: Array, low: Any = -1, high: Any = 1) -> Array:
    return jnp.minimum(jnp.maximum(operand(x, c.dtype), operand(low, c.dtype)), operand(high, c.dtype))


@rule("hardtanh_backward")
def hardtanh_backward(c: Call, grad: Array, x: Array, low: Any, high: Any) -> Array:
    x = wide(x)
    return jnp.where((x <= _number(low, x)) | (x >= _number(high, x)), jnp.zeros((), grad.dtype), grad)


def _gate(x: Array) -> Array:
    """``clip(x + 3, 0, 6)``."""
    return jnp.minimum(jnp.maximum(x + _number(3, x), 0), 6)


@rule("hardsigmoid")
def hardsigmoid(c: Call, x: Array) -> Array:
    x = wide(x)
    return divided(_gate(x), _number(6, x))


@rule("hardsigmoid_backward")
def hardsigmoid_backward(c: Call, grad: Array, x: Array) -> Array:
    grad, x = wide(grad), wide(x)
    return jnp.where((x > -3) & (x < 3), grad * _number(1 / 6, grad), 0)


@rule("hardswish")
def hardswish(c: Call, x: Array) -> Array:
    x = wide(x)
    return divided(x * _gate(x), _number(6, x))


@rule("hardswish_backward")
def hardswish_backward(c: Call, grad: Array, x: Array) -> Array:
    grad, x = wide(grad), wide(x)
    inner = grad * (divided(x, _number(3, x)) + _number(0.5, x))
    return jnp.where(x <= -3, 0, jnp.where(x < 3, inner, grad))


def _softplus(x: Array) -> Array:
    """``log(1 + exp(x))``, without overflow."""
    return jnp.maximum(x, 0) + jnp.log1p(jnp.exp(-jnp.abs(x)))


@rule("softplus")
def softplus(c: Call, x: Array, beta: Any = 1, threshold: Any = 20) -> Array:
    x = wide(x)
    scaled = x * _number(beta, x)
    return jnp.where(scaled > threshold, x, divided(_softplus(scaled), _number(beta, x)))


@rule("softplus_backward")
def softplus_backward(c: Call, grad: Array, x: Array, beta: Any, threshold: Any) -> Array:
    grad, x = wide(grad), wide(x)
    scaled = x * _number(beta, x)
    return jnp.where(scaled > threshold, grad, grad * sigmoid(scaled))


@rule("mish")
def mish(c: Call, x: Array) -> Array:
    x = wide(x)
    return x * jnp.tanh(_softplus(x))


@rule("threshold_backward")
def threshold_backward(c: Call, grad: Array, x: Array, bound: Any) -> Array:
    grad, x = operand(grad, c.dtype), wide(x)
    return jnp.where(x <= _number(bound, x), jnp.zeros((), grad.dtype), grad)


def _of_result(slope: Callable[[Array], Array]) -> Rule:
    """The gradient of a function whose slope is known by its result."""

    def write(c: Call, grad: Array, y: Array) -> Array:
        return wide(grad) * slope(wide(y))

    return write


rule("sigmoid_backward")(_of_result(lambda y: (1 - y) * y))
rule("tanh_backward")(_of_result(lambda y: 1 - multiplied(y, y)))


@rule("native_dropout_backward")
def dropout_backward(c: Call, grad: Array, mask: Array, scale: float) -> Array:
    grad = wide(grad)
    return grad * cast(mask, dtype_of(grad)) * _number(scale, grad)
