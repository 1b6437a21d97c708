"""Products of matrices of complex numbers: four of real ones."""

from __future__ import annotations

from fairlead.ir import Argument
from fairlead_onnx._complex_arithmetic import times
from fairlead_onnx._complex_call import ComplexCall, rule
from fairlead_onnx._complex_ops import Pair

__all__: list[str] = []


def _product(c: ComplexCall, op: str, x: Pair, y: Pair, *rest: Argument) -> Pair:
    """An op that is linear in each of two operands."""
    b = c.ops
    (rr, ii, ri, ir) = (
        b(op, b.tensor(p), b.tensor(q), *rest) for p, q in ((x.re, y.re), (x.im, y.im), (x.re, y.im), (x.im, y.re))
    )
    return Pair(b.sub(rr, ii), b.add(ri, ir))


def _tensors(c: ComplexCall, index: int) -> Pair:
    """An operand in two tensors of its shape."""
    return Pair(*(c.ops.whole(part, c.shape(index)) for part in c.pair(index)))


@rule("aten.mm.default", "aten.bmm.default", "aten.mv.default", "aten.dot.default")
def matmul(c: ComplexCall) -> Pair:
    return _product(c, c.node.op, _tensors(c, 0), _tensors(c, 1))


@rule("aten.addmm.default", "aten.baddbmm.default")
def added_matmul(c: ComplexCall) -> Pair:
    op = "aten.mm.default" if c.node.op == "aten.addmm.default" else "aten.bmm.default"
    found = _scaled(c, 4, _product(c, op, _tensors(c, 1), _tensors(c, 2)))
    if c.pair(3) == Pair(0.0, 0.0):
        return found
    bias = _scaled(c, 3, c.pair(0))
    return Pair(c.ops.add(bias.re, found.re), c.ops.add(bias.im, found.im))


def _scaled(c: ComplexCall, factor: int, z: Pair) -> Pair:
    return z if c.pair(factor) == Pair(1.0, 0.0) else times(c.ops, c.pair(factor), z)


@rule("aten.linear.default")
def linear(c: ComplexCall) -> Pair:
    found = _product(c, c.node.op, _tensors(c, 0), _tensors(c, 1), None)
    if c.args[2] is None:
        return found
    bias = c.pair(2)
    return Pair(c.ops.add(found.re, bias.re), c.ops.add(found.im, bias.im))
