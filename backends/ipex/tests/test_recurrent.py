"""Layers of LSTMs whose weights are known: torch's numbers, of weights that are packed once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from fairlead import interpret
from fairlead.ir import Builder, Graph, Role
from fairlead_ipex import IpexOptions, _dtypes, _executable, backend
from fairlead_ipex._executable import IpexExecutable
from fairlead_ipex._recurrent import lstm_of_packed

FEATURES, WIDTH = 24, 32
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f64": torch.float64}


@pytest.fixture(autouse=True)
def inference() -> Iterator[None]:
    """As programs call it; where gradients might be wanted oneDNN has another kernel, which may round otherwise."""
    with torch.no_grad():
        yield


def layer(
    steps: int | str, batch: int | str, *, reverse: bool = False, biases: bool = True, dtype: str = "f32"
) -> Graph:
    b = Builder()
    data = b.input(f"{dtype}[{steps}, {batch}, {FEATURES}]")
    states = [b.input(f"{dtype}[1, {batch}, {WIDTH}]") for _ in range(2)]
    sizes = [f"[{4 * WIDTH}, {FEATURES}]", f"[{4 * WIDTH}, {WIDTH}]", *[f"[{4 * WIDTH}]"] * (2 * biases)]
    weights = [b.input(dtype + size, role=Role.parameter) for size in sizes]
    for result in b.ops("nn.lstm", data, *states, *weights, *[None] * (2 - 2 * biases), reverse):
        b.output(result)
    return b.graph()


def numbers_of(graph: Graph, steps: int, batch: int) -> list[torch.Tensor]:
    torch.manual_seed(0)
    sizes = {"s": steps, "n": batch}
    types = [item.value.tensor for item in graph.inputs]
    shapes = [[d if isinstance(d, int) else sizes[d] for d in t.shape] for t in types]
    return [(torch.randn(s) / 4).to(DTYPES[str(t.dtype)]) for s, t in zip(shapes, types, strict=True)]


def compiled(graph: Graph, numbers: list[torch.Tensor]) -> IpexExecutable:
    run = backend.compile(graph, IpexOptions(), dict(enumerate(numbers[3:], start=3)))
    assert isinstance(run, IpexExecutable)
    return run


def is_packed(run: IpexExecutable) -> bool:
    return any(n.target is lstm_of_packed for n in run.module.graph.nodes)


@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@pytest.mark.parametrize("biases", [True, False], ids=["biases", "none"])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.usefixtures("kernels")
def test_a_layer_is_torchs(dtype: str, biases: bool, reverse: bool) -> None:
    graph = layer(5, 3, reverse=reverse, biases=biases, dtype=dtype)
    numbers = numbers_of(graph, 5, 3)
    run = compiled(graph, numbers)
    assert is_packed(run) is (dtype == "f32" or _dtypes.multiplies_bfloat16())
    torch.testing.assert_close(run(numbers[:3]), tuple(interpret.run(graph, numbers)), rtol=0, atol=0)


@pytest.mark.parametrize(("steps", "batch"), [(1, 1), (7, 3), (40, 9), (3, 0)])
def test_any_number_of_steps_and_samples_may_come_where_it_is_unknown(steps: int, batch: int) -> None:
    graph = layer("s", "n")
    numbers = numbers_of(graph, steps, batch)
    run = compiled(graph, numbers)
    assert is_packed(run)
    torch.testing.assert_close(run(numbers[:3]), tuple(interpret.run(graph, numbers)), rtol=0, atol=1e-7)


def test_no_steps_are_refused_as_torch_refuses_them() -> None:
    graph = layer("s", 2)
    numbers = numbers_of(graph, 0, 2)
    for run in (lambda: compiled(graph, numbers)(numbers[:3]), lambda: interpret.run(graph, numbers)):
        with pytest.raises(RuntimeError, match="Expected sequence length to be larger than 0 in RNN"):
            run()


def test_nan_and_infinity_reach_the_results_that_they_reach_in_torch() -> None:
    graph = layer(4, 3)
    numbers = numbers_of(graph, 4, 3)
    numbers[0][1, 0, 0], numbers[0][2, 1, 3] = float("nan"), float("inf")
    made, expected = compiled(graph, numbers)(numbers[:3]), tuple(interpret.run(graph, numbers))
    assert made[0].isnan().any()
    torch.testing.assert_close(made, expected, rtol=0, atol=0, equal_nan=True)


def test_new_weights_are_packed_anew() -> None:
    graph = layer(5, 3)
    numbers = numbers_of(graph, 5, 3)
    run = compiled(graph, numbers)
    other = [*numbers[:3], *(n * 2 for n in numbers[3:])]
    run.refit(dict(enumerate(other[3:], start=3)))
    torch.testing.assert_close(run(other[:3]), tuple(interpret.run(graph, other)), rtol=0, atol=0)


def test_it_is_packed_within_what_inductor_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_executable, "is_worth_fusing", lambda graph: True)
    graph = layer(5, 3)
    numbers = numbers_of(graph, 5, 3)
    run = compiled(graph, numbers)
    assert "module.py" not in run.readable()
    assert is_packed(run)
    torch.testing.assert_close(tuple(run(numbers[:3])), tuple(interpret.run(graph, numbers)), rtol=0, atol=0)


def test_weights_that_are_not_known_are_torchs() -> None:
    graph = layer(5, 3)
    numbers = numbers_of(graph, 5, 3)
    run = backend.compile(graph, IpexOptions(), {})
    assert isinstance(run, IpexExecutable)
    assert not is_packed(run)
    torch.testing.assert_close(tuple(run(numbers)), tuple(interpret.run(graph, numbers)), rtol=0, atol=0)


def test_an_lstm_of_float64_which_onednn_has_not_is_torchs() -> None:
    graph = layer(5, 3, dtype="f64")
    numbers = numbers_of(graph, 5, 3)
    run = compiled(graph, numbers)
    assert not is_packed(run)
    torch.testing.assert_close(tuple(run(numbers[:3])), tuple(interpret.run(graph, numbers)), rtol=0, atol=0)


def test_a_graph_of_an_lstm_and_little_else_is_packed() -> None:
    assert backend.declines_graph(layer(500, 64)) is None
