from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from fairlead.ir import (
    Complex,
    DimExpr,
    DType,
    Graph,
    Input,
    Kind,
    Location,
    Node,
    Output,
    Role,
    Symbol,
    Token,
    Value,
    dims,
    fingerprint,
    module,
)

replace = msgspec.structs.replace


def _renamed(graph: Graph, names: dict[str, str], shift: int) -> Graph:
    """The same graph with other names, other numbers of its values and no locations."""

    def value(v: Value) -> Value:
        if hasattr(v.type, "shape"):
            shape = tuple(dims.rename(d, names) for d in v.tensor.shape)
            return Value(v.id * 3 + shift, replace(v.tensor, shape=shape))
        return Value(v.id * 3 + shift, v.type)

    def argument(a: Any) -> Any:
        match a:
            case Value():
                return value(a)
            case DimExpr(expr=expr):
                return DimExpr(str(dims.rename(expr, names)))
            case tuple():
                return tuple(map(argument, a))
        return a

    return Graph(
        "another_name",
        graph.kind,
        tuple(replace(i, value=value(i.value), name=f"another_{i.name}") for i in graph.inputs),
        tuple(
            Node(
                n.op,
                tuple(map(argument, n.args)),
                tuple(r and value(r) for r in n.results),
                Location("elsewhere.py", 1),
            )
            for n in graph.nodes
        ),
        tuple(replace(o, value=argument(o.value)) for o in graph.outputs),
        tuple(replace(s, name=names[s.name]) for s in reversed(graph.symbols)),
    )


def test_names_numbers_and_locations_do_not_enter_the_fingerprint(rich_graph: Graph) -> None:
    assert fingerprint(_renamed(rich_graph, {"b": "n", "n": "b"}, 5)) == fingerprint(rich_graph)
    assert fingerprint(_renamed(rich_graph, {"b": "zz", "n": "aa"}, 0)) == fingerprint(rich_graph)


def test_the_fingerprint_is_this_one(small_graph: Graph) -> None:
    """Stored artifacts are found by it: it changes only together with `IR_VERSION`."""
    assert fingerprint(small_graph) == "6cbd362cd672cfead487891390bf2a4f2650d5a79627390028a735aec420c8e5"


def test_the_canonical_form_is_what_the_specification_says(small_graph: Graph) -> None:
    """Written down from docs/ir.md alone: renamed symbols, numbers from 0, no names, no lines, tables by first use."""
    form = [
        "",
        "inference",
        [["s0", 1, None, 0, 0]],
        [["f32", ["s0", 2], None, "cpu"], ["f32", [3, 2], None, "cpu"], ["f32", ["s0", 3], None, "cpu"]],
        ["aten.linear.default", "aten.relu.default"],
        [None],
        [[0, 0, "user", ""], [1, 1, "parameter", ""]],
        [[0, [0, 1, -1], [2, 2], []], [1, [2], [3, 2], []]],
        [[3, "user", None, None]],
    ]
    data = b"fairlead graph 1.0\0" + msgspec.msgpack.encode(form)
    assert fingerprint(small_graph) == hashlib.sha256(data).hexdigest()
    ops = [["aten.linear.default", 1], ["aten.relu.default", 1]]
    data = b"fairlead module 1.0\0" + msgspec.msgpack.encode([ops, [form]])
    assert fingerprint(module(small_graph)) == hashlib.sha256(data).hexdigest()


def test_a_dtype_as_an_argument_hashes_like_its_name(small_graph: Graph) -> None:
    prints = {fingerprint(_nth_argument(1, 0, name)(small_graph)) for name in (DType.f32, "f32")}
    assert len(prints) == 1


def _nth_argument(node: int, argument: int, new: object) -> Callable[[Graph], Graph]:
    def change(graph: Graph) -> Graph:
        old = graph.nodes[node]
        args = (*old.args[:argument], new, *old.args[argument + 1 :])
        return replace(graph, nodes=(*graph.nodes[:node], replace(old, args=args), *graph.nodes[node + 1 :]))

    return change


def _input(index: int, **changes: object) -> Callable[[Graph], Graph]:
    def change(graph: Graph) -> Graph:
        new = replace(graph.inputs[index], **changes)
        return replace(graph, inputs=(*graph.inputs[:index], new, *graph.inputs[index + 1 :]))

    return change


def _input_type(index: int, **changes: object) -> Callable[[Graph], Graph]:
    def change(graph: Graph) -> Graph:
        value = graph.inputs[index].value
        return _input(index, value=replace(value, type=replace(value.type, **changes)))(graph)

    return change


def _output(index: int, **changes: object) -> Callable[[Graph], Graph]:
    def change(graph: Graph) -> Graph:
        new = replace(graph.outputs[index], **changes)
        return replace(graph, outputs=(*graph.outputs[:index], new, *graph.outputs[index + 1 :]))

    return change


def _symbol(index: int, **changes: object) -> Callable[[Graph], Graph]:
    def change(graph: Graph) -> Graph:
        new = replace(graph.symbols[index], **changes)
        return replace(graph, symbols=(*graph.symbols[:index], new, *graph.symbols[index + 1 :]))

    return change


def _operand(old: int, new: int) -> Callable[[Graph], Graph]:
    def change(graph: Graph) -> Graph:
        value = next(i.value for i in graph.inputs if i.value.id == new)
        args = tuple(value if isinstance(a, Value) and a.id == old else a for a in graph.nodes[0].args)
        return replace(graph, nodes=(replace(graph.nodes[0], args=args), *graph.nodes[1:]))

    return change


