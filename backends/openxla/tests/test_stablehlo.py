"""The text of a graph in StableHLO: for given sizes, with weights as inputs, or an error that says what is missing."""

from __future__ import annotations

import re

import pytest

from fairlead.ir import Builder, Graph
from fairlead_openxla import stablehlo


def linear() -> Graph:
    b = Builder("g")
    b.output(b.op("aten.linear.default", b.input("f32[b, 4]", "x"), b.input("f32[3, 4]", "w"), None))
    return b.graph()


def test_a_text_has_the_sizes_that_were_given_and_weights_as_arguments() -> None:
    module = stablehlo.text(linear(), {"b": 5})
    (signature,) = re.findall(r"func\.func public @main\((.*)\) -> \((.*)\) {", module)
    assert re.findall(r"tensor<\w+>", signature[0]) == ["tensor<5x4xf32>", "tensor<3x4xf32>"]
    assert re.findall(r"tensor<\w+>", signature[1]) == ["tensor<5x3xf32>"]
    assert "stablehlo.dot_general" in module


def test_what_has_to_hold_is_one_more_result() -> None:
    b = Builder("g")
    b.output(b.op("aten.index_select.default", b.input("f32[4]", "x"), 0, b.input("i64[2]", "at")))
    (results,) = re.findall(r"@main\(.*\) -> \((.*)\) {", stablehlo.text(b.graph()))
    assert re.findall(r"tensor<\w+>", results) == ["tensor<2xf32>", "tensor<1xi1>"]


def test_a_size_that_is_missing_is_named() -> None:
    with pytest.raises(ValueError, match="written for sizes: b has none") as caught:
        stablehlo.text(linear(), {"c": 5})
    assert str(caught.value).splitlines()[1:] == ["  from: fairlead-openxla, graph @g", '  next: text(graph, {"b": 8})']


def test_a_node_that_is_declined_is_named_with_the_reason() -> None:
    b = Builder("g")
    x = b.input("f32[2, 3]", "x")
    b.output(b.op("aten.as_strided.default", x, (3, 2), (1, 3), None))
    with pytest.raises(ValueError, match=r"aten\.as_strided\.default: as_strided reads memory"):
        stablehlo.text(b.graph())
