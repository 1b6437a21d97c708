"""What is added at places that come several times is added each time, however many threads ONNX Runtime has."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

import fairlead


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    """With one, ONNX Runtime's ScatterND adds in order."""
    torch._dynamo.reset()
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(threads)


def neighbours(x: Tensor, places: Tensor) -> Tensor:
    return torch.zeros_like(x).index_add(0, places[1], x[places[0]])


def pairs(x: Tensor, places: Tensor) -> Tensor:
    grid = x.new_zeros(20, 50, x.shape[1])
    return grid.index_put((places[0] % 20, places[1] % 50 - 50), x[places[0]], accumulate=True)


@pytest.mark.parametrize("add", [neighbours, pairs])
@pytest.mark.parametrize("dynamic", [False, True])
def test_sums_at_repeated_places_are_right_in_every_call(add: Callable[..., Tensor], dynamic: bool) -> None:
    compiled = fairlead.compile(add, backend="onnxrt", fallback=(), dynamic=dynamic)
    for _ in range(4):
        x, places = torch.randn(1000, 2), torch.randint(0, 1000, (2, 8000))
        torch.testing.assert_close(compiled(x, places), add(x, places), rtol=1e-4, atol=1e-4)


def test_gradients_of_words_that_come_often_are_right() -> None:
    table = torch.nn.Embedding(50, 4)
    compiled = fairlead.compile(table, backend="onnxrt", fallback=())
    for _ in range(4):
        words, weight = torch.randint(0, 50, (8, 500)), torch.randn(8, 500, 4)
        table.zero_grad()
        (compiled(words) * weight).sum().backward()
        mine = table.weight.grad
        table.zero_grad()
        (table(words) * weight).sum().backward()
        assert mine is not None
        torch.testing.assert_close(mine, table.weight.grad, rtol=1e-4, atol=1e-4)


def test_places_out_of_range_are_an_error_along_each_dimension() -> None:
    def add(grid: Tensor, first: Tensor, second: Tensor) -> Tensor:
        return grid.index_put((first, second), grid.new_ones(1), accumulate=True)

    compiled = fairlead.compile(add, backend="onnxrt", fallback=())
    grid, good = torch.zeros(3, 4), torch.tensor([-3, 2, 2])
    torch.testing.assert_close(compiled(grid, good, good), add(grid, good, good))
    with pytest.raises(fairlead.FairleadError, match="out of"):
        compiled(grid, torch.tensor([0, 1, 0]), torch.tensor([0, 4, 0]))  # in range as one number: 8 of 12


def test_more_than_torch_adds_quicker_is_left_to_it() -> None:
    def layers(x: Tensor, wide: Tensor, places: Tensor) -> Tensor:
        return neighbours(x @ wide @ wide.t(), places)  # work enough that ONNX Runtime is worth its turn

    compiled = fairlead.compile(layers, backend="onnxrt", benchmark=False)
    x, wide, places = torch.randn(1000, 64), torch.randn(64, 16384) / 128, torch.randint(0, 1000, (2, 8000))
    torch.testing.assert_close(compiled(x, wide, places), layers(x, wide, places), rtol=1e-4, atol=1e-4)
    (reason,) = {
        n.reason for g in compiled.fairlead.placement.graphs for n in g.nodes if n.op == "aten.index_put.default"
    }
    assert reason.startswith("slower than eager here: ONNX Runtime combines 512000 numbers")
