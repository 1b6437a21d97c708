"""Graphs that several tests of the IR start from."""

from __future__ import annotations

import pytest
from hypothesis import settings

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
    ScalarType,
    Symbol,
    TensorType,
    Token,
    Value,
)

# Reproducible, and indifferent to how busy the machine is.
settings.register_profile("ir", derandomize=True, deadline=None, max_examples=100)
settings.load_profile("ir")


@pytest.fixture
def rich_graph() -> Graph:
    """A graph with every kind of argument, type, role and output that the IR has."""
    x = Value(0, TensorType(DType.f32, ("b", 8)))
    weight = Value(1, TensorType(DType.f32, (16, 8), (1, 16)))
    running = Value(2, TensorType(DType.f32, (16,), None, "cuda:0"))
    n = Value(3, ScalarType(DType.i64))
    table = Value(7, TensorType(DType.c128, (2, 2)))
    y = Value(10, TensorType(DType.f32, ("b", 16)))
    z = Value(300, TensorType(DType.bf16, ("2*b + n", 16)))
    buffer = Value(70_000, running.type)
    here = Location("/home/ann/model.py", 12, "forward", "L['self'].fc")
    nodes = (
        Node("aten.linear.default", (x, weight, None), (y,), here),
        Node(
            "test.every_argument.default",
            (
                (y, None, (1, (2.5, -0.0))),
                True,
                -(2**63),
                2**64 - 1,
                float("inf"),
                float("nan"),
                'déjà "vu"\n',
                DimExpr("2*b + n"),
                Token("dtype", "bf16"),
                Token("device", "cuda:0"),
                Complex(-0.0, float("-inf")),
                (),
            ),
            (z, None, buffer),
        ),
        Node("aten.neg.default", (z,), (None,), Location("/home/ann/model.py", 13)),
    )
    return Graph(
        name="forward",
        kind=Kind.forward,
        inputs=(
            Input(x, name="x"),
            Input(weight, Role.parameter, "fc.weight"),
            Input(running, Role.buffer, "norm.running_mean"),
            Input(n, Role.symbol, "n"),
            Input(table, Role.constant, "table"),
        ),
        nodes=nodes,
        outputs=(
            Output(buffer, Role.mutation, target=2),
            Output(z, aliases=0),
            Output(None),
            Output(DimExpr("b + n"), Role.saved),
            Output(4),
            Output(y, Role.saved),
        ),
        symbols=(Symbol("b", 2, 512, (0, 0)), Symbol("n", 0, None, (3, None))),
    )


@pytest.fixture
def small_graph() -> Graph:
    """``relu(linear(x, weight))`` with a batch size that is known at the call."""
    x = Value(0, TensorType(DType.f32, ("b", 2)))
    weight = Value(1, TensorType(DType.f32, (3, 2)))
    y = Value(2, TensorType(DType.f32, ("b", 3)))
    z = Value(3, y.type)
    nodes = (
        Node("aten.linear.default", (x, weight, None), (y,), Location("model.py", 3)),
        Node("aten.relu.default", (y,), (z,)),
    )
    inputs = (Input(x, name="x"), Input(weight, Role.parameter, "fc.weight"))
    return Graph("main", Kind.inference, inputs, nodes, (Output(z),), (Symbol("b", 1, None, (0, 0)),))


@pytest.fixture
def nested_graph() -> Graph:
    """A condition whose true branch has another in it; the branches use the symbol of the graph around them."""

    def branch(name: str, *nodes: Node, result: Value) -> Graph:
        return Graph(name, Kind.region, (Input(v),), nodes, (Output(result),))

    flag, x = Value(0, TensorType(DType.bool, ())), Value(1, TensorType(DType.f32, ("b", 2)))
    v, w = Value(0, x.type), Value(1, x.type)
    inner = branch("inner", Node("aten.neg.default", (v,), (w,)), result=w)
    outer = branch("outer", Node("hop.map.default", ((v,),), (w,), regions=(inner,)), result=w)
    same = branch("same", result=v)
    y = Value(2, x.type)
    cond = Node("hop.cond.default", (flag, (x,)), (y,), Location("model.py", 7), (outer, same))
    inputs = (Input(flag, name="flag"), Input(x, name="x"))
    return Graph("main", Kind.inference, inputs, (cond,), (Output(y),), (Symbol("b", 1, None, (1, 0)),))
