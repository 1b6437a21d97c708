"""Rules of roots, exponentials, logarithms, and what is made of them."""

from __future__ import annotations

import math

from fairlead.ir import DType
from fairlead_onnx._call import Call
from fairlead_onnx._logic import is_infinite, is_nonzero
from fairlead_onnx._rules import rule
from fairlead_onnx._writer import Declined, Ref, Writer

__all__ = ["root", "sigmoid_of", "softplus_of"]

_NEAR_THE_ENDS = (88.0, 1.0), (-86.0, -20.0)
"""Beyond which numbers the exponential of f32 is taken of another, and how far away that is."""


@rule("aten.sqrt.default")
def sqrt(c: Call) -> Ref:
    return root(c.writer, c.tensor(0, c.dtype))


@rule("aten.rsqrt.default")
def rsqrt(c: Call) -> Ref:
    return c.writer.same("Reciprocal", root(c.writer, c.tensor(0, c.dtype)))


def root(w: Writer, x: Ref) -> Ref:
    """The square root; that of two tensors added is the root of a Sum.

    ONNX Runtime may take the root of any Add for that of a norm, and puts 1e-5 in the place of an epsilon that is no
    constant.
    """
    total = w.producer(x)
    numbers = {constant.name for constant in w.constants.values()}
    if total is not None and total.op == "Add" and numbers.isdisjoint(total.inputs):
        x = w.op("Sum", *(Ref(name, x.dtype) for name in total.inputs))
    return w.same("Sqrt", x)


@rule("aten.exp.default")
def exp(c: Call) -> Ref:
    return exp_of(c.writer, c.tensor(0, c.dtype))


def exp_of(w: Writer, x: Ref) -> Ref:
    """The exponential; ``exp(x - k) * exp(k)`` where the runtime's own is infinite, or 0, too early."""
    if "Exp" not in w.target.coarse or x.dtype is not DType.f32:
        return w.same("Exp", x)
    large, small = (w.number(limit, x.dtype) for limit, _ in _NEAR_THE_ENDS)
    ends = w.same("Less", large, x, result=DType.bool), w.same("Less", x, small, result=DType.bool)
    shift, factor = w.number(0.0, x.dtype), w.number(1.0, x.dtype)
    for end, (_, k) in zip(ends, _NEAR_THE_ENDS, strict=True):
        shift = w.select(end, w.number(k, x.dtype), shift)
        factor = w.select(end, w.number(math.exp(k), x.dtype), factor)
    return w.same("Mul", w.same("Exp", w.same("Sub", x, shift)), factor)


@rule("aten.exp2.default")
def exp2(c: Call) -> Ref:
    return c.writer.same("Pow", c.writer.number(2.0, c.dtype), c.tensor(0, c.dtype))


@rule("aten.erfc.default")
def erfc(c: Call) -> Ref:
    raise Declined("1 - erf(x) loses the digits of erfc(x) for large x")


@rule("aten.log2.default")
def log2(c: Call) -> Ref:
    return _scaled_log(c, math.log(2.0))


@rule("aten.log10.default")
def log10(c: Call) -> Ref:
    return _scaled_log(c, math.log(10.0))


def _scaled_log(c: Call, base: float) -> Ref:
    return c.writer.same("Div", c.writer.same("Log", c.tensor(0, c.dtype)), c.writer.number(base, c.dtype))


@rule("aten.log1p.default")
def log1p(c: Call) -> Ref:
    return _log1p(c.writer, c.tensor(0, c.dtype))


def _log1p(w: Writer, x: Ref) -> Ref:
    """``log(u) * x / (u - 1)`` with ``u = 1 + x``, which cancels the rounding of u.

    Source: Higham, Accuracy and Stability of Numerical Algorithms, 1.14.1, after Kahan.
    """
    zero, one = w.number(0.0, x.dtype), w.number(1.0, x.dtype)
    u = w.same("Add", x, one)
    log = w.same("Log", u)
    more = w.same("Sub", u, one)
    exact = w.same("Div", w.same("Mul", log, x), more)
    plain = w.op("Or", w.same("LessOrEqual", u, zero, result=DType.bool), is_infinite(w, u), dtype=DType.bool)
    rest = w.select(plain, log, exact)
    return w.select(is_nonzero(w, more), rest, x)


@rule("aten.expm1.default")
def expm1(c: Call) -> Ref:
    """``(u - 1) * x / log(u)`` with ``u = exp(x)`` cancels the rounding of u (Kahan)."""
    w, x = c.writer, c.tensor(0, c.dtype)
    one = w.number(1.0, c.dtype)
    u = exp_of(w, x)
    less = w.same("Sub", u, one)
    exact = w.same("Div", w.same("Mul", less, x), w.same("Log", u))
    large = w.same("Greater", w.abs(x), w.number(1.0, c.dtype), result=DType.bool)
    return w.select(is_nonzero(w, less), w.select(large, less, exact), x)


@rule("aten.sigmoid.default")
def sigmoid(c: Call) -> Ref:
    return sigmoid_of(c.writer, c.tensor(0, c.dtype))


def sigmoid_of(w: Writer, x: Ref) -> Ref:
    """``1 / (1 + exp(-x))`` where the runtime's own is 0 for what is merely small, and its logarithm infinite."""
    if "Sigmoid" not in w.target.coarse:
        return w.same("Sigmoid", x)
    return w.same("Reciprocal", w.same("Add", w.same("Exp", w.same("Neg", x)), w.number(1.0, x.dtype)))


def softplus_of(w: Writer, x: Ref) -> Ref:
    """``log(1 + exp(x))``, as ``max(x, 0) + log1p(exp(-|x|))`` where the runtime's own loses small results."""
    if "Softplus" not in w.target.coarse:
        return w.same("Softplus", x)
    rest = _log1p(w, w.same("Exp", w.same("Neg", w.abs(x))))
    return w.same("Add", w.same("Max", x, w.number(0.0, x.dtype)), rest)
