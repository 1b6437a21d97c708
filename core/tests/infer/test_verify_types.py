"""Whole graphs against the rules."""

from __future__ import annotations

import msgspec
import pytest

from fairlead.errors import VerificationError
from fairlead.ir import DType, Graph, Input, Kind, Node, Output, Symbol, TensorType, Value
from fairlead.ir.infer import Verdict, compare_types, verify_types

from ._notation import argument, typed


def graph(*nodes: Node, lowest: int = 2) -> Graph:
    """Nodes over one input, ``f32[s, 8]``."""
    x = Value(0, typed("f32[s, 8]"))
    return Graph("g", Kind.inference, (Input(x),), nodes, (Output(x),), (Symbol("s", lowest, 64, (0, 0)),))


def node(op: str, args: tuple[object, ...], *types: str | None) -> Node:
    """A node that reads the input where ``args`` says ``"x"``."""
    given = tuple(Value(0, typed("f32[s, 8]")) if a == "x" else argument(a) for a in args)
    return Node(op, given, tuple(None if t is None else Value(i + 1, typed(t)) for i, t in enumerate(types)))


def verdicts(g: Graph) -> list[Verdict]:
    return [finding.verdict for finding in compare_types(g)]


RIGHT = node("aten.sum.dim_IntList", ("x", [1], False, None), "f32[s]")
WRONG = node("aten.sum.dim_IntList", ("x", [1], False, None), "f32[s, 1]")


def test_a_graph_that_declares_what_its_ops_make_is_returned() -> None:
    g = graph(RIGHT)
    assert verify_types(g) is g


def test_the_error_shows_the_node_and_both_types() -> None:
    with pytest.raises(VerificationError) as caught:
        verify_types(graph(RIGHT, WRONG))
    assert str(caught.value) == (
        "FL603: `%1 = aten.sum.dim_IntList(%0, [1], false, none) : f32[s, 1]` has results of type f32[s]\n"
        "  from: graph @g (inference, 2 nodes)\n"
        "  next: fix the pass or the writer that declared these types"
    )


def test_operands_that_cannot_go_together_are_an_error_too() -> None:
    with pytest.raises(VerificationError, match=r"`%1 = aten\.mm.*`: .* the operands have 2 and 1 dimensions"):
        verify_types(graph(node("aten.mm.default", ("x", "f32[8]"), "f32[s]")))


def test_only_the_first_problems_are_listed() -> None:
    with pytest.raises(VerificationError) as caught:
        verify_types(graph(*[WRONG] * 9))
    assert caught.value.what.count("has results of type") == 5
    assert caught.value.what.endswith("; and more")


@pytest.mark.parametrize("declared", ["f64[s]", "f32[s + 1]", "f32[]", "f32[s] @cuda:0"])
def test_another_dtype_size_rank_or_device_is_wrong(declared: str) -> None:
    assert verdicts(graph(node("aten.sum.dim_IntList", ("x", [1], False, None), declared))) == [Verdict.wrong]


def test_another_number_of_results_is_wrong() -> None:
    assert verdicts(graph(node("aten.sort.default", ("x", 0, False), "f32[s, 8]"))) == [Verdict.wrong]


def test_strides_are_not_compared() -> None:
    result = Value(1, msgspec.structs.replace(typed("f32[s]"), strides=(3,)))
    assert verdicts(graph(msgspec.structs.replace(RIGHT, results=(result,)))) == [Verdict.right]


def test_a_result_that_nobody_uses_is_not_compared() -> None:
    assert verdicts(graph(node("aten.sort.default", ("x", 0, False), None, "i64[s, 8]"))) == [Verdict.right]


def test_ops_without_a_rule_and_sizes_that_the_data_decide_are_unknown() -> None:
    nodes = (node("mine.op.default", ("x",), "f32[1]"), node("aten.nonzero.default", ("x",), "i64[4, 2]"))
    assert verdicts(graph(*nodes)) == [Verdict.unknown] * 2
    assert verify_types(graph(*nodes)).nodes == nodes


@pytest.mark.parametrize(("lowest", "verdict"), [(4, Verdict.right), (3, Verdict.unknown)])
def test_the_range_of_a_symbol_decides_which_part_of_a_minimum_counts(lowest: int, verdict: Verdict) -> None:
    sliced = node("aten.slice.Tensor", ("x", 0, 0, 4, 1), "f32[4, 8]")
    assert verdicts(graph(sliced, lowest=lowest)) == [verdict]


def test_what_is_no_part_of_a_minimum_is_wrong() -> None:
    assert verdicts(graph(node("aten.slice.Tensor", ("x", 0, 0, 4, 1), "f32[5, 8]"))) == [Verdict.wrong]


@pytest.mark.parametrize(("size", "verdict"), [(1, Verdict.unknown), (33, Verdict.wrong)])
def test_an_expression_may_be_a_number_in_its_range(size: int, verdict: Verdict) -> None:
    every_other = node("aten.slice.Tensor", ("x", 0, 0, 2**63 - 1, 2), f"f32[{size}, 8]")
    assert verdicts(graph(every_other)) == [verdict]


def test_a_number_is_no_tensor() -> None:
    read = Node("aten._local_scalar_dense.default", (Value(0, typed("i64[]")),), (Value(1, TensorType(DType.i64, ())),))
    assert verdicts(graph(read)) == [Verdict.wrong]
