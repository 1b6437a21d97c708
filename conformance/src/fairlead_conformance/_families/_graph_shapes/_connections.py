"""What reads what: chains, diamonds and fans, inputs and outputs in every order, results that nobody reads."""

from __future__ import annotations

from fairlead.ir import Builder
from fairlead_conformance._case import Level
from fairlead_conformance._families._graph_shapes._shape import Shape, entering, given

__all__ = ["SHAPES"]

SHAPES: dict[str, Shape] = {}
shape = entering(SHAPES)


def _chain(b: Builder, length: int) -> None:
    """Each step depends on its bound and on all steps before, and has one right result."""
    value = b.input("f32[4, 4]", "x")
    for step in range(length // 2):
        bound = 3.0 - 2.0 * step / length
        value = b.op("aten.clamp.default", b.op("aten.neg.default", value), -bound, bound)
    b.output(value)


@shape(mandatory=True)
def one_node(b: Builder) -> None:
    b.output(b.op("aten.neg.default", b.input("f32[2, 3]", "x")))


@shape()
def chain_of_100(b: Builder) -> None:
    _chain(b, 100)


@shape(Level.L2, cost=10.0)
def chain_of_1000(b: Builder) -> None:
    _chain(b, 1000)


@shape()
def diamond(b: Builder) -> None:
    x = b.op("aten.mul.Tensor", b.input("f32[3, 4]", "x"), 2.0)
    left, right = b.op("aten.neg.default", x), b.op("aten.abs.default", x)
    b.output(b.op("aten.mul.Tensor", left, right))


@shape()
def diamonds_of_diamonds(b: Builder) -> None:
    x = b.input("f32[3, 4]", "x")
    for step in range(6):
        x = b.op("aten.sub.Tensor", b.op("aten.mul.Tensor", x, 0.5), b.op("aten.mul.Tensor", x, -0.25 - step / 64))
    b.output(x)


@shape()
def fan_out(b: Builder) -> None:
    x = b.input("f32[8]", "x")
    for step in range(64):
        b.output(b.op("aten.mul.Tensor", x, step - 31.5))


@shape()
def fan_in(b: Builder) -> None:
    parts = [b.input(f"f32[{1 + i % 3}, 2]", f"x{i}") for i in range(32)]
    b.output(b.op("aten.cat.default", parts, 0))


@shape()
def many_inputs(b: Builder) -> None:
    total, *rest = [b.input("f32[4]", f"x{i}") for i in range(48)]
    for i, x in enumerate(rest):
        total = b.op("aten.sub.Tensor" if i % 2 else "aten.add.Tensor", b.op("aten.mul.Tensor", total, 0.75), x)
    b.output(total)


@shape(mandatory=True)
def inputs_of_one_shape(b: Builder) -> None:
    w, x, y, z = (b.input("f32[3, 3]", name) for name in "wxyz")
    b.output(b.op("aten.sub.Tensor", w, x))
    b.output(b.op("aten.sub.Tensor", z, y))
    b.output(b.op("aten.sub.Tensor", b.op("aten.mul.Tensor", x, z), w))


@shape(mandatory=True)
def unused_inputs(b: Builder) -> None:
    a, _, c, _, e = (b.input("f32[2, 2]", name) for name in "abcde")
    b.output(b.op("aten.sub.Tensor", b.op("aten.sub.Tensor", e, a), c))


@shape()
def inputs_in_another_order(b: Builder) -> None:
    x, y, z = b.input("f32[2, 3]", "x"), b.input("f32[3, 2]", "y"), b.input("f32[2]", "z")
    b.output(b.op("aten.sub.Tensor", z, b.op("aten.sum.dim_IntList", x, [1])))
    b.output(b.op("aten.mm.default", y, x))


@shape(mandatory=True)
def an_input_used_twice(b: Builder) -> None:
    x = b.input("f32[3, 3]", "x")
    b.output(b.op("aten.mul.Tensor", x, x))
    b.output(b.op("aten.mm.default", x, x))


@shape()
def outputs_in_another_order(b: Builder) -> None:
    x = b.input("f32[4]", "x")
    steps = [b.op("aten.add.Tensor", x, float(i)) for i in range(6)]
    for i in (3, 0, 5, 1, 4, 2):
        b.output(steps[i])


@shape()
def an_output_that_is_read(b: Builder) -> None:
    first = b.op("aten.neg.default", b.input("f32[3]", "x"))
    second = b.op("aten.mul.Tensor", first, first)
    b.output(first)
    b.output(b.op("aten.sub.Tensor", second, first))
    b.output(second)


@shape()
def an_output_given_twice(b: Builder) -> None:
    x = b.input("f32[3]", "x")
    y = b.op("aten.neg.default", x)
    b.output(y)
    b.output(b.op("aten.abs.default", x))
    b.output(y)


@shape()
def inputs_as_outputs(b: Builder) -> None:
    x, y = b.input("f32[3]", "x"), b.input("f32[3]", "y")
    b.output(y)
    b.output(b.op("aten.sub.Tensor", x, y))
    b.output(x)


@shape()
def none_and_numbers_as_outputs(b: Builder) -> None:
    b.output(None)
    b.output(b.op("aten.neg.default", b.input("f32[3]", "x")))
    b.output(7)
    b.output(None)


@shape()
def a_node_that_nobody_reads(b: Builder) -> None:
    x = b.input("f32[3]", "x")
    b.op("aten.exp.default", x)
    b.output(b.op("aten.neg.default", x))


@shape(dtypes=("f32", "i64"))
def two_results_of_one_node(b: Builder) -> None:
    values, indices = b.ops("aten.max.dim", b.input("f32[4, 5]", "x"), 1)
    b.output(indices)
    b.output(values)


@shape(dtypes=("f32", "i64"))
def the_second_result_alone(b: Builder) -> None:
    b.output(b.ops("aten.max.dim", b.input("f32[4, 5]", "x"), 1, to=(None, "i64[4]"))[1])


@shape()
def three_results_one_unused(b: Builder) -> None:
    first, _, third = b.ops("aten.unbind.int", b.input("f32[3, 4]", "x"), 0, to=("f32[4]", None, "f32[4]"))
    b.output(b.op("aten.sub.Tensor", given(third), given(first)))
