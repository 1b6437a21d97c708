"""Graphs written by hand."""

from __future__ import annotations

import pytest

from fairlead.errors import IRFormatError, VerificationError
from fairlead.ir import Builder, Complex, DType, Kind, Role, ScalarType, TensorType, Token, to_text, type_text


def test_a_graph_with_every_kind_of_input_and_output() -> None:
    b = Builder("step", Kind.forward)
    b.symbol("b", 2, 64)
    x = b.input("f32[b, 4]", "x")
    count = b.input("i64[]", "norm.count", Role.buffer)
    n = b.symbol("n", 0)
    b.input("i64", "n", Role.symbol)
    b.output(b.op("aten.add.Tensor", count, 1, 1, to=count.type), Role.mutation, target=count)
    b.output(b.op("aten.expand.default", x, [n, "b", 4], False, to="f32[n, b, 4] strides[0, 4, 1]"), aliases=x)
    b.output(n)
    b.output(7)
    b.output(None, Role.saved)
    assert to_text(b.graph()) == (
        "symbol b in [2, 64] from in0.dim0\n"
        "symbol n in [0, inf] from in2\n"
        "graph @step forward {\n"
        '  in %0 user "x" : f32[b, 4]\n'
        '  in %1 buffer "norm.count" : i64[]\n'
        '  in %2 symbol "n" : i64\n'
        "  %3 = aten.add.Tensor(%1, 1, 1) : i64[]\n"
        "  %4 = aten.expand.default(%0, [<n>, <b>, 4], false) : f32[n, b, 4] strides[0, 4, 1]\n"
        "  out %3 mutation -> in1\n"
        "  out %4 user aliases in0\n"
        "  out <n> user\n"
        "  out 7 user\n"
        "  out none saved\n"
        "}"
    )


def test_python_values_are_attributes() -> None:
    b = Builder()
    x = b.input("f32[2]")
    b.op("mine.all.default", x, DType.bf16, None, Token("device", "cpu"), True, [1, [2.5, "a"]], 1 - 2j, to=x.type)
    (node,) = b.graph().nodes
    assert node.args == (
        x,
        Token("dtype", "bf16"),
        None,
        Token("device", "cpu"),
        True,
        (1, (2.5, "a")),
        Complex(1.0, -2.0),
    )


def test_an_unused_result_is_none() -> None:
    b = Builder()
    first, unused = b.ops("aten.split_with_sizes.default", b.input("f32[5]"), [2, 3], 0, to=("f32[2]", None))
    assert unused is None
    assert first is not None
    b.output(first)
    assert "%1, _ = aten.split_with_sizes.default(%0, [2, 3], 0) : f32[2], _" in to_text(b.graph())


def test_regions_are_graphs_of_their_own() -> None:
    body = Builder("then", Kind.region)
    body.output(body.op("aten.neg.default", body.input("f32[2]"), to="f32[2]"))
    b = Builder()
    p, x = b.input("bool[]"), b.input("f32[2]")
    b.output(b.op("hop.cond", p, [x], to="f32[2]", regions=(body.graph(), body.graph())))
    (node,) = b.graph().nodes
    assert [r.kind for r in node.regions] == [Kind.region, Kind.region]


def test_a_builder_goes_on_after_it_gave_a_graph() -> None:
    b = Builder()
    x = b.input("f32[2]")
    first = b.graph()
    b.output(b.op("aten.neg.default", x, to=x.type))
    assert not first.nodes
    assert len(b.graph().nodes) == 1


@pytest.mark.parametrize(
    "text",
    [
        "f32[]",
        "bf16[2, 3] strides[1, 2]",
        "u8[b, 2*b + 1] @cuda:0",
        "f8e4m3fn[min(a, b), 3] strides[4, 1] @meta",
        "i64",
        "bool",
    ],
)
def test_the_text_of_a_type_is_read_back(text: str) -> None:
    assert type_text(Builder().input(text).type) == text


