"""Inputs and outputs stand in the order that all releases of torch share, whatever the order of torch's call."""

from __future__ import annotations

import msgspec
import torch
from torch import Tensor

from fairlead._capture._order import arranged
from fairlead.ir import (
    DType,
    Graph,
    Input,
    Kind,
    Node,
    Output,
    Role,
    ScalarType,
    Symbol,
    TensorType,
    Value,
    to_text,
    verify,
)
from fairlead.passes import canonicalize

from .conftest import Compile


def graph_of_three() -> Graph:
    """Reads its last input first, overwrites its first, and returns its last."""
    vector = TensorType(DType.f32, ("n",))
    late, size, early = Value(0, vector), Value(1, ScalarType(DType.i64)), Value(2, vector)
    name, negative, product = Value(3, vector), Value(4, vector), Value(5, vector)
    return verify(
        Graph(
            "g",
            Kind.inference,
            (Input(late), Input(size, Role.symbol, "n"), Input(early)),
            (
                Node("aten.detach.default", (late,), (name,)),
                Node("aten.neg.default", (early,), (negative,)),
                Node("aten.mul.Tensor", (negative, name), (product,)),
            ),
            (Output(product, Role.mutation, target=0), Output(early, aliases=2)),
            (Symbol("n", 1, None, (1, None)),),
        )
    )


def saving(*saved: int) -> Graph:
    """A forward graph that saves some of: its input 0, 1 and 2 computed from it, and 3, which is another name of 2."""
    values = [Value(i, TensorType(DType.f32, (2,))) for i in range(4)]
    ops = ("aten.neg.default", "aten.exp.default", "aten.detach.default")
    nodes = tuple(Node(op, (values[i],), (values[i + 1],)) for i, op in enumerate(ops))
    outputs = (Output(values[1]), *(Output(values[i], Role.saved) for i in saved), Output(7, Role.saved))
    return verify(Graph("g", Kind.forward, (Input(values[0]),), nodes, outputs))


def test_integers_come_first_and_tensors_as_they_are_read_by_whatever_name() -> None:
    fit = arranged(graph_of_three(), {})
    assert fit.inputs == (1, 2, 0)
    assert fit.outputs == (0, 1)


def test_everything_that_names_an_input_moves_with_it() -> None:
    graph = verify(arranged(graph_of_three(), {}).graph)
    assert [i.value.id for i in graph.inputs] == [1, 2, 0]
    assert [(o.target, o.aliases) for o in graph.outputs] == [(2, None), (None, 1)]
    assert graph.symbols == (Symbol("n", 1, None, (0, None)),)


def test_integers_come_in_the_order_of_the_shapes_that_have_them() -> None:
    x, y = Value(0, TensorType(DType.f32, ("n",))), Value(1, TensorType(DType.f32, ("m", "n")))
    sizes, result = [Value(i, ScalarType(DType.i64)) for i in (2, 3)], Value(4, TensorType(DType.f32, ("m", "n")))
    inputs = (Input(sizes[0], Role.symbol), Input(sizes[1], Role.symbol), Input(x), Input(y))
    symbols = (Symbol("n", 2, None, (0, None)), Symbol("m", 2, None, (1, None)))
    add = Node("aten.add.Tensor", (y, x, 1), (result,))
    graph = verify(Graph("g", Kind.inference, inputs, (add,), (Output(result),), symbols))
    assert arranged(graph, {}).inputs == (1, 0, 3, 2)


def test_what_is_saved_is_saved_once_and_as_it_is_computed() -> None:
    fit = arranged(saving(3, 1, 0, 2), {})
    lines = to_text(verify(canonicalize(fit.graph))).splitlines()
    outputs = [line.strip() for line in lines if line.startswith("  out")]
    assert outputs == ["out %1 user", "out %0 saved", "out %1 saved", "out %2 saved", "out 7 saved"]
    assert fit.outputs == (0, 3, 2, 1, 3, 4)
    assert not fit.is_identity


