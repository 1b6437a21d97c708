"""Dimensions whose sizes differ from call to call."""

from __future__ import annotations

from fairlead.ir import Builder, DimExpr, Role
from fairlead_conformance._families._graph_shapes._shape import Shape, entering_dynamic

__all__ = ["SHAPES"]

SHAPES: dict[str, Shape] = {}
dynamic = entering_dynamic(SHAPES)


@dynamic({"b": 3}, {"b": 1}, {"b": 7})
def a_batch_of_any_size(b: Builder) -> None:
    x, w = b.input("f32[b, 8]", "x"), b.input("f32[4, 8]", "w")
    b.output(b.op("aten.relu.default", b.op("aten.linear.default", x, w, None)))


@dynamic({"b": 3}, {"b": 0}, {"b": 2})
def a_batch_of_none(b: Builder) -> None:
    b.symbol("b", 0)
    x = b.input("f32[b, 4]", "x")
    b.output(b.op("aten.neg.default", x))
    b.output(b.op("aten.sum.dim_IntList", x, [0]))


@dynamic({"m": 2, "n": 3}, {"m": 3, "n": 2}, {"m": 1, "n": 6})
def two_sizes(b: Builder) -> None:
    x, y = b.input("f32[m, n]", "x"), b.input("f32[n, m]", "y")
    b.output(b.op("aten.mm.default", x, y))
    b.output(b.op("aten.add.Tensor", x, b.op("aten.permute.default", y, [1, 0])))


@dynamic({"b": 2}, {"b": 5}, {"b": 1})
def sizes_that_follow(b: Builder) -> None:
    x = b.op("aten.neg.default", b.input("f32[b, 6]", "x"))
    b.output(b.op("aten.neg.default", b.op("aten.view.default", x, ["2*b", 3])))
    b.output(b.op("aten.cat.default", [x, x], 0))


@dynamic({"n": 3}, {"n": 1}, {"n": 8})
def a_size_as_an_input(b: Builder) -> None:
    b.input("i64", "n", Role.symbol)
    x = b.input("f32[1, 4]", "x")
    b.output(b.op("aten.neg.default", b.op("aten.expand.default", x, [DimExpr("n"), 4], to="f32[n, 4]")))
