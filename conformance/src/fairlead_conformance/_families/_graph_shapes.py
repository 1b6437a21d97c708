"""The graphs of the family ``graph``, each written by a function that is its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fairlead.ir import Builder, DimExpr, DType, Graph, Kind, Role, Value
from fairlead_conformance._case import Level

__all__ = ["SHAPES", "Shape"]


@dataclass(frozen=True)
class Shape:
    """A graph, and what is needed to run it. ``sizes``: values of its symbols, one executable for all of them."""

    write: Callable[[Builder], None]
    level: Level
    dtypes: tuple[str, ...]
    needs: tuple[str, ...] = ()
    sizes: tuple[Mapping[str, int], ...] = ({},)
    mandatory: bool = False
    cost: float = 0.05

    def graph(self) -> Graph:
        """The graph, written anew."""
        builder = Builder(self.write.__name__)
        self.write(builder)
        return builder.graph()


SHAPES: dict[str, Shape] = {}
"""By name, in the order in which they stand here."""


_Write = Callable[[Builder], None]


def shape(level: Level = Level.L1, dtypes: tuple[str, ...] = ("f32",), **more: Any) -> Callable[[_Write], _Write]:
    """Enter a function that writes a graph; ``more`` are fields of `Shape`."""

    def enter(write: _Write) -> _Write:
        SHAPES[write.__name__] = Shape(write, level, dtypes, **more)
        return write

    return enter


def dynamic(*sizes: Mapping[str, int]) -> Callable[[_Write], _Write]:
    """A graph whose symbols take these values, one after another."""
    return shape(needs=("dynamic_shapes",), sizes=sizes)


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
    b.output(b.op("aten.sub.Tensor", _value(third), _value(first)))


def _value(value: Value | None) -> Value:
    assert value is not None
    return value


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


@shape()
def random_numbers_in_between(b: Builder) -> None:
    x = b.input("f32[16, 16]", "x")
    kept, _ = b.ops("aten.native_dropout.default", b.op("aten.add.Tensor", x, 3.0), 0.5, True)
    b.output(b.op("aten.neg.default", _value(kept)))


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
