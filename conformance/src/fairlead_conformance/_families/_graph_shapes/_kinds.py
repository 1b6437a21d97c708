"""Graphs that draw random numbers, and those of training."""

from __future__ import annotations

from fairlead.ir import Builder, DType, Kind, Role
from fairlead_conformance._case import Level
from fairlead_conformance._families._graph_shapes._shape import Shape, entering, given

__all__ = ["SHAPES"]

SHAPES: dict[str, Shape] = {}
shape = entering(SHAPES)


@shape()
def random_numbers_in_between(b: Builder) -> None:
    x = b.input("f32[16, 16]", "x")
    kept, _ = b.ops("aten.native_dropout.default", b.op("aten.add.Tensor", x, 3.0), 0.5, True)
    b.output(b.op("aten.neg.default", given(kept)))


@shape(Level.L2, needs=("rng",))
def random_numbers_alone(b: Builder) -> None:
    b.output(b.op("aten.rand.default", [64, 64], dtype=DType.f32, to="f32[64, 64]"))


@shape(Level.L3, needs=("training",))
def a_forward_graph(b: Builder) -> None:
    b.kind = Kind.forward
    x = b.input("f32[3, 4]", "x")
    y = b.op("aten.tanh.default", x)
    b.output(b.op("aten.mul.Tensor", y, 2.0))
    b.output(y, Role.saved)


@shape(Level.L3, needs=("training",))
def a_backward_graph(b: Builder) -> None:
    b.kind = Kind.backward
    y, grad = b.input("f32[3, 4]", "y", Role.saved), b.input("f32[3, 4]", "grad", Role.tangent)
    b.output(b.op("aten.mul.Tensor", grad, b.op("aten.sub.Tensor", 1.0, b.op("aten.mul.Tensor", y, y))), Role.gradient)
