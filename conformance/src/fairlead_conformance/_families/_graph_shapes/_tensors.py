"""What values are: numbers and attributes, dtypes, dimensions of none and of one, layouts and views."""

from __future__ import annotations

from fairlead.ir import Builder, DType
from fairlead_conformance._case import Level
from fairlead_conformance._families._graph_shapes._shape import Shape, entering

__all__ = ["SHAPES"]

SHAPES: dict[str, Shape] = {}
shape = entering(SHAPES)


@shape()
def numbers_as_arguments(b: Builder) -> None:
    x = b.input("f32[4]", "x")
    for number in (2, 2.0, -0.0, 1e-30, 3.4e38, 0.1):
        b.output(b.op("aten.mul.Tensor", x, number))


@shape()
def nodes_that_differ_in_an_attribute(b: Builder) -> None:
    x, y = b.input("f32[3, 3]", "x"), b.input("f32[3, 3]", "y")
    for alpha in (1, 2, -3):
        b.output(b.op("aten.add.Tensor", x, y, alpha=alpha))
    for dim in (0, 1):
        for keepdim in (False, True):
            b.output(b.op("aten.amax.default", x, [dim], keepdim))


@shape(dtypes=("f32", "i64"))
def tensors_out_of_nothing(b: Builder) -> None:
    x = b.input("f32[2, 3]", "x")
    full = b.op("aten.full.default", [2, 3], 0.5, dtype=DType.f32, device=None, to="f32[2, 3]")
    b.output(b.op("aten.add.Tensor", x, full))
    b.output(b.op("aten.arange.start_step", 3, 9, 2, dtype=DType.i64, to="i64[3]"))


@shape(dtypes=("f32", "i64", "bool"))
def mixed_dtypes(b: Builder) -> None:
    x, index, mask = b.input("f32[5, 4]", "x"), b.input("i64[3]", "i"), b.input("bool[3, 4]", "m")
    rows = b.op("aten.index_select.default", x, 0, index)
    b.output(b.op("aten.where.self", mask, rows, b.op("aten.neg.default", rows)))
    b.output(b.op("aten._to_copy.default", index, dtype=DType.f32))
    b.output(b.op("aten.gt.Tensor", rows, 0.5))
    b.output(b.op("aten.add.Tensor", index, 1))


@shape(dtypes=("f32", "f16", "bf16"))
def casts_between_halves(b: Builder) -> None:
    x = b.input("f32[4, 4]", "x")
    for dtype in (DType.f16, DType.bf16):
        b.output(b.op("aten._to_copy.default", x, dtype=dtype))


@shape()
def no_dimensions(b: Builder) -> None:
    x, y = b.input("f32[]", "x"), b.input("f32[2, 3]", "y")
    b.output(b.op("aten.neg.default", x))
    b.output(b.op("aten.mul.Tensor", y, x))
    b.output(b.op("aten.sum.dim_IntList", y, [0, 1]))
    b.output(b.op("aten.mul.Tensor", x, x))


@shape()
def no_elements(b: Builder) -> None:
    x = b.input("f32[0, 3]", "x")
    b.output(b.op("aten.neg.default", x))
    b.output(b.op("aten.sum.dim_IntList", x, [0]))
    b.output(b.op("aten.cat.default", [x, b.input("f32[2, 3]", "y")], 0))


@shape()
def dimensions_of_one(b: Builder) -> None:
    x, y = b.input("f32[1, 3, 1]", "x"), b.input("f32[4, 1, 2]", "y")
    b.output(b.op("aten.add.Tensor", x, y))
    b.output(b.op("aten.squeeze.dims", b.op("aten.neg.default", x), [0, 2]))


@shape(Level.L2)
def eight_dimensions(b: Builder) -> None:
    x = b.op("aten.neg.default", b.input("f32[2, 1, 3, 1, 2, 1, 2, 3]", "x"))
    b.output(b.op("aten.neg.default", b.op("aten.permute.default", x, [7, 0, 6, 1, 5, 2, 4, 3])))


@shape()
def odd_sizes(b: Builder) -> None:
    x, y = b.input("f32[7, 13]", "x"), b.input("f32[13, 5]", "y")
    b.output(b.op("aten.mm.default", x, y))
    b.output(b.op("aten.mul.Tensor", x, 3.0))


@shape()
def views_in_between(b: Builder) -> None:
    x = b.op("aten.neg.default", b.input("f32[2, 3, 4]", "x"))
    turned = b.op("aten.permute.default", x, [2, 0, 1])
    flat = b.op("aten.view.default", b.op("aten.clone.default", turned), [4, 6])
    b.output(b.op("aten.neg.default", b.op("aten.slice.Tensor", flat, 1, 1, 6, 2)))


@shape()
def views_as_outputs(b: Builder) -> None:
    y = b.op("aten.neg.default", b.input("f32[4, 6]", "x"))
    b.output(y)
    b.output(b.op("aten.permute.default", y, [1, 0]))
    b.output(b.op("aten.view.default", y, [24]))
