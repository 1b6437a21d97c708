"""Rules of activations and their gradients, in f32 for halves."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from fairlead.ir import DType
from fairlead_tvm import _tvm as t
from fairlead_tvm._arrays import Array
from fairlead_tvm._call import Call
from fairlead_tvm._functions import erf, exp, sigmoid, tanh
from fairlead_tvm._kernel import Kernel
from fairlead_tvm._numbers import cast, constant, operand, wide
from fairlead_tvm._reduce import larger, smaller
from fairlead_tvm._rules import rule
from fairlead_tvm._tvm import Expr

__all__: list[str] = []

_INNER = math.sqrt(2 / math.pi)
_CUBE = 0.044715


def _twice_cdf(k: Kernel, x: Expr, n: Callable[[float], Expr], dtype: DType) -> Expr:
    """Twice the distribution function of the standard normal, as ATen has it."""
    return n(1.0) + erf(k, x * n(math.sqrt(0.5)), dtype)


def _of(function: Callable[..., Expr], cost: int) -> Callable[..., Array]:
    """A rule of a function of the kernel, the numbers of the element type, and the operands, widened."""

    def write(c: Call, *operands: Array) -> Array:
        wider = [wide(x) for x in operands]
        dtype = wider[0].dtype
        return c.kernel_map(
            lambda k, *values: function(k, lambda v: k.number(v, dtype), dtype, *values), *wider, cost=cost
        )

    return write


def _gelu(k: Kernel, n: Callable[[float], Expr], dtype: DType, x: Expr) -> Expr:
    return n(0.5) * x * _twice_cdf(k, x, n, dtype)


def _gelu_tanh(k: Kernel, n: Callable[[float], Expr], dtype: DType, x: Expr) -> Expr:
    inner = k.named(n(_INNER) * (x + n(_CUBE) * x * x * x), dtype)
    return n(0.5) * x * (n(1.0) + tanh(k, inner, dtype))


@rule("gelu")
def gelu(c: Call, x: Array, approximate: str = "none") -> Array:
    return _of(_gelu_tanh if approximate == "tanh" else _gelu, 30)(c, x)


def _gelu_backward(k: Kernel, n: Callable[[float], Expr], dtype: DType, grad: Expr, x: Expr) -> Expr:
    density = exp(k, n(-0.5) * x * x, dtype) * n(1 / math.sqrt(2 * math.pi))
    return grad * (n(0.5) * _twice_cdf(k, x, n, dtype) + x * density)


def _gelu_tanh_backward(k: Kernel, n: Callable[[float], Expr], dtype: DType, grad: Expr, x: Expr) -> Expr:
    inner = k.named(n(_INNER) * (x + n(_CUBE) * x * x * x), dtype)
    h = k.named(tanh(k, inner, dtype), dtype)
    slope = n(_INNER) * (n(1.0) + n(3 * _CUBE) * x * x)
    return grad * (n(0.5) * (n(1.0) + h) + n(0.5) * x * (n(1.0) - h * h) * slope)


@rule("gelu_backward")
def gelu_backward(c: Call, grad: Array, x: Array, approximate: str = "none") -> Array:
    return _of(_gelu_tanh_backward if approximate == "tanh" else _gelu_backward, 60)(c, grad, x)


rule("silu")(_of(lambda k, n, dtype, x: x * sigmoid(k, x, dtype), 22))


def _silu_backward(k: Kernel, n: Callable[[float], Expr], dtype: DType, grad: Expr, x: Expr) -> Expr:
    s = k.named(sigmoid(k, x, dtype), dtype)
    return grad * s * (n(1.0) + x * (n(1.0) - s))


rule("silu_backward")(_of(_silu_backward, 25))


def _expm1(k: Kernel, x: Expr, dtype: DType) -> Expr:
    return k.extern("expm1", dtype, x)


@rule("elu")
def elu(c: Call, x: Array, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Array:
    def write(k: Kernel, n: Callable[[float], Expr], dtype: DType, v: Expr) -> Expr:
        zero = t.const(0.0, dtype)
        below = n(alpha * scale) * _expm1(k, t.select(v > zero, zero, v) * n(input_scale), dtype)
        return t.select(v > zero, v * n(scale), below)

    return _of(write, 40)(c, x)


@rule("elu_backward")
def elu_backward(c: Call, grad: Array, alpha: Any, scale: Any, input_scale: Any, is_result: bool, x: Array) -> Array:
    """``x`` is the result of the forward where ``is_result``."""

    def write(k: Kernel, n: Callable[[float], Expr], dtype: DType, g: Expr, v: Expr) -> Expr:
        zero = t.const(0.0, dtype)
        if is_result:
            below = g * n(input_scale) * (v + n(alpha * scale))
        else:
            low = t.select(v > zero, zero, v)
            below = g * n(input_scale) * n(alpha * scale) * exp(k, low * n(input_scale), dtype)
        return t.select(v > zero, g * n(scale), below)

    return _of(write, 30)(c, grad, x)


@rule("leaky_relu")
def leaky_relu(c: Call, x: Array, slope: Any = 0.01) -> Array:
    return _of(lambda k, n, dtype, v: t.select(v > t.const(0.0, dtype), v, v * n(slope)), 2)(c, x)


@rule("leaky_relu_backward")
def leaky_relu_backward(c: Call, grad: Array, x: Array, slope: Any, is_result: bool) -> Array:
    return _of(lambda k, n, dtype, g, v: t.select(v > t.const(0.0, dtype), g, g * n(slope)), 2)(c, grad, x)


rule("_prelu_kernel")(_of(lambda k, n, dtype, x, w: t.select(x > t.const(0.0, dtype), x, x * w), 2))


@rule("hardtanh")
def hardtanh(c: Call, x: Array, low: Any = -1, high: Any = 1) -> Array:
    x = operand(x, c.dtype)
    dtype = x.dtype
    below = c.map(lambda a, b: larger(a, b, dtype), x, operand(low, c.dtype))
    return c.map(lambda a, b: smaller(a, b, dtype), below, operand(high, c.dtype))


@rule("hardtanh_backward")
def hardtanh_backward(c: Call, grad: Array, x: Array, low: Any, high: Any) -> Array:
    def write(k: Kernel, n: Callable[[float], Expr], dtype: DType, g: Expr, v: Expr) -> Expr:
        return t.select(t.any_of(v <= n(low), v >= n(high)), t.const(0.0, dtype), g)

    return _of(write, 3)(c, grad, x)


def _gate(v: Expr, n: Callable[[float], Expr], dtype: DType) -> Expr:
    """``clip(v + 3, 0, 6)``."""
    return smaller(larger(v + n(3.0), t.const(0.0, dtype), dtype), n(6.0), dtype)


rule("hardsigmoid")(_of(lambda k, n, dtype, x: _gate(x, n, dtype) / n(6.0), 6))
rule("hardswish")(_of(lambda k, n, dtype, x: x * _gate(x, n, dtype) / n(6.0), 7))


@rule("hardsigmoid_backward")
def hardsigmoid_backward(c: Call, grad: Array, x: Array) -> Array:
    def write(k: Kernel, n: Callable[[float], Expr], dtype: DType, g: Expr, v: Expr) -> Expr:
        return t.select(t.all_of(v > n(-3.0), v < n(3.0)), g * n(1 / 6), t.const(0.0, dtype))

    return _of(write, 3)(c, grad, x)


@rule("hardswish_backward")
def hardswish_backward(c: Call, grad: Array, x: Array) -> Array:
    def write(k: Kernel, n: Callable[[float], Expr], dtype: DType, g: Expr, v: Expr) -> Expr:
        inner = g * (v / n(3.0) + n(0.5))
        return t.select(v <= n(-3.0), t.const(0.0, dtype), t.select(v < n(3.0), inner, g))

    return _of(write, 6)(c, grad, x)


def _softplus(k: Kernel, x: Expr, n: Callable[[float], Expr], dtype: DType) -> Expr:
    """``log(1 + exp(x))``, without overflow."""
    zero = t.const(0.0, dtype)
    less = k.named(exp(k, n(-1.0) * t.abs_(x), dtype), dtype)
    return t.select(x < zero, zero, x) + k.extern("log1p", dtype, less)


@rule("softplus")
def softplus(c: Call, x: Array, beta: Any = 1, threshold: Any = 20) -> Array:
    def write(k: Kernel, n: Callable[[float], Expr], dtype: DType, v: Expr) -> Expr:
        scaled = k.named(v * n(beta), dtype)
        return t.select(scaled > n(threshold), v, _softplus(k, scaled, n, dtype) / n(beta))

    return _of(write, 50)(c, x)


@rule("softplus_backward")
def softplus_backward(c: Call, grad: Array, x: Array, beta: Any, threshold: Any) -> Array:
    def write(k: Kernel, n: Callable[[float], Expr], dtype: DType, g: Expr, v: Expr) -> Expr:
        scaled = k.named(v * n(beta), dtype)
        return t.select(scaled > n(threshold), g, g * sigmoid(k, scaled, dtype))

    return _of(write, 25)(c, grad, x)


rule("mish")(_of(lambda k, n, dtype, x: x * tanh(k, k.named(_softplus(k, x, n, dtype), dtype), dtype), 80))


@rule("threshold_backward")
def threshold_backward(c: Call, grad: Array, x: Array, bound: Any) -> Array:
    grad, x = operand(grad, c.dtype), wide(x)
    zero = t.const(0, grad.dtype)
    return c.map(lambda g, v, b: t.select(v <= b, zero, g), grad, x, constant(bound, x.dtype))


rule("sigmoid_backward")(_of(lambda k, n, dtype, g, y: g * (n(1.0) - y) * y, 3))
rule("tanh_backward")(_of(lambda k, n, dtype, g, y: g * (n(1.0) - y * y), 3))


@rule("native_dropout_backward")
def dropout_backward(c: Call, grad: Array, mask: Array, scale: float) -> Array:
    grad = wide(grad)
    parts = grad, cast(mask, grad.dtype), constant(scale, grad.dtype)
    return c.map(lambda g, m, s: g * m * s, *parts)
