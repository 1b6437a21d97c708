from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from fairlead.errors import VerificationError
from fairlead.ir import (
    DimExpr,
    DType,
    Graph,
    Input,
    Node,
    OpUse,
    Output,
    Role,
    ScalarType,
    Symbol,
    TensorType,
    Token,
    Value,
    module,
    verify,
)

replace = msgspec.structs.replace


def test_a_sound_graph_is_returned_itself(rich_graph: Graph, small_graph: Graph) -> None:
    assert verify(rich_graph) is rich_graph
    assert verify(small_graph) is small_graph


def _with_argument(argument: Any) -> Callable[[Graph], Graph]:
    def change(graph: Graph) -> Graph:
        node = graph.nodes[1]
        return replace(graph, nodes=(graph.nodes[0], replace(node, args=(*node.args, argument))))

    return change


def _with_result(**changes: Any) -> Callable[[Graph], Graph]:
    """The last node defines a value of another type, and the output names it."""

    def change(graph: Graph) -> Graph:
        value = replace(graph.nodes[1].result, type=replace(graph.nodes[1].result.tensor, **changes))
        return replace(
            graph, nodes=(graph.nodes[0], replace(graph.nodes[1], results=(value,))), outputs=(Output(value),)
        )

    return change


def _with_symbols(*symbols: Symbol) -> Callable[[Graph], Graph]:
    return lambda graph: replace(graph, symbols=(*graph.symbols, *symbols))


def _with_outputs(*outputs: Output) -> Callable[[Graph], Graph]:
    return lambda graph: replace(graph, outputs=(*graph.outputs, *outputs))


def _nested(depth: int) -> Any:
    return (_nested(depth - 1),) if depth else 1


Z = Value(3, TensorType(DType.f32, ("b", 3)))
OTHER = Value(3, TensorType(DType.f32, (9,)))
NEW = Value(9, TensorType(DType.f32, (1,)))

