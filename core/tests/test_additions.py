"""Many rows that are added to rows of a tensor are added by ``index_add``, to the same effect."""

from __future__ import annotations

import pytest
import torch

from fairlead._eager import backend
from fairlead.backend import NoOptions
from fairlead.ir import Graph, parse_graph

ROWS = torch.randint(-50, 50, (300,), generator=torch.Generator().manual_seed(0))


def additions(*, dtype: str = "f32", values: str = "300, 16", places: str = "i64[300]", adds: bool = True) -> Graph:
    return parse_graph(
        f"""graph @g inference {{
  in %0 user "x" : {dtype}[50, 16]
  in %1 user "places" : {places}
  in %2 user "values" : {dtype}[{values}]
  %3 = aten.index_put.default(%0, [%1], %2, {str(adds).lower()}) : {dtype}[50, 16]
  out %3 user
}}"""
    )


def eager(graph: Graph, *inputs: torch.Tensor) -> torch.Tensor:
    (found,) = backend.compile(graph, NoOptions(), {})(inputs)
    assert isinstance(found, torch.Tensor)
    return found


@pytest.mark.parametrize("shape", [(300, 16), (1, 16), (300, 1), (16,), ()])
def test_rows_are_added_each_time_from_either_end(shape: tuple[int, ...]) -> None:
    x, values = torch.zeros(50, 16), torch.randn(shape)
    found = eager(additions(values=", ".join(map(str, shape))), x, ROWS, values)
    right = torch.zeros(50, 16, dtype=torch.float64)
    right.index_put_((ROWS,), values.double(), accumulate=True)
    torch.testing.assert_close(found.double(), right, rtol=1e-5, atol=1e-5)
    assert not x.any()


def test_integers_and_other_writes_are_as_torch_has_them() -> None:
    x, values = torch.zeros(50, 16, dtype=torch.int64), torch.arange(4800).view(300, 16)
    added = torch.zeros(50, 16, dtype=torch.int64).index_put_((ROWS,), values, accumulate=True)
    assert torch.equal(eager(additions(dtype="i64"), x, ROWS, values), added)
    once, numbers = torch.arange(50).flip(0), torch.randn(50, 16)
    graph = additions(places="i64[50]", values="50, 16", adds=False)
    assert torch.equal(eager(graph, torch.zeros(50, 16), once, numbers), numbers.flip(0))
    mask = torch.arange(50) % 2 == 0
    masked = additions(places="bool[50]", values="25, 16")
    assert torch.equal(eager(masked, torch.ones(50, 16), mask, torch.ones(25, 16))[mask], torch.full((25, 16), 2.0))


@pytest.mark.parametrize("place", [50, -51])
def test_a_place_that_is_not_there_is_an_error(place: int) -> None:
    with pytest.raises(IndexError):
        eager(additions(), torch.zeros(50, 16), torch.full((300,), place), torch.randn(300, 16))
