"""A linear recurrence that torch's `associative_scan` writes as a tree is computed in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import torch
from torch._higher_order_ops.associative_scan import associative_scan

from fairlead._capture import Captured, capture
from fairlead.ir import Graph, verify
from fairlead.passes import canonicalize, unroll_recurrences

from .conftest import Recorder

Tensors = tuple[torch.Tensor, torch.Tensor]

pytestmark = pytest.mark.skipif(
    torch.__version__ < "2.9", reason="associative_scan traces through vmap, which Dynamo writes out since torch 2.9"
)


def combined(left: Tensors, right: Tensors) -> Tensors:
    return left[0] * right[0], right[0] * left[1] + right[1]


def scanned(factors: torch.Tensor, summands: torch.Tensor, dim: int = 0, reverse: bool = False) -> Tensors:
    given: Any = factors, summands
    both: Any = associative_scan(combined, given, dim=dim, reverse=reverse, combine_mode="generic")
    products, values = both
    return products, values


def in_order(factors: torch.Tensor, summands: torch.Tensor, dim: int = 0) -> torch.Tensor:
    values = [summands.select(dim, 0)]
    for t in range(1, summands.shape[dim]):
        values.append(factors.select(dim, t) * values[-1] + summands.select(dim, t))
    return torch.stack(values, dim)


def given(*shape: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    factors, summands = (torch.rand(shape, generator=generator, dtype=torch.float64) for _ in range(2))
    return factors, summands - 0.5


class Unrolled(Recorder):
    """Runs what it is given with its recurrences in order; ``before`` and ``after`` are the last graph's two forms."""

    before: Graph
    after: Graph

    def graph(self, captured: Captured) -> Callable[[list[Any]], Any]:
        self.before = canonicalize(captured.graph)
        self.after = verify(unroll_recurrences(self.before, in_blocks=self.in_blocks, long_rows=self.long_rows))
        return super().graph(msgspec.structs.replace(captured, graph=self.after))

    def __init__(self, in_blocks: bool = False, long_rows: bool = False) -> None:
        super().__init__()
        self.in_blocks = in_blocks
        self.long_rows = long_rows

    def __call__(self, function: Callable[..., Any], *inputs: torch.Tensor) -> Any:
        torch._dynamo.reset()
        compiled = torch.compile(function, backend=lambda gm, example: capture(gm, example, self), fullgraph=True)
        with torch.no_grad():
            return compiled(*inputs)


def strided(graph: Graph) -> list[int]:
    """How many rows each slice that skips some is of."""
    return [n.result.tensor.shape[0] for n in graph.nodes if n.op == "aten.slice.Tensor" and n.args[4] != 1]  # type: ignore[misc]


@pytest.mark.parametrize(("shape", "dim"), [((), 0), ((2, 3), 2), ((4, 2), 1)], ids=str)
@pytest.mark.parametrize("steps", [2, 3, 24, 70])
def test_the_values_are_those_of_the_recurrence(steps: int, shape: tuple[int, ...], dim: int) -> None:
    factors, summands = given(*shape[:dim], steps, *shape[dim:])
    run = Unrolled(in_blocks=True)
    values = run(lambda a, b: scanned(a, b, dim)[1], factors, summands)
    assert run.after != run.before
    torch.testing.assert_close(values, in_order(factors, summands, dim), rtol=1e-12, atol=1e-14)


def test_steps_in_order_round_as_those_of_a_loop() -> None:
    factors, summands = given(16, 3)
    values = Unrolled()(lambda a, b: scanned(a, b)[1], factors, summands)
    torch.testing.assert_close(values, in_order(factors, summands), rtol=0, atol=0)


def test_a_recurrence_from_the_end_is_one_too() -> None:
    factors, summands = given(9, 3)
    run = Unrolled()
    values = run(lambda a, b: scanned(a, b, reverse=True)[1], factors, summands)
    assert not strided(run.after)
    torch.testing.assert_close(values.flip(0), in_order(factors.flip(0), summands.flip(0)), rtol=0, atol=0)


def selective(decay: torch.Tensor, step: torch.Tensor, into: torch.Tensor, signal: torch.Tensor) -> Tensors:
    """Factors and summands of a state space model, of (batch, width, time, states)."""
    return torch.exp(decay[None, :, None, :] * step[..., None]), step[..., None] * into[:, None] * signal[..., None]


