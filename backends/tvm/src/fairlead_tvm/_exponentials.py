"""Rules of powers, exponentials, logarithms, and trigonometric and hyperbolic functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from fairlead.ir import DType, Node
from fairlead_tvm import _tvm as t
from fairlead_tvm._arrays import Array
from fairlead_tvm._call import Call
from fairlead_tvm._functions import erf, exp, log, sigmoid, sqrt, tanh
from fairlead_tvm._kernel import Kernel
from fairlead_tvm._numbers import operand
from fairlead_tvm._rules import Rule, rule
from fairlead_tvm._tvm import Expr

__all__: list[str] = []

_Function: TypeAlias = Callable[[Kernel, Expr, DType], Expr]

_LIBRARY = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erfc", "exp2", "expm1", "log10", "log1p",
    "log2", "sin", "sinh", "tan",
)  # fmt: skip


_MOST = 8
"""The largest power of integers that is written as products."""


def _unary(function: _Function, cost: int) -> Rule:
    def write(c: Call, x: Array) -> Array:
        x = operand(x, c.dtype)
        return c.kernel_map(lambda k, v: function(k, v, x.dtype), x, cost=cost)

    return write


def _extern(name: str) -> _Function:
    return lambda k, x, dtype: k.extern(name, dtype, x)


for _name in _LIBRARY:
    rule(_name)(_unary(_extern(_name), 30))
for _name, _function in (("exp", exp), ("log", log), ("erf", erf), ("tanh", tanh), ("sigmoid", sigmoid)):
    rule(_name)(_unary(_function, 20))
rule("sqrt")(_unary(lambda k, x, _: sqrt(x), 4))
rule("rsqrt")(_unary(lambda k, x, dtype: t.const(1.0, dtype) / sqrt(x), 6))


def _of_integers(node: Node) -> str | None:
    dtype, exponent = node.result.tensor.dtype, node.args[1]
    known = isinstance(exponent, int) and 0 <= exponent <= _MOST
    return f"an integer to a power that is none of 0 to {_MOST}" if dtype.is_integer and not known else None


@rule("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar", unless=_of_integers)
def power(c: Call, x: Array, y: Any) -> Array:
    if c.dtype.is_integer:
        return _whole_power(c, operand(x, c.dtype), y)
    base = operand(x, c.dtype)
    dtype = base.dtype
    if not isinstance(y, Array | str) and (known := _known_power(float(y), dtype)) is not None:
        return c.map(known, base, cost=4)
    return c.kernel_map(lambda k, a, b: k.extern("pow", dtype, a, b), base, operand(y, c.dtype), cost=40)


def _known_power(exponent: float, dtype: DType) -> Callable[[Expr], Expr] | None:
    """The powers that torch's kernels write otherwise. Source: pow_tensor_scalar_optimized_kernel in ATen."""
    one = t.const(1.0, dtype)
    return {
        0.5: sqrt,
        2.0: lambda v: v * v,
        3.0: lambda v: v * v * v,
        -0.5: lambda v: one / sqrt(v),
        -1.0: lambda v: one / v,
        -2.0: lambda v: one / (v * v),
    }.get(exponent)


def _whole_power(c: Call, x: Array, exponent: int) -> Array:
    """Wraps around."""

    def grown(v: Expr) -> Expr:
        found = t.const(1, x.dtype) if exponent == 0 else v
        for _ in range(exponent - 1):
            found = found * v
        return found

    return c.map(grown, x, cost=max(exponent, 1))


@rule("ldexp.Tensor")
def ldexp(c: Call, x: Array, exponent: Array) -> Array:
    is_scaled = x.dtype.is_floating and exponent.dtype.is_integer
    x, e = operand(x, c.dtype), operand(exponent, c.dtype)
    dtype = x.dtype

    def scaled(k: Kernel, a: Expr, b: Expr) -> Expr:
        for power in _factors(b, dtype) if is_scaled else [b]:
            a = a * k.extern("pow", dtype, t.const(2.0, dtype), power)
        return a

    return c.kernel_map(scaled, x, e, cost=120 if is_scaled else 40)


def _factors(power: Expr, dtype: DType) -> list[Expr]:
    """Powers that add up to one of an integer, which alone may be out of range, in the order that rounds once."""
    most = 1022 if dtype is DType.f64 else 126
    ends = t.const(float(-most), dtype), t.const(float(most), dtype)

    def within(x: Expr) -> Expr:
        return t.maximum(ends[0], t.minimum(ends[1], x))

    last = within(power)
    middle = within(power - last)
    return [within(power - last - middle), middle, last]
