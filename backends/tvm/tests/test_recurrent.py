"""Layers of LSTMs against float64, in both directions, over any number of steps and samples."""

from __future__ import annotations

import math

import pytest
import torch

from fairlead import interpret
from fairlead.ir import Builder, Graph, Role
from fairlead_tvm import TVMOptions, backend

SIZE, HIDDEN = 24, 32


def layer(
    steps: int | str,
    batch: int | str,
    *,
    hidden: int = HIDDEN,
    reverse: bool = False,
    biases: bool = True,
    dtype: str = "f32",
) -> Graph:
    b = Builder()
    x = b.input(f"{dtype}[{steps}, {batch}, {SIZE}]")
    states = [b.input(f"{dtype}[1, {batch}, {hidden}]") for _ in range(2)]
    sizes = [f"[{4 * hidden}, {SIZE}]", f"[{4 * hidden}, {hidden}]", *[f"[{4 * hidden}]"] * (2 * biases)]
    weights = [b.input(dtype + size, role=Role.parameter) for size in sizes]
    for result in b.ops("nn.lstm", x, *states, *weights, *[None] * (2 - 2 * biases), reverse):
        b.output(result)
    return b.graph()


def check(graph: Graph, steps: int, batch: int, *, packed: bool = True, hidden: int = HIDDEN, rtol: float = 0) -> None:
    torch.manual_seed(0)
    x, *states = torch.randn(steps, batch, SIZE), torch.randn(1, batch, hidden), torch.randn(1, batch, hidden)
    weights = [torch.randn(i.value.tensor.shape) / 4 for i in graph.inputs[3:]]
    constants = dict(enumerate(weights, start=3)) if packed else {}
    given = [t.to(getattr(torch, graph.inputs[0].value.tensor.dtype.long_name)) for t in (x, *states, *weights)]
    constants = {i: given[i] for i in constants}
    found = backend.compile(graph, TVMOptions(threads="one"), constants)(given[:3] if packed else given)
    for got, expected in zip(found, interpret.run(graph, [t.double() for t in given]), strict=True):
        torch.testing.assert_close(got.double(), expected, rtol=rtol, atol=2e-6 * math.sqrt(hidden / HIDDEN))


@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@pytest.mark.parametrize("batch", [1, 4, 9])
def test_a_layer_is_torchs(batch: int, reverse: bool) -> None:
    check(layer(5, batch, reverse=reverse), 5, batch)


def test_there_may_be_no_biases_and_no_weights_that_are_known() -> None:
    check(layer(5, 3, biases=False), 5, 3)
    check(layer(5, 3, reverse=True), 5, 3, packed=False)


def test_states_may_be_as_wide_as_they_are_deep() -> None:
    check(layer(3, 2, hidden=208), 3, 2, hidden=208)


@pytest.mark.parametrize(("steps", "batch"), [(1, 1), (7, 3), (4, 13)])
def test_steps_and_samples_may_be_known_at_the_call_alone(steps: int, batch: int) -> None:
    check(layer("t", "n"), steps, batch)
    check(layer("t", "n", reverse=True), steps, batch)


@pytest.mark.parametrize("packed", [True, False])
def test_one_of_bfloat16_is_rounded_at_its_end(packed: bool) -> None:
    check(layer(5, 3, dtype="bf16"), 5, 3, packed=packed, rtol=2**-8)


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (layer(5, 2, hidden=20), "an LSTM whose states are no whole vectors"),
        (layer(5, 2, dtype="f64"), "an LSTM of other numbers than float32 and bfloat16"),
    ],
    ids=["odd", "f64"],
)
def test_others_are_declined(graph: Graph, reason: str) -> None:
    assert backend.supports(graph.nodes[0]).reason == reason
