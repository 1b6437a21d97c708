"""What is computed twice is computed once, unless someone could tell."""

from __future__ import annotations

import pytest

from fairlead.ir import Argument, Builder, Graph, Kind, Role, Value, to_text, verify
from fairlead.passes import eliminate_common_subexpressions

from ._build import nodes_of, text


def shared(graph: Graph) -> str:
    return nodes_of(eliminate_common_subexpressions(graph))


def neg(b: Builder, x: Value) -> Value:
    return b.op("aten.neg.default", x, to=x.type)


def mul(b: Builder, x: Value, y: Argument) -> Value:
    return b.op("aten.mul.Tensor", x, y, to=x.type)


def test_chains_that_compute_the_same_become_one() -> None:
    b = Builder()
    x = b.input("f32[2]")
    b.output(mul(b, mul(b, neg(b, x), 2.0), mul(b, neg(b, x), 2.0)))
    assert shared(b.graph()) == text(
        """
        %1 = aten.neg.default(%0) : f32[2]
        %2 = aten.mul.Tensor(%1, 2.0) : f32[2]
        %5 = aten.mul.Tensor(%2, %2) : f32[2]
        out %5 user
        """
    )


@pytest.mark.parametrize(("first", "second"), [(1, 1.0), (1, True), (0.0, -0.0), (0, False), (1.0, 1.0 + 2**-52)])
def test_numbers_of_another_kind_or_bits_are_others(first: Argument, second: Argument) -> None:
    b = Builder()
    x = b.input("f32[2]")
    b.output(b.op("aten.add.Tensor", mul(b, x, first), mul(b, x, second), 1, to=x.type))
    graph = b.graph()
    assert eliminate_common_subexpressions(graph) == graph


def test_nan_is_nan() -> None:
    b = Builder()
    x = b.input("f32[2]")
    b.output(b.op("aten.add.Tensor", mul(b, x, float("nan")), mul(b, x, float("nan")), 1, to=x.type))
    assert shared(b.graph()).count("aten.mul.Tensor") == 1


def test_results_that_one_or_the_other_lacks_are_united() -> None:
    b = Builder()
    x = b.input("f32[2, 3]")
    first, _ = b.ops("aten.unbind.int", x, 0, to=("f32[3]", None))
    _, second = b.ops("aten.unbind.int", x, 0, to=(None, "f32[3]"))
    assert first is not None
    b.output(b.op("aten.add.Tensor", first, second, 1, to=first.type))
    assert shared(b.graph()) == text(
        """
        %1, %2 = aten.unbind.int(%0, 0) : f32[3], f32[3]
        %3 = aten.add.Tensor(%1, %2, 1) : f32[3]
        out %3 user
        """
    )


def test_results_of_other_types_are_others() -> None:
    b = Builder()
    x = b.input("f32[2, 3]")
    copies = (b.op("aten.clone.default", x, None, to=t) for t in ("f32[2, 3]", "f32[2, 3] strides[1, 2]"))
    b.output(b.op("aten.add.Tensor", *copies, 1, to=x.type))
    assert shared(b.graph()).count("aten.clone.default") == 2


@pytest.mark.parametrize("op", ["aten.poisson.default", "aten.bernoulli.p", "mylib.add_one.default", "hop.other"])
def test_draws_custom_ops_and_control_flow_happen_each_time(op: str) -> None:
    b = Builder()
    x = b.input("f32[2]")
    args = {"aten.poisson.default": (x, None), "aten.bernoulli.p": (x, 0.5, None)}.get(op, (x,))
    b.output(b.op("aten.add.Tensor", b.op(op, *args, to=x.type), b.op(op, *args, to=x.type), 1, to=x.type))
    assert shared(b.graph()).count(op) == 2


def test_two_outputs_stay_two_tensors() -> None:
    b = Builder()
    x = b.input("f32[2]")
    b.output(neg(b, x))
    b.output(neg(b, x))
    graph = b.graph()
    assert eliminate_common_subexpressions(graph) == graph


def test_what_is_shown_through_a_view_stays_apart_from_an_output() -> None:
    b = Builder()
    x = b.input("f32[2]")
    b.output(neg(b, x))
    b.output(b.op("aten.view.default", neg(b, x), [2, 1], to="f32[2, 1]"))
    b.output(neg(b, x))
    assert shared(b.graph()).count("aten.neg.default") == 3


def test_an_output_may_be_what_is_read_inside() -> None:
    b = Builder()
    x = b.input("f32[2]")
    y = mul(b, neg(b, x), 2.0)
    b.output(neg(b, x))
    b.output(y)
    b.output(neg(b, x))
    assert shared(b.graph()) == text(
        """
        %1 = aten.neg.default(%0) : f32[2]
        %2 = aten.mul.Tensor(%1, 2.0) : f32[2]
        %4 = aten.neg.default(%0) : f32[2]
        out %1 user
        out %2 user
        out %4 user
        """
    )


def test_a_view_that_an_output_is_is_read_by_nothing_else() -> None:
    b = Builder()
    x = b.input("f32[2, 3]")
    inside, shown = (b.op("aten.permute.default", x, [1, 0], to="f32[3, 2] strides[1, 3]") for _ in range(2))
    b.output(neg(b, inside))
    b.output(shown)
    graph = b.graph()
    assert eliminate_common_subexpressions(graph) == graph


def test_regions_are_rewritten_one_by_one() -> None:
    body = Builder("body", Kind.region)
    x = body.input("f32[2]")
    body.output(mul(body, neg(body, x), neg(body, x)))
    b = Builder()
    x = b.input("f32[2]")
    b.output(b.op("hop.map", [neg(b, x)], [], to=x.type, regions=(body.graph(),)), Role.user)
    (region,) = eliminate_common_subexpressions(b.graph()).nodes[-1].regions
    assert to_text(verify(region)).count("aten.neg.default") == 1
