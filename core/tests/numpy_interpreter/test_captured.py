"""What capture makes of control flow and of memory formats means the same to NumPy as to torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch._higher_order_ops import scan, while_loop
from torch._higher_order_ops.map import map as map_over

import fairlead.numpy
from fairlead import interpret
from fairlead._capture import Captured, capture
from fairlead.ir import Graph, Input, Kind, Node, Output, TensorType, Value
from fairlead.passes import canonicalize

from ._call import type_of


class Both:
    """Takes the graphs of a program, and runs each with torch and with NumPy."""

    def __init__(self) -> None:
        self.results: list[tuple[Any, Any]] = []
        self.ops: set[str] = set()

    def graph(self, captured: Captured) -> Callable[[list[Any]], Any]:
        graph = canonicalize(captured.graph)
        self.ops |= {node.op for node in graph.walk()}

        def call(args: list[Any]) -> list[Any]:
            given = [*args, *captured.constants.values()]
            args.clear()
            wanted = interpret.run(graph, given)
            arrays = [x.detach().numpy() if isinstance(x, Tensor) else x for x in given]
            self.results += zip(fairlead.numpy.run(graph, arrays), wanted, strict=True)
            return list(wanted)

        call._boxed_call = True  # type: ignore[attr-defined]
        return call

    def uncapturable(self, gm: torch.fx.GraphModule, kind: Kind, reason: str) -> Callable[[list[Any]], Any]:
        raise AssertionError(reason)


def branch(x: Tensor) -> Tensor:
    return torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y * y.shape[0], (x,))


def branch_on_a_size(x: Tensor) -> Tensor:
    return torch.cond(x.shape[0] > 4, lambda y: y + 1, lambda y: y * 2, (x,))


def loop(x: Tensor) -> tuple[Tensor, Tensor]:
    start = torch.zeros((), dtype=torch.int64), x.clone()
    return while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y + x.sin()), start)


def counted(x: Tensor) -> Tensor:
    return while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2), (0, x.clone()))[1]


def running(x: Tensor) -> tuple[Tensor, Tensor]:
    return scan(lambda total, row: (total + row, total * row), x[0], x)


def mapped(x: Tensor) -> Tensor:
    return map_over(lambda row, other: row * 2 + other.sum(), x, x.sin())


@pytest.mark.parametrize(
    ("program", "op"),
    [
        (branch, "hop.cond"), (branch_on_a_size, "hop.cond"), (loop, "hop.while_loop"), (counted, "hop.while_loop"),
        (running, "hop.scan"), (mapped, "hop.map"),
    ],
)  # fmt: skip
def test_control_flow(program: Callable[[Tensor], Any], op: str) -> None:
    both = Both()
    torch._dynamo.reset()
    compiled = torch.compile(
        program, backend=lambda gm, inputs: capture(gm, inputs, both), fullgraph=True, dynamic=True
    )
    for x in (torch.linspace(-1, 3, 12).reshape(4, 3), torch.linspace(-3, 1, 15).reshape(5, 3)):
        compiled(x)
    assert op in both.ops
    assert len(both.results) >= 2
    for found, wanted in both.results:
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_a_batch_norm_of_one_image_in_channels_last_has_the_gradient_of_its_definition() -> None:
    """Torch's CPU kernel reads it as if it were row-major, where the batch's stride is one (2.8 to 2.15)."""
    rng = np.random.default_rng(0)
    grad, x = (rng.standard_normal((1, 3, 4, 5)).astype(np.float32) for _ in range(2))
    weight = np.array([0.5, 1.0, 2.0], np.float32)
    mean = x.mean((0, 2, 3))
    rstd = 1 / np.sqrt(x.var((0, 2, 3)) + np.float32(1e-5))
    values = [Value(i, type_of(a)) for i, a in enumerate((grad, x, weight, mean, rstd))]
    values[0] = Value(0, TensorType(values[0].tensor.dtype, (1, 3, 4, 5), (1, 1, 15, 3)))
    g, v, w, m, r = values
    results = tuple(Value(10 + i, type_of(a)) for i, a in enumerate((x, weight, weight)))
    args = (g, v, w, None, None, m, r, True, 1e-5, (True, True, True))
    node = Node("aten.native_batch_norm_backward.default", args, results)
    graph = Graph("g", Kind.backward, tuple(map(Input, values)), (node,), tuple(map(Output, results)))
    found = fairlead.numpy.run(graph, [grad, x, weight, mean, rstd])
    wide = [torch.tensor(a, dtype=torch.float64) for a in (grad, x, weight, mean, rstd)]
    exact = torch.ops.aten.native_batch_norm_backward(*wide[:3], None, None, *wide[3:], True, 1e-5, [True] * 3)
    for a, b in zip(found, exact, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
