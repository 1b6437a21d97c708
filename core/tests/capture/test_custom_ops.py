"""Operators that a program registers are captured by name, those that write to their arguments as functions."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fairlead._signatures import registered_ops
from fairlead.ir import Graph, from_bytes, module, to_bytes

from .conftest import Compile


@pytest.fixture(scope="module", autouse=True)
def library() -> None:
    """Three operators: a function with a gradient, one that writes to its argument, one that writes to a list."""

    @torch.library.custom_op("fairlead_capture::cube", mutates_args=())
    def cube(x: Tensor, scale: float = 1.0) -> Tensor:
        return x**3 * scale

    @cube.register_fake
    def _(x: Tensor, scale: float = 1.0) -> Tensor:
        return torch.empty_like(x)

    def keep(ctx: object, inputs: tuple[Tensor, float], output: Tensor) -> None:
        ctx.save_for_backward(inputs[0])  # type: ignore[attr-defined]
        ctx.scale = inputs[1]  # type: ignore[attr-defined]

    def gradient(ctx: object, grad: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors  # type: ignore[attr-defined]
        return grad * 3 * x**2 * ctx.scale, None  # type: ignore[attr-defined]

    cube.register_autograd(gradient, setup_context=keep)

    @torch.library.custom_op("fairlead_capture::fill", mutates_args={"out"})
    def fill(x: Tensor, out: Tensor, times: int = 2) -> Tensor:
        out.copy_(x * times)
        return x + 1

    @fill.register_fake
    def _(x: Tensor, out: Tensor, times: int = 2) -> Tensor:
        return torch.empty_like(x)

    @torch.library.custom_op("fairlead_capture::bump", mutates_args={"xs"})
    def bump(xs: list[Tensor]) -> None:
        for x in xs:
            x.add_(1)


def op(name: str) -> torch._ops.OpOverload:
    found: torch._ops.OpOverload = getattr(torch.ops.fairlead_capture, name).default
    return found


def ops(graph: Graph) -> list[str]:
    return [n.op for n in graph.nodes]


def test_an_operator_keeps_its_name_and_gets_all_its_arguments(program: Compile) -> None:
    run = program(lambda x: op("cube")(x) + 1)
    with torch.no_grad():
        assert run(torch.tensor([2.0])).tolist() == [9.0]
    node = run.graph.nodes[0]
    assert (node.op, node.args[1:]) == ("fairlead_capture.cube.default", (1.0,))


def test_a_registered_gradient_is_used(program: Compile) -> None:
    run = program(lambda x: op("cube")(x, 0.5).sum())
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    run(x).backward()
    assert x.grad is not None
    assert x.grad.tolist() == [6.0, 13.5]


def test_what_an_operator_writes_is_a_result(program: Compile) -> None:
    def filled(x: Tensor) -> Tensor:
        out = torch.empty_like(x)
        return op("fill")(x, out, 3) + out

    run = program(filled)
    assert run(torch.ones(4)).tolist() == [5.0] * 4
    node = next(n for n in run.graph.nodes if n.op == "fairlead_capture.fill.default")
    assert len(node.results) == 2
    assert not any("auto_functionalized" in name for name in ops(run.graph))


@pytest.mark.parametrize("view", ["whole", "rows", "column"])
def test_an_operator_that_writes_to_a_view_changes_what_it_is_a_view_of(program: Compile, view: str) -> None:
    def part(out: Tensor) -> Tensor:
        return {"whole": out, "rows": out[1:], "column": out.t()[1]}[view]

    def write(x: Tensor, out: Tensor) -> Tensor:
        return op("fill")(x, part(out)) * 2

    run = program(write)
    written, expected = torch.zeros(3, 2), torch.zeros(3, 2)
    x = torch.ones_like(part(written))
    with torch.no_grad():
        torch.testing.assert_close(run(x, written), write(x, expected))
    torch.testing.assert_close(written, expected)
    assert run.recorder.reasons == []


def test_an_operator_may_write_to_a_list_and_return_nothing(program: Compile) -> None:
    def bumped(x: Tensor, y: Tensor) -> Tensor:
        op("bump")([x, y])
        return x + y

    run = program(bumped)
    x, y = torch.zeros(2), torch.ones(3, 2)
    assert torch.equal(run(x, y), torch.full((3, 2), 3.0))
    assert (x.tolist(), y.tolist()) == ([1.0, 1.0], [[2.0, 2.0]] * 3)
    node = next(n for n in run.graph.nodes if n.op == "fairlead_capture.bump.default")
    assert [r is not None for r in node.results] == [True, True]


def test_a_module_says_the_signatures_of_operators(program: Compile) -> None:
    def filled(x: Tensor) -> Tensor:
        out = torch.empty_like(x)
        return op("fill")(op("cube")(x), out) + out

    run = program(filled)
    run(torch.ones(2))
    table = from_bytes(to_bytes(module(run.graph, ops=registered_ops(run.graph)))).ops
    assert {name: use.signature for name, use in table.items() if name.startswith("fairlead_capture")} == {
        "fairlead_capture.cube.default": "fairlead_capture.cube.default(Tensor x, float scale) -> Tensor",
        "fairlead_capture.fill.default": (
            "fairlead_capture.fill.default(Tensor x, Tensor out, SymInt times) -> (Tensor, Tensor out_out)"
        ),
    }


def test_an_operator_that_writes_to_two_views_of_one_tensor_is_left_to_torch(program: Compile) -> None:
    def overlapping(x: Tensor) -> Tensor:
        op("bump")([x[1:], x[:-1]])
        return x * 1

    run = program(overlapping)
    assert run(torch.zeros(3)).tolist() == [1.0, 2.0, 1.0]
    assert run.reason == "the operator fairlead_capture.bump.default, which writes to two views of one tensor"