def test_what_is_in_order_stays() -> None:
    assert arranged(saving(0, 1, 2), {}).is_identity


def test_an_input_that_is_another_one_is_none() -> None:
    graph = graph_of_three()
    (product, early) = (o.value for o in graph.outputs)
    fit = arranged(msgspec.structs.replace(graph, outputs=(Output(product), Output(early))), {0: 2})
    assert [i.value.id for i in verify(fit.graph).inputs] == [1, 2]
    assert fit.inputs == (1, 2)
    assert "aten.detach.default(%2)" in to_text(fit.graph)


def test_what_torch_passes_in_another_order_arrives(program: Compile) -> None:
    run = program(lambda x, y: (y * 2 + x, x.sum()))
    x, y = torch.arange(3.0), torch.ones(3)
    found = run(x, y)
    assert torch.equal(found[0], y * 2 + x)
    assert [i.name for i in run.graph.inputs] == ["L['y']", "L['x']"]


def test_a_written_input_is_the_one_that_is_written(program: Compile) -> None:
    def write(x: Tensor, y: Tensor) -> Tensor:
        z = y * 2
        x.add_(z)
        return z

    run = program(write)
    x, y = torch.zeros(3), torch.ones(3)
    run(x, y)
    assert torch.equal(x, torch.full((3,), 2.0))
    assert torch.equal(y, torch.ones(3))


def test_a_backward_gets_each_tensor_once(program: Compile) -> None:
    def probability(x: Tensor) -> Tensor:
        return (x.softmax(-1).tanh() * x.sigmoid()).relu()

    x = torch.linspace(-1, 1, 12).view(3, 4).requires_grad_()
    y = x.detach().clone().requires_grad_()
    probability(x).square().sum().backward()
    run = program(probability)
    run(y).square().sum().backward()
    torch.testing.assert_close(y.grad, x.grad)
    forward, backward = run.graphs
    saved = [o.value for o in forward.outputs if o.role is Role.saved]
    assert len(saved) == len(set(saved)) == sum(i.role is not Role.tangent for i in backward.inputs)


def copying(source: Role, copy: Role, *, through: str = "") -> Graph:
    """A forward graph with two outputs: what it computes, and a copy of it, or of a view of it."""
    x, y, z, copied = (Value(i, TensorType(DType.f32, (2, 2))) for i in range(4))
    nodes = [Node("aten.exp.default", (x,), (y,))]
    if through:
        nodes.append(Node(through, (y, 0, 1), (z,)))
    nodes.append(Node("aten.clone.default", (z if through else y, None), (copied,)))
    return verify(Graph("g", Kind.forward, (Input(x),), tuple(nodes), (Output(y, source), Output(copied, copy))))


def test_a_copy_that_nobody_needs_moves_no_input() -> None:
    x, y, copied, product = (Value(i, TensorType(DType.f32, (2,))) for i in range(4))
    copy = Node("aten.clone.default", (x, None), (copied,))
    multiply = Node("aten.mul.Tensor", (y, copied), (product,))
    graph = verify(Graph("g", Kind.inference, (Input(x), Input(y)), (copy, multiply), (Output(product),)))
    assert arranged(graph, {}).inputs == (1, 0)


def test_a_saved_copy_of_what_is_saved_is_saved_once() -> None:
    fit = arranged(copying(Role.saved, Role.saved), {})
    assert [o.value for o in fit.graph.outputs] == [Value(1, TensorType(DType.f32, (2, 2)))]
    assert fit.outputs == (0, 0)


def test_a_copy_stays_where_the_caller_could_write_to_either() -> None:
    for source, copy in ((Role.user, Role.saved), (Role.saved, Role.user)):
        graph = arranged(copying(source, copy), {}).graph
        assert {o.value.id for o in graph.outputs if isinstance(o.value, Value)} == {1, 3}
    graph = arranged(copying(Role.saved, Role.saved, through="aten.transpose.int"), {}).graph
    assert len(graph.outputs) == 2
