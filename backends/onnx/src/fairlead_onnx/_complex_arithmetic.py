"""Sums, products, quotients and comparisons of complex numbers."""

from __future__ import annotations

from fairlead.ir import DType, Value
from fairlead_onnx._complex_call import ComplexCall, Rule, rule
from fairlead_onnx._complex_ops import Ops, Pair, Part
from fairlead_onnx._writer import Declined

__all__ = ["quotient", "times", "truth"]


def times(b: Ops, x: Pair, y: Pair) -> Pair:
    """The product by its definition, as torch has it: infinities make NaN of it where the definition does."""
    re = b.sub(b.mul(x.re, y.re), b.mul(x.im, y.im))
    return Pair(re, b.add(b.mul(x.re, y.im), b.mul(x.im, y.re)))


def quotient(b: Ops, x: Pair, y: Pair) -> Pair:
    """The quotient without an overflow in between, by Smith's algorithm as in c10::complex.

    The larger part of the divisor is divided by. A divisor of 0 gives each part of the dividend divided by 0.
    """
    if _is_real(y):
        return _over_real(b, x, y.re)
    size, other = b.unary("abs", y.re), b.unary("abs", y.im)
    turned = b.compare("lt", size, other)
    large, small = b.where(turned, y.im, y.re), b.where(turned, y.re, y.im)
    first, second = b.where(turned, x.im, x.re), b.where(turned, x.re, x.im)
    ratio = b.div(small, large)
    scale = b.div(1.0, b.add(large, b.mul(small, ratio)))
    re = b.mul(b.add(first, b.mul(second, ratio)), scale)
    im = b.mul(b.sub(second, b.mul(first, ratio)), scale)
    im = b.where(turned, b.neg(im), im)
    return _by_zero(b, Pair(re, im), x, b.both(b.compare("eq", y.re, 0.0), b.compare("eq", y.im, 0.0)))


def _is_real(y: Pair) -> bool:
    return y.im == 0.0


def _over_real(b: Ops, x: Pair, y: Part) -> Pair:
    """The same where the divisor's imaginary part is 0, and so is the ratio of its parts."""
    re, im = b.add(x.re, b.mul(x.im, 0.0)), b.sub(x.im, b.mul(x.re, 0.0))
    if isinstance(y, float) and y != 0.0:
        return Pair(b.div(b.tensor(re), y), b.div(b.tensor(im), y))
    scale = b.div(1.0, b.tensor(y))
    found = Pair(b.mul(re, scale), b.mul(im, scale))
    return _by_zero(b, found, x, b.compare("eq", y, 0.0))


def _by_zero(b: Ops, found: Pair, x: Pair, is_zero: Value) -> Pair:
    """What was found, but where the divisor is 0, whose signs do not count."""
    by_zero = (b.div(b.tensor(part), 0.0) for part in x)
    return Pair(*(b.where(is_zero, part, other) for part, other in zip(by_zero, found, strict=True)))


def truth(b: Ops, x: Pair) -> Value:
    """Whether a number is not 0."""
    return b.either(b.compare("ne", x.re, 0.0), b.compare("ne", x.im, 0.0))


@rule("aten.add.Tensor", "aten.sub.Tensor")
def add_or_sub(c: ComplexCall) -> Pair:
    b, x, y = c.ops, c.pair(0), c.pair(1)
    if c.args[2] != 1:
        y = times(b, y, c.pair(2))
    step = b.add if c.node.op == "aten.add.Tensor" else b.sub
    return Pair(step(x.re, y.re), step(x.im, y.im))


@rule("aten.mul.Tensor")
def mul(c: ComplexCall) -> Pair:
    return times(c.ops, c.pair(0), c.pair(1))


@rule("aten.div.Tensor")
def div(c: ComplexCall) -> Pair:
    return quotient(c.ops, c.pair(0), c.pair(1))


@rule("aten.reciprocal.default")
def reciprocal(c: ComplexCall) -> Pair:
    return quotient(c.ops, Pair(1.0, 0.0), c.pair(0))


@rule("aten.neg.default")
def neg(c: ComplexCall) -> Pair:
    return Pair(*map(c.ops.neg, c.pair(0)))


@rule("aten._conj_physical.default", "aten.conj_physical.default")
def conjugate(c: ComplexCall) -> Pair:
    z = c.pair(0)
    return Pair(z.re, c.ops.neg(z.im))


@rule("aten.eq.Tensor")
def equal(c: ComplexCall) -> Value:
    x, y = c.pair(0), c.pair(1)
    return c.ops.both(c.ops.compare("eq", x.re, y.re), c.ops.compare("eq", x.im, y.im))


@rule("aten.ne.Tensor")
def not_equal(c: ComplexCall) -> Value:
    x, y = c.pair(0), c.pair(1)
    return c.ops.either(c.ops.compare("ne", x.re, y.re), c.ops.compare("ne", x.im, y.im))


@rule("aten.isnan.default", "aten.isinf.default")
def has_such_a_part(c: ComplexCall) -> Value:
    re, im = (c.ops(c.node.op, c.ops.tensor(part)) for part in c.pair(0))
    return c.ops.either(re, im)


@rule("aten.logical_not.default")
def logical_not(c: ComplexCall) -> Value:
    return c.ops.unary("logical_not", truth(c.ops, c.pair(0)))


def _logical(name: str) -> Rule:
    def of_truths(c: ComplexCall) -> Value:
        return c.ops(name, truth(c.ops, c.pair(0)), truth(c.ops, c.pair(1)))

    return of_truths


for _name in ("and", "or", "xor"):
    rule(f"aten.logical_{_name}.default")(_logical(f"aten.logical_{_name}.default"))


@rule("aten.any.dims", "aten.all.dims", "aten.any.dim", "aten.all.dim", "aten.any.default", "aten.all.default")
def of_all(c: ComplexCall) -> Value:
    return c.ops(c.node.op, truth(c.ops, c.pair(0)), *c.args[1:])


@rule("aten._to_copy.default")
def to_copy(c: ComplexCall) -> Pair | Value:
    dtype, z = c.out.dtype, c.pair(0)
    if dtype.is_complex:
        return z
    if dtype is DType.bool:
        return truth(c.ops, z)
    if not dtype.is_floating:
        raise Declined("a complex number as an integer")
    return c.ops(c.node.op, c.ops.tensor(z.re), *c.args[1:])