BROKEN: list[tuple[str, Callable[[Graph], Graph], str]] = [
    (
        "a graph's name with a lone surrogate",
        lambda g: replace(g, name="\ud800"),
        r"the name '\ud800' is not valid Unicode",
    ),
    ("a list as an argument", _with_argument([1]), "node 1 (aten.relu.default) has an argument that is a list"),
    ("a number of more than 64 bits", _with_argument(2**64), "an argument that is an integer of more than 64 bits"),
    (
        "a string with a lone surrogate",
        _with_argument("\udcff"),
        "an argument that is a string that is not valid Unicode",
    ),
    ("an unknown kind of token", _with_argument(Token("color", "red")), "a token of the unknown kind 'color'"),
    (
        "an expression in another form",
        _with_argument((DimExpr("b + b"),)),
        "the expression 'b + b', not in normal form",
    ),
    ("an expression that is a number", _with_argument(DimExpr("3")), "the expression '3', not in normal form"),
    ("arguments nested too deeply", _with_argument(_nested(40)), "an argument that is nested too deeply"),
    (
        "an op without an overload",
        lambda g: replace(g, nodes=(replace(g.nodes[0], op="linear"), g.nodes[1])),
        "'linear' is not the name of an op, like aten.add.Tensor",
    ),
    (
        "a dimension in another form",
        _with_result(shape=("1*b", 3)),
        "%3 has the dimension '1*b', which is not in normal form",
    ),
    ("a negative dimension", _with_result(shape=(-1, 3)), "%3 has the dimension -1"),
    ("a negative stride", _with_result(strides=(-3, 1)), "%3 has the dimension -3"),
    ("too few strides", _with_result(strides=(1,)), "%3 has 1 strides for 2 dimensions"),
    (
        "a device without a name",
        _with_result(device="GPU 0"),
        "%3 is on 'GPU 0', which is not a device like cpu or cuda:0",
    ),
    (
        "a value that is defined twice",
        lambda g: replace(g, nodes=(*g.nodes, g.nodes[1])),
        "%3 is defined twice",
    ),
    (
        "a negative number of a value",
        lambda g: replace(g, inputs=(*g.inputs, Input(Value(-4, NEW.type)))),
        "%-4 has a negative number",
    ),
    (
        "a use before the definition",
        lambda g: replace(g, nodes=(g.nodes[1], g.nodes[0])),
        "%2 is used before it is defined in `%3 = aten.relu.default(%2) : f32[b, 3]`",
    ),
    (
        "an operand of another type",
        _with_argument(Value(0, NEW.type)),
        "%0 has another type where it is used in `%3 = aten.relu.default(%2, %0) : f32[b, 3]` than where it is defined",
    ),
    ("an output that nothing defines", _with_outputs(Output(NEW)), "output %9 is never defined"),
    ("an output of another type", _with_outputs(Output(OTHER)), "output %3 has another type than where it is defined"),
    ("a symbol that is not declared", lambda g: replace(g, symbols=()), "symbol b is used but not declared"),
    ("an undeclared symbol in an argument", _with_argument(DimExpr("q")), "symbol q is used but not declared"),
    ("an undeclared symbol in an output", _with_outputs(Output(DimExpr("q"))), "symbol q is used but not declared"),
    ("a symbol that is declared twice", _with_symbols(Symbol("b", 0, 9, (0, 1))), "symbol b is declared twice"),
    (
        "a symbol named like a function",
        _with_symbols(Symbol("min", 0, 9, (0, 1))),
        "'min' cannot be the name of a symbol",
    ),
    ("a symbol named like a keyword", _with_symbols(Symbol("if", 0, 9, (0, 1))), "'if' cannot be the name of a symbol"),
    (
        "a symbol of no input",
        _with_symbols(Symbol("c", 0, 9, (7, 0))),
        "symbol c is read from input 7, which does not exist",
    ),
    (
        "a symbol of no dimension",
        _with_symbols(Symbol("c", 0, 9, (0, 2))),
        "symbol c cannot be read from input 0, dimension 2",
    ),
    (
        "a tensor as an integer",
        _with_symbols(Symbol("c", 0, 9, (0, None))),
        "symbol c cannot be read from input 0, dimension None",
    ),
    ("an empty range", _with_symbols(Symbol("c", 5, 4, (0, 1))), "symbol c has the empty range [5, 4]"),
    (
        "an input in the role of an output",
        lambda g: replace(g, inputs=(replace(g.inputs[0], role=Role.gradient), g.inputs[1])),
        "input 0 has the role gradient, which only outputs have",
    ),
    (
        "an output in the role of an input",
        _with_outputs(Output(Z, Role.buffer)),
        "output 1 has the role buffer, which only inputs have",
    ),
    ("a mutation of nothing", _with_outputs(Output(Z, Role.mutation)), "an output of role mutation has target None"),
    ("a target without a mutation", _with_outputs(Output(Z, target=0)), "an output of role user has target 0"),
    (
        "a mutation of no input",
        _with_outputs(Output(Z, Role.mutation, 5)),
        "a mutation overwrites input 5, which does not exist",
    ),
    (
        "a mutation with another type",
        _with_outputs(Output(Z, Role.mutation, 1)),
        "a mutation overwrites input 1 with a value of another type",
    ),
    ("an alias of no input", _with_outputs(Output(Z, aliases=5)), "output 1 cannot share the memory of input 5"),
    ("an alias that is a number", _with_outputs(Output(3, aliases=0)), "output 1 cannot share the memory of input 0"),
]


@pytest.mark.parametrize(("change", "message"), [b[1:] for b in BROKEN], ids=[b[0] for b in BROKEN])
def test_a_broken_rule_is_named(small_graph: Graph, change: Callable[[Graph], Graph], message: str) -> None:
    with pytest.raises(VerificationError, match=re.escape(message)) as caught:
        verify(change(small_graph))
    assert caught.value.where.startswith("graph @")
    assert caught.value.next == "fix the pass or the writer that made this graph"


def test_many_problems_are_cut_off_after_five(small_graph: Graph) -> None:
    nodes = tuple(Node("aten.relu.default", (Value(50 + i, Z.type),), (None,)) for i in range(9))
    with pytest.raises(VerificationError) as caught:
        verify(replace(small_graph, nodes=(*small_graph.nodes, *nodes)))
    assert caught.value.what.count("is used before it is defined") == 5
    assert caught.value.what.endswith("; and more")


