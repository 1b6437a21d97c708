"""Nodes point at the line of the user's program."""

from __future__ import annotations

import inspect

import torch
from torch import Tensor, nn
from torch.nn import functional

from fairlead.ir import Graph, Location

from .conftest import Compile


class Inner(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.sin(x)  # the sine


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stack = nn.Sequential(nn.Linear(3, 3), Inner())

    def forward(self, x: Tensor) -> Tensor:
        y = self.stack(x)  # the stack
        return functional.gelu(y)  # the gelu


def line(text: str) -> int:
    """The number of the line of this file that ends in ``text``."""
    lines, _ = inspect.findsource(Outer)
    return next(i for i, found in enumerate(lines, start=1) if found.rstrip().endswith(text))


def location(graph: Graph, op: str) -> Location:
    found = next(n.location for n in graph.nodes if n.op == op)
    assert found is not None
    return found


def test_a_node_points_at_the_innermost_line_that_is_not_torch_s(program: Compile) -> None:
    run = program(Outer().eval())
    with torch.no_grad():
        run(torch.ones(2, 3))
    expected = {
        "aten.addmm.default": Location(__file__, line("# the stack"), "forward", "stack.0"),
        "aten.sin.default": Location(__file__, line("# the sine"), "forward", "stack.1"),
        "aten.gelu.default": Location(__file__, line("# the gelu"), "forward", ""),
    }
    assert {op: location(run.graph, op) for op in expected} == expected


def test_nodes_of_both_training_graphs_point_at_it_too(program: Compile) -> None:
    run = program(Outer())
    run(torch.ones(2, 3)).sum().backward()
    forward, backward = run.graphs
    assert location(forward, "aten.sin.default").line == line("# the sine")
    assert location(backward, "aten.cos.default").line == line("# the sine")
    assert location(backward, "aten.gelu_backward.default").line == line("# the gelu")


def test_a_function_has_no_module_path(program: Compile) -> None:
    run = program(lambda x: torch.sin(x))
    run(torch.ones(2))
    assert (location(run.graph, "aten.sin.default").function, location(run.graph, "aten.sin.default").module_path) == (
        "<lambda>",
        "",
    )


def test_a_module_of_torch_s_by_itself_points_at_its_forward(program: Compile) -> None:
    run = program(nn.Sequential(nn.Linear(3, 3), nn.GELU()))
    run(torch.ones(2, 3)).sum().backward()
    forward, backward = run.graphs
    lines, start = inspect.getsourcelines(nn.GELU.forward)
    expected = Location(inspect.getfile(nn.GELU), start, "GELU.forward", "1")
    assert lines[0].strip().startswith("def forward")
    assert location(forward, "aten.gelu.default") == expected
    assert location(backward, "aten.gelu_backward.default") == expected


def test_a_function_of_torch_s_by_itself_has_no_line(program: Compile) -> None:
    run = program(torch.sin)
    run(torch.ones(2))
    assert [node.location for node in run.graph.nodes] == [None]