MUTANTS: dict[str, Callable[[Graph], Graph]] = {
    "kind": lambda g: replace(g, kind=Kind.backward),
    "an op": lambda g: replace(g, nodes=(replace(g.nodes[0], op="aten.linear.out"), *g.nodes[1:])),
    "an operand": _operand(1, 2),
    "none for an operand": _nth_argument(0, 1, None),
    "a bool": _nth_argument(1, 1, False),
    "1 for true": _nth_argument(1, 1, 1),
    "1.0 for true": _nth_argument(1, 1, 1.0),
    "an integer": _nth_argument(1, 2, 2),
    "a float": _nth_argument(1, 4, 1.0),
    "a number for nan": _nth_argument(1, 5, 0.0),
    "-0.0 for 0.0": _nth_argument(1, 5, -0.0),
    "a string": _nth_argument(1, 6, "other"),
    "an expression": _nth_argument(1, 7, DimExpr("b + n")),
    "a dtype": _nth_argument(1, 8, Token("dtype", "f16")),
    "a kind of token": _nth_argument(1, 8, Token("layout", "bf16")),
    "a complex number": _nth_argument(1, 10, Complex(0.0, float("-inf"))),
    "a list": _nth_argument(1, 11, (1,)),
    "a nested list": _nth_argument(1, 11, ((),)),
    "one argument fewer": lambda g: replace(g, nodes=(replace(g.nodes[0], args=g.nodes[0].args[:2]), *g.nodes[1:])),
    "a node more": lambda g: replace(g, nodes=(*g.nodes, g.nodes[2])),
    "a node fewer": lambda g: replace(g, nodes=g.nodes[:2]),
    "a result": lambda g: replace(g, nodes=(g.nodes[0], g.nodes[1], replace(g.nodes[2], results=()))),
    "a dtype of an input": _input_type(0, dtype="f16"),
    "a size": _input_type(1, shape=(16, 9)),
    "a symbol for another": _input_type(0, shape=("n", 8)),
    "strides": _input_type(1, strides=(8, 1)),
    "no strides": _input_type(1, strides=None),
    "a device": _input_type(2, device="xpu:0"),
    "a role": _input(1, role=Role.buffer),
    "an input more": lambda g: replace(g, inputs=(*g.inputs, Input(Value(99, g.inputs[0].value.type)))),
    "the target of a mutation": _output(0, target=1),
    "an alias": _output(1, aliases=None),
    "the role of an output": _output(5, role=Role.user),
    "the number that is returned": _output(4, value=5),
    "the expression that is returned": _output(3, value=DimExpr("b")),
    "an output more": lambda g: replace(g, outputs=(*g.outputs, Output(None))),
    "the order of outputs": lambda g: replace(g, outputs=g.outputs[::-1]),
    "the lower end of a range": _symbol(0, lo=3),
    "the upper end of a range": _symbol(0, hi=None),
    "a symbol more": lambda g: replace(g, symbols=(*g.symbols, Symbol("q", 0, 1, (0, 1)))),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_any_change_of_meaning_changes_the_fingerprint(rich_graph: Graph, mutant: str) -> None:
    assert fingerprint(MUTANTS[mutant](rich_graph)) != fingerprint(rich_graph)


def test_no_two_mutants_share_a_fingerprint(rich_graph: Graph) -> None:
    prints = [fingerprint(change(rich_graph)) for change in MUTANTS.values()]
    assert len(set(prints)) == len(MUTANTS)


def _region(change: Callable[[Graph], Graph], index: int = 0) -> Callable[[Graph], Graph]:
    """The same change in a region of the first node."""

    def changed(graph: Graph) -> Graph:
        regions = graph.nodes[0].regions
        regions = (*regions[:index], change(regions[index]), *regions[index + 1 :])
        return replace(graph, nodes=(replace(graph.nodes[0], regions=regions), *graph.nodes[1:]))

    return changed


REGION_MUTANTS: dict[str, Callable[[Graph], Graph]] = {
    "the order of regions": lambda g: replace(g, nodes=(replace(g.nodes[0], regions=g.nodes[0].regions[::-1]),)),
    "a region fewer": lambda g: replace(g, nodes=(replace(g.nodes[0], regions=g.nodes[0].regions[:1]),)),
    "an op of a region": _region(lambda r: replace(r, nodes=(replace(r.nodes[0], op="hop.scan.default"),))),
    "an op two regions deep": _region(
        _region(lambda r: replace(r, nodes=(replace(r.nodes[0], op="aten.abs.default"),)))
    ),
    "an output of a region": _region(lambda r: replace(r, outputs=()), 1),
    "a type in a region": _region(_input_type(0, shape=("b", 3)), 1),
}


def test_any_change_in_a_region_changes_the_fingerprint(nested_graph: Graph) -> None:
    prints = {fingerprint(change(nested_graph)) for change in REGION_MUTANTS.values()}
    assert len(prints | {fingerprint(nested_graph)}) == len(REGION_MUTANTS) + 1


def test_names_and_numbers_in_regions_do_not_enter_the_fingerprint(nested_graph: Graph) -> None:
    x = Value(7, nested_graph.inputs[1].value.type)
    same = Graph("renamed", Kind.region, (Input(x, name="x"),), (), (Output(x),))
    assert fingerprint(_region(lambda r: same, 1)(nested_graph)) == fingerprint(nested_graph)


def test_the_ordinals_of_devices_do_not_enter_the_fingerprint_but_which_are_the_same_does(rich_graph: Graph) -> None:
    def on(first: str, second: str) -> str:
        return fingerprint(_input_type(0, device=first)(_input_type(1, device=second)(rich_graph)))

    assert on("xpu:3", "xpu:5") == on("xpu:0", "xpu:1") != on("xpu:0", "xpu:0")
    assert len({on("xpu", "xpu"), on("xpu:0", "xpu:0"), on("mps:0", "mps:0")}) == 3