def test_a_long_node_is_cut_in_the_message(small_graph: Graph) -> None:
    node = Node("aten.cat.default", (tuple(Value(99, Z.type) for _ in range(200)),), (None,))
    with pytest.raises(VerificationError) as caught:
        verify(replace(small_graph, nodes=(node,), outputs=()))
    assert len(caught.value.what) < 2000
    assert "...`" in caught.value.what


def test_a_scalar_input_may_be_the_source_of_a_symbol(small_graph: Graph) -> None:
    scalar = Input(Value(9, ScalarType(DType.i64)), Role.symbol)
    graph = replace(
        small_graph,
        inputs=(*small_graph.inputs, scalar),
        symbols=(*small_graph.symbols, Symbol("n", 0, None, (2, None))),
    )
    assert verify(graph) is graph


def _first_region(**changes: Any) -> Callable[[Graph], Graph]:
    def change(graph: Graph) -> Graph:
        node = graph.nodes[0]
        return replace(graph, nodes=(replace(node, regions=(replace(node.regions[0], **changes), node.regions[1])),))

    return change


def _deep(graph: Graph, depth: int) -> Graph:
    """The graph with regions nested this deep."""
    region = replace(graph.nodes[0].regions[1])
    for _ in range(depth - 1):
        region = replace(region, nodes=(Node("hop.map.default", (), (), regions=(region,)),))
    return replace(graph, nodes=(replace(graph.nodes[0], regions=(region,)),))


BROKEN_REGIONS: list[tuple[str, Callable[[Graph], Graph], str]] = [
    ("of another kind", _first_region(kind="forward"), "region 0 of node 0 (hop.cond.default) is of kind forward"),
    (
        "that uses a value from around it",
        _first_region(outputs=(Output(Value(2, TensorType(DType.f32, ("b", 2)))),)),
        "in region 0 of node 0 (hop.cond.default): output %2 is never defined",
    ),
    (
        "with an unknown symbol",
        _first_region(outputs=(Output(DimExpr("q")),)),
        "in region 0 of node 0 (hop.cond.default): symbol q is used but not declared",
    ),
    (
        "that declares a symbol again",
        _first_region(symbols=(Symbol("b", 0, None, (0, 0)),)),
        "in region 0 of node 0 (hop.cond.default): symbol b is declared twice",
    ),
    ("nested too deep", lambda g: _deep(g, 9), "region 0 of node 0 (hop.map.default) is nested more than 8 deep"),
]


@pytest.mark.parametrize(("change", "message"), [b[1:] for b in BROKEN_REGIONS], ids=[b[0] for b in BROKEN_REGIONS])
def test_a_broken_region_is_named(nested_graph: Graph, change: Callable[[Graph], Graph], message: str) -> None:
    with pytest.raises(VerificationError, match=re.escape(message)):
        verify(change(nested_graph))


def test_sound_regions_pass(nested_graph: Graph) -> None:
    own = replace(nested_graph.nodes[0].regions[1], symbols=(Symbol("q", 0, None, (0, 0)),))
    node = replace(nested_graph.nodes[0], regions=(own,))
    for graph in (nested_graph, _deep(nested_graph, 8), replace(nested_graph, nodes=(node,))):
        assert verify(graph) is graph


BROKEN_MODULES: list[tuple[str, dict[str, Any], str]] = [
    ("without graphs", {"graphs": ()}, "it has no graph"),
    ("without its ops", {"ops": {}}, "aten.linear.default is not in its table of ops"),
    ("with version 0 of an op", {"ops": {"aten.linear.default": OpUse(0)}}, "aten.linear.default has version 0"),
    ("with an op that nobody uses", {"ops": {"a.b": OpUse(1)}}, "a.b is in its table of ops, and no node has it"),
    ("of an odd producer", {"producer": {"x": "\ud800"}}, r"the producer '\ud800' is not valid Unicode"),
]


@pytest.mark.parametrize(("changes", "message"), [b[1:] for b in BROKEN_MODULES], ids=[b[0] for b in BROKEN_MODULES])
def test_a_broken_module_is_named(small_graph: Graph, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(VerificationError, match=re.escape(message)):
        verify(replace(module(small_graph), **changes))


def test_two_graphs_of_one_name_are_refused(small_graph: Graph) -> None:
    with pytest.raises(VerificationError, match="two graphs are called 'main'"):
        verify(module(small_graph, small_graph))
