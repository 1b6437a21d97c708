"""Complex numbers as pairs of real ones: the graph that is lowered, and what is declined."""

from __future__ import annotations

import pytest

from fairlead.ir import Builder, DType, to_text, verify
from fairlead_onnx import RealForm, Target, lower, supports

PLAIN = Target(name="demo")


def test_a_rotation_of_pairs_is_four_products_of_their_parts() -> None:
    b = Builder()
    x, turns = b.input("f32[b, 2]"), b.input("c64[1]")
    product = b.op("aten.mul.Tensor", b.op("aten.view_as_complex.default", x), turns)
    b.output(b.op("aten.view_as_real.default", product))
    real = verify(RealForm(b.graph()).graph)
    assert to_text(real).splitlines()[2:] == [
        '  in %0 user "" : f32[b, 2]',
        '  in %6 user "" : f32[1, 2]',
        "  %7 = aten.select.int(%6, -1, 0) : f32[1]",
        "  %8 = aten.select.int(%6, -1, 1) : f32[1]",
        "  %9 = aten.select.int(%0, -1, 0) : f32[b]",
        "  %10 = aten.select.int(%0, -1, 1) : f32[b]",
        "  %11 = aten.mul.Tensor(%9, %7) : f32[b]",
        "  %12 = aten.mul.Tensor(%10, %8) : f32[b]",
        "  %13 = aten.sub.Tensor(%11, %12, 1) : f32[b]",
        "  %14 = aten.mul.Tensor(%9, %8) : f32[b]",
        "  %15 = aten.mul.Tensor(%10, %7) : f32[b]",
        "  %16 = aten.add.Tensor(%14, %15, 1) : f32[b]",
        "  %17 = aten.unsqueeze.default(%13, -1) : f32[b, 1]",
        "  %18 = aten.unsqueeze.default(%16, -1) : f32[b, 1]",
        "  %19 = aten.cat.default([%17, %18], -1) : f32[b, 2]",
        "  out %19 user",
        "}",
    ]


def test_parts_that_are_shown_and_picked_again_are_not_stacked_in_between() -> None:
    b = Builder()
    z = b.op("aten.neg.default", b.input("c64[3]"))
    pairs = b.op("aten.view_as_real.default", z)
    b.output(b.op("aten.select.int", pairs, -1, 1))
    b.output(b.op("aten.abs.default", b.op("aten.view_as_complex.default", pairs)))
    ops = [node.op_type for node in lower(b.graph(), target=PLAIN).model.graph]
    assert "Concat" not in ops
    assert ops.count("Gather") == 2


def test_a_graph_of_real_numbers_is_left_as_it_is() -> None:
    b = Builder()
    b.output(b.op("aten.neg.default", b.input("f32[3]")))
    graph = b.graph()
    assert RealForm(graph).graph is graph


def test_symbols_are_read_from_complex_inputs() -> None:
    b = Builder()
    z = b.input("c64[b, 3]")
    b.output(b.op("aten.view.default", z, ("3*b",)))
    real = verify(RealForm(b.graph()).graph)
    assert real.symbols[0].source == (0, 0)
    assert [v.tensor.shape for v in real.output_values()] == [("3*b", 2)]


@pytest.mark.parametrize(
    ("op", "args", "reason"),
    [
        ("aten.asin.default", (), "aten.asin.default has no ONNX lowering for complex numbers"),
        ("aten._fft_c2c.default", ([0], 0, True), "a Fourier transform of a dynamic size"),
        ("aten._fft_c2c.default", ([1], 0, True), "a Fourier transform whose size has the factor 1021"),
        ("aten._to_copy.default", (DType.i64,), "a complex number as an integer"),
    ],
)
def test_what_has_no_form_in_parts_is_declined_with_a_reason(op: str, args: tuple[object, ...], reason: str) -> None:
    b = Builder()
    b.output(b.op(op, b.input("c64[b, 1021]"), *args))
    (node,) = b.graph().nodes
    assert reason in supports(node, target=PLAIN).reason
