"""Activations as arithmetic and choices, forward and backward. The formulas are those of ATen's kernels.

Halves are computed in float32 and rounded once. A number that is not one stays so: choices compare so that nan takes
the branch that computes with it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping

from fairlead.ir import Node, Value
from fairlead.passes._nodes import number, operand
from fairlead.passes._ops import Ops
from fairlead.passes._rewrite import Replacement

_Formula = Callable[[Node, Ops, Value], Value]
_Gradient = Callable[[Node, Ops, Value, Value], Value]


def _forward(formula: _Formula) -> Callable[[Node, Ops], Replacement | None]:
    @functools.wraps(formula)
    def rule(node: Node, b: Ops) -> Replacement | None:
        return (b.cast(formula(node, b, b.float32(operand(node))), node.result.tensor.dtype),)

    return rule


def _backward(formula: _Gradient) -> Callable[[Node, Ops], Replacement | None]:
    """The rule for a gradient out of that of the result, and the input or the result. Complex ones stay whole."""

    @functools.wraps(formula)
    def rule(node: Node, b: Ops) -> Replacement | None:
        if node.result.tensor.dtype.is_complex:
            return None
        grad, x = b.float32(operand(node)), b.float32(operand(node, 1))
        return (b.cast(formula(node, b, grad, x), node.result.tensor.dtype),)

    return rule


def _elu(node: Node, b: Ops, x: Value) -> Value:
    alpha, scale, input_scale = (number(node, i) for i in (1, 2, 3))
    below = b.binary("mul", b.unary("expm1", b.binary("mul", x, input_scale)), alpha * scale)
    return b.where(b.compare("lt", x, 0), below, b.binary("mul", x, scale))


def _gelu(node: Node, b: Ops, x: Value) -> Value:
    half = b.binary("mul", x, 0.5)
    if node.args[1] == "tanh":
        cube = b.binary("mul", b.binary("mul", x, x), x)
        inner = b.binary("add", x, b.binary("mul", cube, 0.044715))
        curve = b.unary("tanh", b.binary("mul", inner, math.sqrt(2 / math.pi)))
    else:
        curve = b.unary("erf", b.binary("mul", x, math.sqrt(0.5)))
    return b.binary("mul", half, b.binary("add", curve, 1.0))


def _gelu_backward(node: Node, b: Ops, grad: Value, x: Value) -> Value:
    square = b.binary("mul", x, x)
    if node.args[2] == "tanh":
        cube = b.binary("mul", square, x)
        inner = b.binary("add", x, b.binary("mul", cube, 0.044715))
        curve = b.unary("tanh", b.binary("mul", inner, math.sqrt(2 / math.pi)))
        slope = b.binary("add", b.binary("mul", square, 3 * 0.044715), 1.0)
        slope = b.binary("mul", slope, math.sqrt(2 / math.pi))
        steep = b.binary("mul", slope, _one_minus(b, b.binary("mul", curve, curve)))
        density = b.binary("mul", steep, 0.5)
    else:
        curve = b.unary("erf", b.binary("mul", x, math.sqrt(0.5)))
        density = b.binary("mul", b.unary("exp", b.binary("mul", square, -0.5)), math.sqrt(0.5 / math.pi))
    share = b.binary("mul", b.binary("add", curve, 1.0), 0.5)
    return b.binary("mul", grad, b.binary("add", share, b.binary("mul", x, density)))


def _hardsigmoid(node: Node, b: Ops, x: Value) -> Value:
    return b.binary("div", b.clamp(b.binary("add", x, 3.0), 0.0, 6.0), 6.0)


def _hardswish(node: Node, b: Ops, x: Value) -> Value:
    return b.binary("div", b.binary("mul", x, b.clamp(b.binary("add", x, 3.0), 0.0, 6.0)), 6.0)


def _hardtanh(node: Node, b: Ops, x: Value) -> Value:
    return b.clamp(x, number(node, 1), number(node, 2))


def _leaky_relu(node: Node, b: Ops, x: Value) -> Value:
    return b.where(b.compare("gt", x, 0), x, b.binary("mul", x, number(node, 1)))


def _mish(node: Node, b: Ops, x: Value) -> Value:
    return b.binary("mul", x, b.unary("tanh", b.unary("log1p", b.unary("exp", x))))


def _sigmoid_backward(node: Node, b: Ops, grad: Value, y: Value) -> Value:
    return b.binary("mul", grad, b.binary("mul", _one_minus(b, y), y))


def _silu(node: Node, b: Ops, x: Value) -> Value:
    return b.binary("mul", x, b.unary("sigmoid", x))


def _silu_backward(node: Node, b: Ops, grad: Value, x: Value) -> Value:
    y = b.unary("sigmoid", x)
    slope = b.binary("add", b.binary("mul", x, _one_minus(b, y)), 1.0)
    return b.binary("mul", grad, b.binary("mul", y, slope))


def _softplus(node: Node, b: Ops, x: Value) -> Value:
    beta, threshold = number(node, 1), number(node, 2)
    scaled = b.binary("mul", x, beta)
    curve = b.binary("div", b.unary("log1p", b.unary("exp", scaled)), beta)
    return b.where(b.compare("gt", scaled, threshold), x, curve)


def _threshold_backward(node: Node, b: Ops) -> Replacement:
    grad, x = operand(node), operand(node, 1)
    return (b.pick(b.compare("le", x, number(node, 2)), 0, grad),)


def _one_minus(b: Ops, x: Value) -> Value:
    return b.binary("add", b.unary("neg", x), 1.0)


ACTIVATIONS: Mapping[str, Callable[[Node, Ops], Replacement | None]] = {
    "aten.elu.default": _forward(_elu),
    "aten.gelu.default": _forward(_gelu),
    "aten.gelu_backward.default": _backward(_gelu_backward),
    "aten.hardsigmoid.default": _forward(_hardsigmoid),
    "aten.hardswish.default": _forward(_hardswish),
    "aten.hardtanh.default": _forward(_hardtanh),
    "aten.leaky_relu.default": _forward(_leaky_relu),
    "aten.mish.default": _forward(_mish),
    "aten.sigmoid_backward.default": _backward(_sigmoid_backward),
    "aten.silu.default": _forward(_silu),
    "aten.silu_backward.default": _backward(_silu_backward),
    "aten.softplus.default": _forward(_softplus),
    "aten.threshold_backward.default": _threshold_backward,
}
