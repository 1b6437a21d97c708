"""Graphs split by support: who takes a node, in how few Parts, and that the Parts together are the whole."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.backend import API_VERSION, Capabilities, Level, NoOptions, Probe, Support
from fairlead.interpret import run
from fairlead.ir import (
    Dim,
    DimExpr,
    DType,
    Graph,
    Input,
    Kind,
    Location,
    Node,
    Output,
    Role,
    ScalarType,
    Symbol,
    TensorType,
    Token,
    Value,
    to_text,
    verify,
)
from fairlead.partition import NO_RANDOM_NUMBERS, Part, assign, split, verdict
from fairlead.placement import Why


def f32(*shape: Dim) -> TensorType:
    return TensorType(DType.f32, shape)


def chain(owners: str) -> tuple[Graph, list[str]]:
    """``x`` negated again and again, each time by the next of the backends a, b, ...; "e" is eager."""
    x = Value(0, f32(2))
    nodes = [Node("aten.neg.default", (Value(i, x.type),), (Value(i + 1, x.type),)) for i in range(len(owners))]
    graph = Graph("g", Kind.inference, (Input(x),), tuple(nodes), (Output(Value(len(owners), x.type)),))
    return verify(graph), [{"e": "eager"}.get(o, o) for o in owners]


def shape_of(parts: Sequence[Part]) -> list[tuple[str, int]]:
    return [(p.backend, len(p.graph.nodes)) for p in parts]


class Fake:
    """A backend that takes the ops it is told, and can do all the rest."""

    api_version = API_VERSION
    options_type = NoOptions

    def __init__(self, *ops: str, **capabilities: Any) -> None:
        self.name = "fake"
        self.ops = ops
        general: dict[str, Any] = {"devices": ("cpu",), "dtypes": ("f32",), "training": True, "dynamic_shapes": True}
        self.capabilities = Capabilities(**(general | capabilities))

    def probe(self) -> Probe:
        return Probe(ok=True)

    def supports(self, node: Node, /) -> Support:
        return Support.yes() if node.op in self.ops else Support.no(f"no rule for {node.op}", Level.PLANNED)

    def compile(self, graph: Graph, options: NoOptions, constants: Mapping[int, torch.Tensor], /) -> Any:
        raise NotImplementedError


NEG = Node("aten.neg.default", (Value(0, f32(2)),), (Value(1, f32(2)),), Location("model.py", 3))


ON_GPU = TensorType(DType.f32, (2,), None, "cuda:1")


def neg_of(type_: TensorType) -> Node:
    return Node("aten.neg.default", (Value(0, type_),), (Value(1, type_),))


@pytest.mark.parametrize(
    ("backend", "node", "kind", "reason"),
    [
        (Fake("aten.neg.default"), NEG, "inference", None),
        (Fake(), NEG, "inference", "no rule for aten.neg.default"),
        (Fake("aten.neg.default", training=False), NEG, "inference", None),
        (Fake("aten.neg.default", training=False), NEG, "forward", "no training graphs"),
        (Fake("aten.neg.default", training=False), NEG, "backward", "no training graphs"),
        (Fake("aten.neg.default"), neg_of(TensorType(DType.f64, (2,))), "inference", "dtype f64"),
        (Fake("aten.neg.default"), neg_of(ON_GPU), "inference", "device cuda"),
        (Fake("aten.neg.default", devices=("cuda",)), neg_of(ON_GPU), "inference", None),
        (Fake("aten.neg.default", devices=("*",)), neg_of(ON_GPU), "inference", None),
        (Fake("aten.neg.default"), neg_of(f32("b")), "inference", None),
        (Fake("aten.neg.default", dynamic_shapes=False), neg_of(f32("b")), "inference", "dynamic shapes"),
        (Fake("aten.neg.default", dynamic_shapes=False), NEG, "inference", None),
    ],
)  # fmt: skip
def test_capabilities_come_before_supports(backend: Fake, node: Node, kind: str, reason: str | None) -> None:
    answer = verdict(backend, node, kind)
    assert (answer.accepted, answer.reason) == (reason is None, reason or "")


def branch(op: str) -> Node:
    x, y = Value(0, f32(2)), Value(1, f32(2))
    inner = Node(op, (x,), (y,))
    region = Graph("region", Kind.region, (Input(x),), (inner,), (Output(y),))
    return Node("hop.cond", (1, (x,)), (y,), None, (region, region))


def test_control_flow_needs_a_backend_that_takes_all_that_is_in_it() -> None:
    assert verdict(Fake("aten.neg.default"), branch("aten.neg.default"), "inference").reason == "no rule for hop.cond"
    both = Fake("hop.cond", "aten.neg.default")
    assert verdict(both, branch("aten.neg.default"), "inference").accepted
    assert verdict(both, branch("aten.exp.default"), "inference").reason == "in a region: no rule for aten.exp.default"
    assert verdict(both, branch("aten.rand_like.default"), "inference") is NO_RANDOM_NUMBERS


def test_the_placement_of_control_flow_says_what_is_in_it() -> None:
    node = branch("aten.neg.default")
    graph = Graph("g", Kind.inference, (Input(Value(0, f32(2))),), (node,), (Output(Value(1, f32(2))),))
    (placed,) = assign(graph, "a", (), lambda name, node: Support.yes()).nodes
    assert placed.within == ("aten.neg.default", "aten.neg.default")


def test_numbers_that_follow_from_python_floats_are_no_fallback() -> None:
    number, row = TensorType(DType.f64, ()), TensorType(DType.f64, (2,))
    x, y, z = Value(0, number), Value(1, number), Value(2, row)
    nodes = (Node("aten.neg.default", (x,), (y,)), Node("aten.expand.default", (y, (2,), False), (z,)))
    graph = Graph("g", Kind.inference, (Input(x),), nodes, (Output(z), Output(y)))
    fake = Fake("aten.neg.default", "aten.expand.default")
    found = assign(graph, "a", ("eager",), lambda name, n: verdict(fake, n, "inference"))
    assert [(n.why, n.reason) for n in found.nodes] == [
        (Why.number, "one number, which torch computes"),
        (Why.view, "an output is a view"),
    ]


def draw(result: int, *operands: Value) -> Node:
    if operands:
        return Node("aten.bernoulli.default", (*operands, None), (Value(result, f32(2)),))
    args = ((2,), 0.5, Token("dtype", "f32"), Token("device", "cpu"))
    return Node("nn.bernoulli.default", args, (Value(result, f32(2)),))


def test_a_backend_that_draws_no_random_numbers_is_not_asked_for_them() -> None:
    assert verdict(Fake("nn.bernoulli.default"), draw(1), "inference") is NO_RANDOM_NUMBERS
    assert verdict(Fake("nn.bernoulli.default", rng=True), draw(1), "inference").accepted
    drawing = Fake("nn.bernoulli.default", rng=True)
    assert verdict(drawing, draw(1), "inference", eager_rng=True) is NO_RANDOM_NUMBERS
    assert verdict(Fake(training=False), draw(1), "forward", eager_rng=True) is NO_RANDOM_NUMBERS


def test_each_node_goes_to_the_first_backend_that_takes_it() -> None:
    x = Value(0, f32(2))
    ops = ["aten.neg.default", "aten.exp.default", "aten.sin.default", "aten.cos.default"]
    nodes = [Node(op, (Value(i, x.type),), (Value(i + 1, x.type),), NEG.location) for i, op in enumerate(ops)]
    graph = Graph("g", Kind.inference, (Input(x),), tuple(nodes), (Output(Value(4, x.type)),))
    backends = {"a": Fake(ops[0]), "b": Fake(ops[0], ops[1]), "c": Fake(ops[1], ops[2])}
    found = assign(graph, "a", ("b", "c"), lambda name, node: verdict(backends[name], node, "inference"))
    assert found.backends == ("a", "b", "c", "")
    assert [(n.op, n.backend, n.why, n.reason, n.location) for n in found.nodes] == [
        (ops[0], "a", Why.native, "", NEG.location),
        (ops[1], "b", Why.declined, "no rule for aten.exp.default", NEG.location),
        (ops[2], "c", Why.declined, "no rule for aten.sin.default", NEG.location),
        (ops[3], "", Why.declined, "no rule for aten.cos.default", NEG.location),
    ]


def test_a_decline_without_a_reason_says_so() -> None:
    graph, _ = chain("a")
    found = assign(graph, "a", (), lambda name, node: Support.no(""))
    assert found.nodes[0].reason == "no reason given"


def test_random_numbers_are_drawn_by_torch_and_not_declined() -> None:
    out = Value(1, f32(2))
    graph = Graph("g", Kind.inference, (), (draw(1),), (Output(out),))
    found = assign(graph, "a", (), lambda name, node: NO_RANDOM_NUMBERS)
    assert [(n.backend, n.why) for n in found.nodes] == [("eager", Why.random)]


def test_a_view_that_an_output_is_is_made_by_torch_and_not_declined() -> None:
    x, y, z = Value(0, f32(2, 3)), Value(1, f32(2, 3)), Value(2, f32(3, 2))
    nodes = (Node("aten.neg.default", (x,), (y,)), Node("aten.permute.default", (y, (1, 0)), (z,)))
    graph = Graph("g", Kind.inference, (Input(x),), nodes, (Output(z),))
    found = assign(graph, "a", (), lambda name, node: Support.yes())
    assert [(n.backend, n.why) for n in found.nodes] == [("a", Why.native), ("eager", Why.view)]
    assert assign(graph, "eager", (), lambda name, node: Support.yes()).backends == ("eager", "eager")


def test_views_that_outputs_are_come_last_and_in_one_part() -> None:
    x, y = Value(0, f32(2, 3)), Value(1, f32(2, 3))
    left, right = Value(2, f32(3, 2)), Value(3, f32(3, 2))
    nodes = (
        Node("aten.permute.default", (x, (1, 0)), (left,)),
        Node("aten.neg.default", (x,), (y,)),
        Node("aten.permute.default", (y, (1, 0)), (right,)),
    )
    graph = verify(Graph("g", Kind.inference, (Input(x),), nodes, (Output(left), Output(right))))
    owners = assign(graph, "a", (), lambda name, node: Support.yes()).backends
    assert shape_of(split(graph, owners, "a")) == [("a", 1), ("eager", 2)]


def test_what_one_backend_takes_is_one_part() -> None:
    graph, owners = chain("aaa")
    (part,) = split(graph, owners, "a")
    assert to_text(part.graph) == to_text(graph).replace("graph @g", "graph @g_0").replace(
        "out %3 user", "out %3 intermediate"
    )


def test_a_chain_alternates() -> None:
    graph, owners = chain("aabbbbba")
    assert shape_of(split(graph, owners, "a")) == [("a", 2), ("b", 5), ("a", 1)]


def test_declined_parts_that_are_too_small_to_fuse_run_eagerly() -> None:
    graph, owners = chain("abbba")
    assert shape_of(split(graph, owners, "a")) == [("a", 1), ("eager", 3), ("a", 1)]
    graph, owners = chain("abbbba")
    assert shape_of(split(graph, owners, "a")) == [("a", 1), ("b", 4), ("a", 1)]


def test_small_parts_next_to_each_other_are_one() -> None:
    graph, owners = chain("abecca")
    assert shape_of(split(graph, owners, "a")) == [("a", 1), ("eager", 4), ("a", 1)]


def test_the_backend_that_was_asked_for_takes_small_parts_too() -> None:
    graph, owners = chain("abbbb")
    assert shape_of(split(graph, owners, "a")) == [("a", 1), ("b", 4)]


def independent(owners: str, edges: Sequence[tuple[int, int]]) -> tuple[Graph, list[str]]:
    """One node for each owner; an edge leads from the result of one to an operand of another. All are outputs."""
    x = Value(0, f32(2))
    values = [Value(i + 1, x.type) for i in range(len(owners))]
    nodes = []
    for i, value in enumerate(values):
        read = tuple(values[a] for a, b in edges if b == i) or (x,)
        nodes.append(Node("aten.stack.default", (read, 0), (value,)))
    graph = Graph("g", Kind.inference, (Input(x),), tuple(nodes), tuple(map(Output, values)))
    return verify(graph), [{"e": "eager"}.get(o, o) for o in owners]


@pytest.mark.parametrize(
    ("owners", "edges", "count"),
    [
        ("aeae", [], 2),
        ("aeaeae", [(0, 2), (2, 4), (1, 3), (3, 5)], 2),
        ("eae", [(1, 2)], 2),
        ("aea", [(1, 2)], 2),
        ("eaea", [(1, 2), (0, 3)], 3),
        ("aeaea", [(0, 1), (1, 2), (2, 3), (3, 4)], 5),
        ("eaae", [(0, 1), (2, 3)], 3),
    ],
)
def test_there_are_as_few_parts_as_two_backends_need(owners: str, edges: list[tuple[int, int]], count: int) -> None:
    graph, names = independent(owners, edges)
    assert len(split(graph, names, "a")) == count


def test_draws_keep_the_order_of_the_program_although_a_later_one_is_ready_first() -> None:
    x, y = Value(0, f32(2)), Value(1, f32(2))
    nodes = (Node("aten.sigmoid.default", (x,), (y,)), draw(2, y), draw(3))
    graph = verify(Graph("g", Kind.inference, (Input(x),), nodes, tuple(Output(Value(i, x.type)) for i in (2, 3))))
    parts = split(graph, ("a", "eager", "eager"), "a")
    assert [n.op for p in parts for n in p.graph.nodes] == [n.op for n in nodes]


def test_draws_of_several_backends_keep_the_order_of_the_program() -> None:
    nodes = tuple(draw(i) for i in range(4))
    graph = Graph("g", Kind.inference, (), nodes, tuple(Output(Value(i, f32(2))) for i in range(4)))
    parts = split(verify(graph), ("a", "eager", "a", "eager"), "a")
    assert [n.results[0].id for p in parts for n in p.graph.nodes if n.results[0]] == [0, 1, 2, 3]


def reduced(result: int, operand: Value) -> Node:
    return Node("_c10d_functional.all_reduce.default", (operand, "sum", "0@2"), (Value(result, f32(2)),))


def test_collectives_keep_the_order_of_the_program_although_a_later_one_is_ready_first() -> None:
    x, y = Value(0, f32(2)), Value(1, f32(2))
    nodes = (Node("aten.neg.default", (x,), (y,)), reduced(2, y), reduced(3, x), draw(4))
    graph = Graph("g", Kind.inference, (Input(x),), nodes, tuple(Output(Value(i, f32(2))) for i in (2, 3, 4)))
    parts = split(graph, ("a", "eager", "eager", "eager"), "a")
    assert [n.op for p in parts for n in p.graph.nodes].index("aten.neg.default") < 2, "only the draw may come first"
    assert [n.result.id for p in parts for n in p.graph.nodes if n.op.startswith("_c10d")] == [2, 3]


def test_views_of_inputs_are_made_in_the_part_that_reads_them() -> None:
    x, w = Value(0, f32(2, 3)), Value(1, f32(4, 3))
    t = Value(2, f32(3, 4))
    u, y, z = (Value(k, f32(*size)) for k, size in ((3, (1, 3, 4)), (4, (2, 3)), (5, (2, 4))))
    nodes = (
        Node("aten.permute.default", (w, (1, 0)), (t,)),
        Node("aten.unsqueeze.default", (t, 0), (u,)),
        Node("aten.neg.default", (x,), (y,)),
        Node("aten.mm.default", (y, t), (z,)),
    )
    graph = verify(Graph("g", Kind.backward, (Input(x), Input(w)), nodes, (Output(z), Output(u))))
    (first, inside), (second, outside) = [
        (p.backend, [n.op for n in p.graph.nodes]) for p in split(graph, ["a", "a", "eager", "a"], "a")
    ]
    assert (first, inside) == ("eager", ["aten.neg.default"])
    assert (second, outside) == ("a", ["aten.permute.default", "aten.unsqueeze.default", "aten.mm.default"])


def test_communication_that_a_backend_does_not_have_is_torchs_and_not_declined() -> None:
    x = Value(0, f32(2))
    graph = Graph("g", Kind.inference, (Input(x),), (reduced(1, x),), (Output(Value(1, f32(2))),))
    found = assign(graph, "a", (), lambda name, node: Support.no("no rule"))
    assert [(n.backend, n.why, n.reason) for n in found.nodes] == [
        ("eager", Why.collective, "torch.distributed communicates")
    ]


def test_a_part_knows_which_results_are_but_written_to_its_inputs() -> None:
    x, total = Input(Value(0, f32(2)), Role.user, "x"), Input(Value(1, f32(2)), Role.buffer, "total")
    other = Input(Value(2, f32(2)), Role.buffer, "other")
    sum_, twice, result = (Value(i, f32(2)) for i in (3, 4, 5))
    nodes = (
        Node("aten.add.Tensor", (total.value, x.value, 1), (sum_,)),
        Node("aten.mul.Tensor", (x.value, 2), (twice,)),
        Node("aten.exp.default", (twice,), (result,)),
    )
    outputs = (Output(sum_, Role.mutation, target=1), Output(twice, Role.mutation, target=2), Output(result))
    graph = verify(Graph("g", Kind.inference, (x, total, other), nodes, outputs))
    (whole,) = split(graph, ("a", "a", "a"), "a")
    assert [(o.role, o.target) for o in verify(whole.graph).outputs] == [
        (Role.mutation, [i.name for i in whole.graph.inputs].index("total")),
        (Role.intermediate, None),  # its input is not one of the Part's
        (Role.intermediate, None),
    ]
    first, _ = split(graph, ("a", "a", "eager"), "a")
    assert [o.role for o in first.graph.outputs] == [Role.mutation, Role.intermediate]  # another Part reads the second


def test_what_another_part_reads_may_not_be_written_early() -> None:
    total = Input(Value(0, f32(2)), Role.buffer, "total")
    more, before = Value(1, f32(2)), Value(2, f32(2))
    nodes = (Node("aten.add.Tensor", (total.value, 1, 1), (more,)), Node("aten.exp.default", (total.value,), (before,)))
    outputs = (Output(more, Role.mutation, target=0), Output(before))
    graph = verify(Graph("g", Kind.inference, (total,), nodes, outputs))
    (whole,) = split(graph, ("a", "a"), "a")
    assert [o.role for o in whole.graph.outputs] == [Role.mutation, Role.intermediate]
    parts = split(graph, ("a", "eager"), "a")
    assert [o.role for part in parts for o in part.graph.outputs] == [Role.intermediate] * 2


def test_a_part_has_inputs_and_outputs_of_its_own() -> None:
    x, w = Input(Value(0, f32("b", 2)), Role.user, "x"), Input(Value(1, f32(2)), Role.parameter, "w")
    h, y, z = (Value(i, f32("b", 2)) for i in (2, 3, 4))
    nodes = (
        Node("aten.mul.Tensor", (x.value, w.value), (h,)),
        Node("aten.exp.default", (h,), (y,)),
        Node("aten.add.Tensor", (y, h, 1), (z,)),
    )
    graph = Graph("g", Kind.inference, (x, w), nodes, (Output(z), Output(h)), (Symbol("b", 2, None, (0, 0)),))
    first, second, third = split(verify(graph), ("a", "eager", "a"), "a")
    assert to_text(verify(first.graph)).splitlines()[1:] == [
        "graph @g_0 inference {",
        '  in %0 user "x" : f32[b, 2]',
        '  in %1 parameter "w" : f32[2]',
        "  %2 = aten.mul.Tensor(%0, %1) : f32[b, 2]",
        "  out %2 intermediate",
        "}",
    ]
    assert to_text(verify(second.graph)).splitlines() == [
        "symbol b in [2, inf] from in0.dim0",
        "graph @g_1 inference {",
        '  in %2 intermediate "" : f32[b, 2]',
        "  %3 = aten.exp.default(%2) : f32[b, 2]",
        "  out %3 intermediate",
        "}",
    ]
    assert [i.value.id for i in verify(third.graph).inputs] == [3, 2]
    assert third.graph.symbols == (Symbol("b", 2, None, (0, 0)),)


def test_a_symbol_that_no_input_shows_is_read_from_the_graph_s_own_input() -> None:
    n = Input(Value(0, ScalarType(DType.i64)), Role.symbol, "n")
    x, h, y = Value(1, f32("n")), Value(2, f32("2*n")), Value(3, f32("2*n"))
    nodes = (Node("aten.repeat.default", (x, (2,)), (h,)), Node("aten.exp.default", (h,), (y,)))
    graph = Graph("g", Kind.inference, (n, Input(x)), nodes, (Output(y),), (Symbol("n", 2, 9, (0, None)),))
    first, second = split(verify(graph), ("a", "eager"), "a")
    assert first.graph.symbols == (Symbol("n", 2, 9, (0, 0)),)
    assert [i.value.id for i in second.graph.inputs] == [2, 0]
    assert verify(second.graph).symbols == (Symbol("n", 2, 9, (1, None)),)


def test_an_input_that_is_added_for_one_symbol_may_show_another() -> None:
    x, h, y = Value(0, f32("n", "m")), Value(1, f32("2*n")), Value(2, f32("2*n"))
    nodes = (Node("vendor.sums.default", (x,), (h,)), Node("aten.exp.default", (h,), (y,)))
    symbols = (Symbol("n", 2, None, (0, 0)), Symbol("m", 2, None, (0, 1)))
    graph = Graph("g", Kind.inference, (Input(x),), nodes, (Output(y),), symbols)
    _, second = split(verify(graph), ("a", "eager"), "a")
    assert verify(second.graph).symbols == (Symbol("n", 2, None, (1, 0)), Symbol("m", 2, None, (1, 1)))


def test_symbols_in_arguments_strides_and_results_count_as_used() -> None:
    n = Input(Value(0, ScalarType(DType.i64)), Role.symbol, "n")
    out = Value(1, f32("n"))
    args = ((DimExpr("n"),), 1.0, Token("dtype", "f32"), Token("layout", "strided"), Token("device", "cpu"), False)
    nodes = (Node("aten.full.default", args, (out,)),)
    graph = Graph("g", Kind.inference, (n,), nodes, (Output(out),), (Symbol("n", 2, None, (0, None)),))
    (part,) = split(verify(graph), ("a",), "a")
    assert verify(part.graph).inputs == (n,)


def test_a_graph_without_nodes_has_no_parts() -> None:
    x = Value(0, f32(2))
    assert split(Graph("g", Kind.inference, (Input(x),), (), (Output(x),)), (), "a") == ()


OPS = {
    "aten.neg.default": 1,
    "aten.exp.default": 1,
    "aten.add.Tensor": 2,
    "aten.mul.Tensor": 2,
    "aten.view.default": 1,
    "nn.bernoulli.default": 0,
}


@st.composite
def programs(draw: st.DrawFn) -> tuple[Graph, list[str]]:
    """A random graph over one symbol, with a random backend for each node and random outputs."""
    type_ = f32("n", 2)
    inputs = [Value(0, type_), Value(1, type_)]
    values, nodes, owners = list(inputs), [], []
    for i in range(draw(st.integers(1, 14))):
        op = draw(st.sampled_from(sorted(OPS)))
        operands = [draw(st.sampled_from(values)) for _ in range(OPS[op])]
        args: tuple[Any, ...] = (*operands, 1) if op == "aten.add.Tensor" else tuple(operands)
        if op == "aten.view.default":
            args = (*operands, (DimExpr("n"), 2))
        if op == "nn.bernoulli.default":
            args = ((DimExpr("n"), 2), 0.5, Token("dtype", "f32"), Token("device", "cpu"))
        values.append(Value(i + 2, type_))
        nodes.append(Node(op, args, (values[-1],)))
        owners.append(draw(st.sampled_from(["a", "b", "eager"])))
    shown = draw(st.lists(st.sampled_from(values), min_size=1, max_size=3))
    symbols = (Symbol("n", 2, None, (0, 0)),)
    graph = Graph("g", Kind.inference, tuple(map(Input, inputs)), tuple(nodes), tuple(map(Output, shown)), symbols)
    return verify(graph), owners


@settings(derandomize=True, deadline=None, max_examples=60)
@given(programs())
def test_the_parts_in_order_compute_what_the_whole_does(program: tuple[Graph, list[str]]) -> None:
    graph, owners = program
    parts = split(graph, owners, "a")
    assert sorted(n.results[0].id for p in parts for n in p.graph.nodes if n.results[0]) == list(
        range(2, 2 + len(graph.nodes))
    )
    assert all(x.backend != y.backend for x, y in itertools.pairwise(parts))
    inputs = [torch.rand(3, 2), torch.rand(3, 2)]
    torch.manual_seed(0)
    wanted = run(graph, inputs)
    known: dict[int, Any] = {i.value.id: x for i, x in zip(graph.inputs, inputs, strict=True)}
    torch.manual_seed(0)
    for part in parts:
        made = run(verify(part.graph), [known[i.value.id] for i in part.graph.inputs])
        known.update((v.id, t) for v, t in zip(part.graph.output_values(), made, strict=True))
    for value, expected in zip(graph.output_values(), wanted, strict=True):
        assert torch.equal(known[value.id], expected)
