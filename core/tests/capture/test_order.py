"""Inputs stand in the order in which the graph reads them, whatever the order in which torch passes them."""

from __future__ import annotations

import torch
from torch import Tensor

from fairlead._capture._order import by_first_use, permuted
from fairlead.ir import DType, Graph, Input, Kind, Node, Output, Role, ScalarType, Symbol, TensorType, Value, verify

from .conftest import Compile


def graph_of_three() -> Graph:
    """Reads its last input first, overwrites its first and returns the size of its second."""
    late, size, early = (
        Value(0, TensorType(DType.f32, ("n",))),
        Value(1, ScalarType(DType.i64)),
        Value(2, TensorType(DType.f32, ("n",))),
    )
    sum_, twice = Value(3, early.type), Value(4, early.type)
    return verify(
        Graph(
            "g",
            Kind.inference,
            (Input(late), Input(size, Role.symbol, "n"), Input(early)),
            (Node("aten.neg.default", (early,), (sum_,)), Node("aten.mul.Tensor", (sum_, late), (twice,))),
            (Output(twice, Role.mutation, target=0), Output(early, aliases=2)),
            (Symbol("n", 1, None, (1, None)),),
        )
    )


def test_integers_come_first_and_tensors_as_they_are_read() -> None:
    assert by_first_use(graph_of_three()) == (1, 2, 0)


def test_everything_that_names_an_input_moves_with_it() -> None:
    graph = verify(permuted(graph_of_three(), (1, 2, 0)))
    assert [i.value.id for i in graph.inputs] == [1, 2, 0]
    assert [(o.target, o.aliases) for o in graph.outputs] == [(2, None), (None, 1)]
    assert graph.symbols == (Symbol("n", 1, None, (0, None)),)


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
