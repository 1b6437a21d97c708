"""Inputs that are parameters and buffers, and their names."""

from __future__ import annotations

from fairlead.ir import Builder, Role
from fairlead_conformance._families._graph_shapes._shape import Shape, entering

__all__ = ["SHAPES"]

SHAPES: dict[str, Shape] = {}
shape = entering(SHAPES)


@shape(mandatory=True)
def weights(b: Builder) -> None:
    x = b.input("f32[3, 8]", "x")
    up, bias = b.input("f32[16, 8]", "up.weight", Role.parameter), b.input("f32[16]", "up.bias", Role.parameter)
    scale = b.input("f32[16]", "scale", Role.buffer)
    b.output(b.op("aten.mul.Tensor", b.op("aten.linear.default", x, up, bias), scale))


@shape()
def weights_that_are_worked_on(b: Builder) -> None:
    x, w = b.input("f32[3, 8]", "x"), b.input("f32[4, 8]", "w", Role.parameter)
    scale = b.input("f32[4, 1]", "scale", Role.parameter)
    normal = b.op("aten.mul.Tensor", w, b.op("aten.exp.default", scale))
    b.output(b.op("aten.mm.default", x, b.op("aten.permute.default", normal, [1, 0])))


@shape()
def equal_weights(b: Builder) -> None:
    x = b.input("f32[3, 4]", "x")
    for i in range(4):
        x = b.op("aten.linear.default", x, b.input("f32[4, 4]", f"layers.{i}.weight", Role.parameter), None)
    b.output(x)


@shape()
def names_that_need_care(b: Builder) -> None:
    names = ("", "", "x", "x.y/z", "class", "a b", "ünïcode", "0", "Identity:0")
    total, *rest = [b.input("f32[3]", name) for name in names]
    for x in rest:
        total = b.op("aten.sub.Tensor", b.op("aten.neg.default", total), x)
    b.output(total)