def test_sizes_are_brought_into_normal_form() -> None:
    assert Builder().input("f32[b*2 + b, 4//2]").type == TensorType(DType.f32, ("3*b", 2))
    assert Builder().input("i64").type == ScalarType(DType.i64)


@pytest.mark.parametrize("text", ["", "float[2]", "f32[2", "f32 @cpu", "f32[2] strides", "f32[2] f32"])
def test_what_is_no_type_is_an_error(text: str) -> None:
    with pytest.raises(IRFormatError) as caught:
        Builder().input(text)
    _, where, then = str(caught.value).splitlines()
    assert "fairlead.ir.Builder, line 1" in where
    assert then.startswith("  next:")


def test_arguments_are_filled_in_by_name_and_default_and_types_inferred() -> None:
    b = Builder("g")
    x, w = b.input("bf16[b, 3, 4]"), b.input("f32[4]")
    flat = b.op("aten.view.default", x, ["3*b", 4])
    wide = b.op("aten._to_copy.default", flat, dtype=DType.f32)
    out, *_ = b.ops("aten.native_layer_norm.default", wide, [4], eps=1e-5, weight=w, bias=None)
    b.output(b.op("aten.add.Tensor", out, 1, alpha=2))
    assert to_text(b.graph()).splitlines()[4:] == [
        "  %2 = aten.view.default(%0, [<3*b>, 4]) : bf16[3*b, 4]",
        "  %3 = aten._to_copy.default(%2, #dtype<f32>, none, none, none, false, none) : f32[3*b, 4]",
        "  %4, %5, %6 = aten.native_layer_norm.default(%3, [4], %1, none, 1e-05)"
        " : f32[3*b, 4], f32[3*b, 1], f32[3*b, 1]",
        "  %7 = aten.add.Tensor(%4, 1, 2) : f32[3*b, 4]",
        "  out %7 user",
        "}",
    ]


@pytest.mark.parametrize(
    ("args", "named", "what"),
    [
        ((), {}, "self, other missing"),
        ((1, 2, 3, 4), {}, "the last arguments too many"),
        ((1, 2), {"other": 3}, "other given twice"),
        ((1, 2), {"beta": 3}, "beta unknown"),
    ],
)
def test_arguments_that_the_signature_does_not_have_are_an_error(
    args: tuple[int, ...], named: dict[str, int], what: str
) -> None:
    with pytest.raises(IRFormatError) as caught:
        Builder().op("aten.add.Tensor", *args, to="f32[2]", **named)
    first, where, then = str(caught.value).splitlines()
    assert what in first
    assert "fairlead.ir.Builder" in where
    assert "call it as aten.add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor" in then


@pytest.mark.parametrize(("op", "args"), [("mine.twice.default", ()), ("aten.nonzero.default", ())])
def test_a_type_that_no_rule_knows_has_to_be_said(op: str, args: tuple[int, ...]) -> None:
    b = Builder()
    with pytest.raises(IRFormatError) as caught:
        b.op(op, b.input("f32[3]"), *args)
    what, where, then = str(caught.value).splitlines()
    assert f"the type of the result of {op} is not known" in what
    assert f"{op}(%0" in where
    assert "say it with to=" in then
    assert not b.graph().nodes


def test_a_mutation_of_what_is_no_input_is_an_error() -> None:
    b = Builder("step")
    y = b.op("aten.neg.default", b.input("f32[2]"), to="f32[2]")
    with pytest.raises(IRFormatError) as caught:
        b.output(y, Role.mutation, target=y)
    what, where, then = str(caught.value).splitlines()
    assert "%1 (f32[2]) is no input" in what
    assert "graph @step" in where
    assert "name the input" in then


def test_a_graph_that_breaks_a_rule_is_not_handed_out() -> None:
    b = Builder()
    b.output(Builder().input("f32[2]"))
    with pytest.raises(VerificationError, match="output %0 is never defined"):
        b.graph()
