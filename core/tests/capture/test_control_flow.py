"""Control flow is captured as nodes with regions, and runs as in eager."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._higher_order_ops import scan, while_loop
from torch._higher_order_ops.map import map as map_over
from torch.utils.checkpoint import checkpoint

from fairlead.ir import Graph, Node, Role, fingerprint, from_bytes, module, to_bytes, to_text
from fairlead.passes import canonicalize

from .conftest import Compile


def ops(graph: Graph) -> list[str]:
    return [n.op for n in graph.walk()]


def node(graph: Graph, op: str) -> Node:
    return next(n for n in graph.walk() if n.op == op)


def branch(x: Tensor) -> Tensor:
    return torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y * y.shape[0], (x,))


def branch_on_a_size(x: Tensor) -> Tensor:
    return torch.cond(x.shape[0] > 4, lambda y: y + 1, lambda y: y * 2, (x,))


def nested(x: Tensor) -> Tensor:
    def inner(y: Tensor) -> Tensor:
        return torch.cond(y.mean() > 1, lambda z: z + 1, lambda z: z - z.shape[1], (y,))

    return torch.cond(x.sum() > 0, inner, lambda y: y * 2, (x,))


def with_a_constant(x: Tensor) -> Tensor:
    return torch.cond(x.sum() > 0, lambda y: y * torch.tensor([1.0, 2.0, 3.0]), lambda y: y * 2, (x,))


def loop(x: Tensor) -> tuple[Tensor, Tensor]:
    start = torch.zeros((), dtype=torch.int64), x.clone()
    return while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y + x.sin()), start)


def counted(x: Tensor) -> Tensor:
    return while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2), (0, x.clone()))[1]


def running(x: Tensor) -> tuple[Tensor, Tensor]:
    return scan(lambda total, row: (total + row, total * row), x[0], x)


def rows(x: Tensor) -> Tensor:
    return map_over(lambda row, first: row.sin() * first, x, x[0].cos())


PROGRAMS = [branch, nested, with_a_constant, loop, counted, running, rows]
DIFFERENTIABLE = [branch, nested, with_a_constant, running, rows]


def flat(result: Any) -> Iterator[Tensor]:
    yield from result if isinstance(result, tuple | list) else (result,)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_control_flow_is_captured_and_runs_as_in_eager(
    program: Compile, function: Callable[[Tensor], Any], dynamic: bool
) -> None:
    run = program(function, dynamic=dynamic)
    for sign in (1, -1):
        x = sign * torch.arange(1.0, 16.0).view(5, 3)
        for found, expected in zip(flat(run(x)), flat(function(x)), strict=True):
            torch.testing.assert_close(found, expected)
    assert run.recorder.reasons == []


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # torch's own scan
@pytest.mark.parametrize("function", DIFFERENTIABLE, ids=lambda f: f.__name__)
def test_gradients_through_control_flow_are_eager_s(program: Compile, function: Callable[[Tensor], Any]) -> None:
    run = program(function)
    gradients = []
    for call in (run, function):
        x = torch.linspace(0.1, 1.0, 12).view(4, 3).requires_grad_()
        sum(y.square().sum() for y in flat(call(x))).backward()
        gradients.append(x.grad)
    torch.testing.assert_close(*gradients)
    forward, backward = run.graphs
    assert any(n.regions for n in forward.nodes)
    assert any(n.regions for n in backward.nodes)


def test_a_region_is_closed_but_for_the_symbols_around_it(program: Compile) -> None:
    run = program(branch, dynamic=True)
    run(torch.ones(5, 3))
    cond = node(run.graph, "hop.cond")
    rows, columns = (s.name for s in run.graph.symbols)
    assert [to_text(r) for r in cond.regions] == [
        "graph @region region {\n"
        f'  in %0 user "" : f32[{rows}, {columns}]\n'
        f"  %3 = aten.add.Tensor(%0, 1, 1) : f32[{rows}, {columns}]\n"
        "  out %3 user\n}",
        "graph @region region {\n"
        f'  in %0 user "" : f32[{rows}, {columns}]\n'
        f"  %3 = aten.mul.Tensor(%0, <{rows}>) : f32[{rows}, {columns}]\n"
        "  out %3 user\n}",
    ]


def test_a_condition_on_sizes_is_an_integer_expression(program: Compile) -> None:
    run = program(branch_on_a_size, dynamic=True)
    for n in (3, 6):
        assert torch.equal(run(torch.ones(n, 2)), branch_on_a_size(torch.ones(n, 2)))
    size = run.graph.symbols[0].name
    assert node(run.graph, "hop.cond").args[0].expr == f"min(1, max(0, {size} - 4))"


def test_a_tensor_of_a_body_is_a_constant_of_the_graph(program: Compile) -> None:
    run = program(with_a_constant)
    run(torch.ones(2, 3))
    (captured,) = run.recorder.captured
    (index,) = captured.constants
    assert run.graph.inputs[index].role is Role.constant
    assert run.graph.inputs[index].value in node(run.graph, "hop.cond").args[1]


def test_an_integer_that_a_loop_carries_is_a_symbol_of_its_regions(program: Compile) -> None:
    run = program(counted)
    run(torch.ones(2))
    carried = node(run.graph, "hop.while_loop")
    assert carried.args[0][0] == 0
    condition, body = carried.regions
    (name,) = (s.name for s in condition.symbols)
    assert condition.outputs[0].value.expr == f"min(1, max(-{name} + 3, 0))"
    assert body.outputs[0].value.expr == f"{name} + 1"


def test_a_nested_region_is_inlined(program: Compile) -> None:
    twice = torch.compiler.nested_compile_region(lambda z: z.sin() * 2)
    run = program(lambda x: twice(twice(x)))
    x = torch.ones(3, requires_grad=True)
    run(x).sum().backward()
    y = x.detach().clone().requires_grad_()
    ((y.sin() * 2).sin() * 2).sum().backward()
    torch.testing.assert_close(x.grad, y.grad)
    forward, _ = run.graphs
    assert ops(forward) == ["aten.sin.default", "aten.mul.Tensor"] * 2


def test_a_checkpoint_keeps_the_state_of_the_generator(program: Compile) -> None:
    def noisy(x: Tensor) -> Tensor:
        return checkpoint(lambda z: torch.dropout(z.sin(), 0.5, True), x, use_reentrant=False)

    run = program(noisy)
    results = []
    for call in (run, noisy):
        torch.manual_seed(3)
        x = torch.ones(64, requires_grad=True)
        y = call(x)
        y.sum().backward()
        results.append((y.detach(), x.grad, torch.rand(2)))
    torch.testing.assert_close(*results)
    forward, backward = run.graphs
    assert "hop.run_and_save_rng_state" in ops(forward)
    assert "hop.run_with_rng_state" in ops(backward)


def test_graphs_with_regions_are_the_same_after_a_round_trip(program: Compile) -> None:
    run = program(nested, dynamic=True)
    run(torch.ones(5, 3))
    graph = canonicalize(run.graph)
    again = from_bytes(to_bytes(module(graph))).graph
    assert to_text(again) == to_text(graph)
    assert fingerprint(again) == fingerprint(graph)


@pytest.mark.skipif(torch.__version__ < (2, 9), reason="Dynamo refuses such a branch itself")
def test_a_branch_that_writes_to_what_it_is_given_is_left_to_torch(program: Compile) -> None:
    def writing(x: Tensor, total: Tensor) -> Tensor:
        def add(y: Tensor) -> Tensor:
            total.add_(1)
            return y + total

        return torch.cond(x.sum() > 0, add, lambda y: y * 1, (x,))

    run = program(writing)
    total = torch.zeros(3)
    with torch.no_grad():
        assert run(torch.ones(3), total).tolist() == [2.0] * 3
    assert total.tolist() == [1.0] * 3
    assert run.reason == "a branch or loop body that writes to what it is given"
