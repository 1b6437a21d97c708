"""What differs between two graphs: every change that the fingerprint sees has a line, and nothing else has one."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from fairlead.ir import (
    Change,
    DimExpr,
    DType,
    Graph,
    Input,
    Kind,
    Location,
    Module,
    Node,
    OpUse,
    Output,
    Role,
    Symbol,
    TensorType,
    Token,
    Value,
    diff,
    fingerprint,
    module,
)

replace = msgspec.structs.replace
F32 = TensorType(DType.f32, (4, 8))


def chain(*ops: str, names: tuple[str, ...] = ("x", "w")) -> Graph:
    """Each op takes the value before it and the second input."""
    values = [Value(i, F32) for i in range(len(ops) + 2)]
    inputs = (Input(values[0], Role.user, names[0]), Input(values[1], Role.parameter, names[1]))
    nodes = []
    for index, op in enumerate(ops):
        previous = values[index + 1] if index else values[0]
        nodes.append(Node(op, (previous, values[1], 1.0), (values[index + 2],), Location("model.py", index + 1)))
    return Graph("g", Kind.inference, inputs, tuple(nodes), (Output(values[len(ops) + 1 if ops else 0]),))


def lines(a: Graph | Module, b: Graph | Module) -> list[str]:
    return str(diff(a, b)).splitlines()


def test_a_graph_equals_itself() -> None:
    graph = chain("t.a", "t.b")
    found = diff(graph, graph)
    assert found.equal
    assert not found.names
    assert str(found) == f"equal, fingerprint {fingerprint(graph)}"


def test_names_and_lines_are_no_difference_but_are_told() -> None:
    a = chain("t.a")
    b = replace(a, name="other", nodes=tuple(replace(n, location=None) for n in a.nodes))
    assert diff(a, b).names
    assert lines(a, b) == [f"equal, fingerprint {fingerprint(a)}; only names, numbers or source lines differ"]


def test_an_inserted_node_is_one_line_and_the_edge_that_goes_through_it_another() -> None:
    assert lines(chain("t.a", "t.b", "t.c"), chain("t.a", "t.b", "t.new", "t.c")) == [
        "+ node 2: %4 = t.new(%3, %1, 1.0) : f32[4, 8]  (model.py:3)",
        "~ node 3 (t.c): argument 0: %3 (t.b) -> %4 (t.new)  (model.py:4)",
    ]


def test_a_removed_node_is_told_with_its_line() -> None:
    assert lines(chain("t.a", "t.b", "t.c"), chain("t.a", "t.c"))[0] == (
        "- node 1: %3 = t.b(%2, %1, 1.0) : f32[4, 8]  (model.py:2)"
    )


def test_two_independent_nodes_in_another_order_are_a_move() -> None:
    x, y, z, out = (Value(i, F32) for i in range(4))
    first, second = Node("t.a", (x,), (y,)), Node("t.b", (x,), (z,))
    join = Node("t.join", (y, z), (out,))
    a = Graph("g", Kind.inference, (Input(x),), (first, second, join), (Output(out),))
    assert lines(a, replace(a, nodes=(second, first, join))) == ["> node 1: %2 = t.a(%0) : f32[4, 8], was node 0"]


def test_swapped_inputs_are_a_move_and_no_change_of_their_users() -> None:
    a = chain("t.a")
    b = replace(a, inputs=a.inputs[::-1])
    assert lines(a, b) == ["> input 0: parameter f32[4, 8], was input 1"]


def test_an_attribute_a_type_and_a_range_are_named_with_both_values() -> None:
    x, y = Value(0, TensorType(DType.f32, ("b", 8))), Value(1, TensorType(DType.f32, ("b", 8)))
    node = Node("t.a", (x, 1, Token("dtype", "f32"), DimExpr("b + 1")), (y,))
    a = Graph("g", Kind.inference, (Input(x),), (node,), (Output(y),), (Symbol("b", 2, None, (0, 0)),))
    wider = Value(1, TensorType(DType.bf16, ("b", 8), (8, 1)))
    changed = replace(node, args=(x, 1.0, Token("dtype", "bf16"), DimExpr("b + 2")), results=(wider,))
    b = replace(a, nodes=(changed,), outputs=(Output(wider, Role.saved),), symbols=(Symbol("b", 2, 64, (0, 0)),))
    assert lines(a, b) == [
        "~ symbol of in0.dim0: range: [2, inf] -> [2, 64]",
        "~ node 0 (t.a): argument 1: 1 -> 1.0",
        "~ node 0 (t.a): argument 2: #dtype<f32> -> #dtype<bf16>",
        "~ node 0 (t.a): argument 3: <s0 + 1> -> <s0 + 2>",
        "~ node 0 (t.a): type of result 0: f32[s0, 8] -> bf16[s0, 8] strides[8, 1]",
        "~ output 0: role: user -> saved",
    ]


def test_inputs_with_names_are_found_again_when_others_come_before_them() -> None:
    a = chain("t.a")
    extra = Input(Value(99, F32), Role.buffer, "mean")
    b = replace(a, inputs=(extra, *a.inputs))
    assert lines(a, b) == ["+ input 0: buffer f32[4, 8]"]


def test_one_change_in_a_long_chain_of_one_op_stays_one_change() -> None:
    a = chain(*["t.a"] * 3000)
    changed = replace(a.nodes[1500], args=(*a.nodes[1500].args[:2], 2.0))
    b = replace(a, nodes=(*a.nodes[:1500], changed, *a.nodes[1501:]))
    assert lines(a, b) == ["~ node 1500 (t.a): argument 2: 1.0 -> 2.0  (model.py:1501)"]


def mutants(graph: Graph) -> Iterator[tuple[str, Graph]]:
    """The graph with one thing changed, for each thing that there is."""
    yield "kind", replace(graph, kind=Kind.backward)
    for i, item in enumerate(graph.inputs):
        swapped = (*graph.inputs[:i], replace(item, role=Role.constant), *graph.inputs[i + 1 :])
        yield f"role of input {i}", replace(graph, inputs=swapped)
    for i, node in enumerate(graph.nodes):
        for what, changed in mutated(node):
            yield f"{what} of node {i}", replace(graph, nodes=(*graph.nodes[:i], changed, *graph.nodes[i + 1 :]))
    for i, output in enumerate(graph.outputs):
        for what in ({"role": Role.saved}, {"value": 5}, {"aliases": 0}, {"target": 1}):
            outputs = (*graph.outputs[:i], replace(output, **what), *graph.outputs[i + 1 :])
            yield f"{what} of output {i}", replace(graph, outputs=outputs)
    for i, symbol in enumerate(graph.symbols):
        symbols = (*graph.symbols[:i], replace(symbol, lo=symbol.lo + 1), *graph.symbols[i + 1 :])
        yield f"range of symbol {i}", replace(graph, symbols=symbols)


def mutated(node: Node) -> Iterator[tuple[str, Node]]:
    yield "op", replace(node, op="test.other.default")
    for i, arg in enumerate(node.args):
        for other in (7, 7.0, True, "7", None, (arg,), Token("dtype", "i8")):
            yield f"argument {i} as {other!r}", replace(node, args=(*node.args[:i], other, *node.args[i + 1 :]))


def test_a_graph_with_everything_equals_itself(rich_graph: Graph) -> None:
    assert diff(rich_graph, rich_graph).equal


def test_there_are_differences_exactly_where_fingerprints_differ(rich_graph: Graph) -> None:
    count = 0
    for what, mutant in mutants(rich_graph):
        found = diff(rich_graph, mutant)
        assert found.equal == (fingerprint(rich_graph) == fingerprint(mutant)), what
        assert found.equal == (not found.differences), what
        count += not found.equal
    assert count > 100


@pytest.mark.parametrize("change", list(Change))
def test_each_kind_of_change_has_a_mark_of_its_own(change: Change) -> None:
    marks = {"added": "+", "removed": "-", "moved": ">", "changed": "~"}
    a, b = chain("t.a", "t.b", "t.c"), chain("t.a", "t.new", "t.c", "t.d")
    for difference in diff(a, b).differences:
        assert str(difference)[0] == marks[difference.change]
    assert change in marks


def test_modules_are_compared_graph_by_graph_and_op_by_op() -> None:
    a = module(chain("t.a"), replace(chain("t.b"), name="h"), producer={})
    newer = {**a.ops, "t.a": OpUse(2, a.ops["t.a"].signature)}
    b = replace(a, graphs=(a.graphs[0], replace(chain("t.c"), name="h")), ops={**newer, "t.c": OpUse(1)})
    del b.ops["t.b"]
    assert lines(a, b) == [
        "~ op t.a: version: 1 -> 2",
        "- op t.b: version 1",
        "+ op t.c: version 1",
        "- graph 1 node 0: %2 = t.b(%0, %1, 1.0) : f32[4, 8]  (model.py:1)",
        "+ graph 1 node 0: %2 = t.c(%0, %1, 1.0) : f32[4, 8]  (model.py:1)",
        "~ graph 1 output 0: value: %2 (t.b) -> %2 (t.c)",
    ]
    assert diff(a, replace(a, producer={"another": "1"})).names


def test_a_change_inside_of_a_region_is_told_with_its_place() -> None:
    def outer(op: str) -> Graph:
        body = replace(chain(op), kind=Kind.region, name="body")
        x, w, y = (Value(i, F32) for i in range(3))
        node = Node("t.loop", (x, w), (y,), None, (body,))
        return Graph("g", Kind.inference, (Input(x), Input(w)), (node,), (Output(y),))

    assert lines(outer("t.a"), outer("t.b"))[0].startswith("- node 0 (t.loop) region 0: node 0: %2 = t.a(")