def test_factors_and_summands_are_computed_step_by_step() -> None:
    width, states, time = 5, 3, 6
    (decay, _), (step, signal), (into, _) = given(width, states), given(2, width, time), given(2, time, states)
    run = Unrolled()
    values = run(lambda *xs: scanned(*selective(*xs), 2)[1], -decay, step, into, signal)
    computed = [n for n in run.after.nodes if n.op in ("aten.mul.Tensor", "aten.exp.default")]
    assert not [n for n in computed if time in n.result.tensor.shape]
    expected = in_order(*selective(-decay, step, into, signal), 2)
    torch.testing.assert_close(values, expected, rtol=1e-13, atol=0)


def read_out(values: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    """(batch, time, width), as a state space model has it of (batch, width, time, states) and (batch, time, states)."""
    return (values.transpose(1, 2) @ out[..., None])[..., 0]


def of_model(width: int, states: int, time: int) -> list[torch.Tensor]:
    """Decay, step, what goes in, signal and what is read out of a state space model."""
    (decay, _), (step, signal), (into, out) = given(width, states), given(2, width, time), given(2, time, states)
    return [-decay, step, into, signal, out]


def steps_of(graph: Graph, *rows: int) -> int:
    """How many sums there are of values of this shape."""
    return sum(n.op == "aten.add.Tensor" and n.result.tensor.shape == rows for n in graph.nodes)


@pytest.mark.parametrize("time", [6, 70])
def test_short_rows_that_are_multiplied_are_computed_as_long_ones(time: int) -> None:
    inputs = of_model(5, 3, time)
    run = Unrolled(in_blocks=True, long_rows=True)
    values = run(lambda *xs: read_out(scanned(*selective(*xs[:4]), 2)[1], xs[4]), *inputs)
    assert steps_of(run.after, 2, 3, 5) >= 5
    assert not steps_of(run.after, 2, 5, 3)
    (product,) = (n for n in run.after.nodes if n.op == "aten.bmm.default")
    transposed = next(
        n for n in run.after.nodes if n.result in tuple(product.operands()) and n.args[1:] == ((0, 2, 1),)
    )
    assert transposed.result.tensor.shape == (2 * time, 5, 3)
    expected = read_out(in_order(*selective(*inputs[:4]), 2), inputs[4])
    torch.testing.assert_close(values, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("function", "sizes"),
    [
        (lambda values, out: read_out(values, out), (3, 5)),
        (lambda values, out: (read_out(values, out), values[0]), (5, 3)),
        (lambda values, out: (values.transpose(1, 2) * out[:, :, None]).sum(3), (5, 3)),
        (lambda values, out: values.permute(0, 2, 3, 1).flatten(2) @ out[0].new_ones(15, 2), (5, 3)),
    ],
    ids=["they are long", "read elsewhere", "not multiplied", "taken apart"],
)
def test_other_rows_stay_what_they_are(function: Callable[..., Any], sizes: tuple[int, int]) -> None:
    run = Unrolled(long_rows=True)
    run(lambda *xs: function(scanned(*selective(*xs[:4]), 2)[1], xs[4]), *of_model(*sizes, 6))
    assert steps_of(run.after, 2, *sizes) == 5


def test_two_recurrences_one_after_the_other_are_both_in_order() -> None:
    factors, summands = given(8, 3)
    run = Unrolled()
    values = run(lambda a, b: scanned(a.sin(), scanned(a, b)[1])[1], factors, summands)
    assert not strided(run.after)
    expected = in_order(factors.sin(), in_order(factors, summands))
    torch.testing.assert_close(values, expected, rtol=0, atol=0)


def test_a_longer_one_stays_a_tree_unless_blocks_are_asked_for() -> None:
    blocks = Unrolled(in_blocks=True)
    blocks(lambda a, b: scanned(a, b)[1], *given(65, 3))
    assert unroll_recurrences(blocks.before) is blocks.before
    assert max(strided(blocks.after)) == 8


def sums(left: Tensors, right: Tensors) -> Tensors:
    return left[0] + right[0], left[1] + right[1]


def late(left: Tensors, right: Tensors) -> Tensors:
    """Nearly: what is carried is multiplied by the factor before."""
    return left[0] * right[0], left[0] * left[1] + right[1]


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: scanned(a, b),
        lambda a, b: associative_scan(sums, (a, b), dim=0, combine_mode="generic")[1],
        lambda a, b: associative_scan(late, (a, b), dim=0, combine_mode="generic")[1],
        lambda a, b: a[1::2] * b[:-1:2] + b[1::2],
    ],
    ids=["products are read too", "another sum", "another product", "one step"],
)
def test_what_is_another_tree_or_read_within_stays(function: Callable[..., Any]) -> None:
    run = Unrolled(in_blocks=True)
    run(function, *given(8, 3))
    assert run.after is run.before
