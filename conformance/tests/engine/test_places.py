"""Places of equal elements: any that is right passes, others do not, and where an order is promised it counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from fairlead.ir import Builder, Graph

from .faulty import Faulty, failure

MISMATCH = ("FAIL_MISMATCH", "values")
PASSES = ("", "")

X = torch.tensor([[2.0, 1.0, 2.0, 1.0, 3.0], [4.0, 4.0, 4.0, 0.0, 0.0], [1.0, 5.0, 0.0, 5.0, 1.0]])

Change = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
"""Of the input, the values and their places, what a backend gives."""


def two(op: str, *args: Any, **named: Any) -> Graph:
    """A graph of an op whose results are values and their places."""
    b = Builder("two")
    for result in b.ops(op, b.input("f32[3, 5]", "x"), *args, **named):
        b.output(result)
    return b.graph()


def judged(graph: Graph, change: Change) -> tuple[str, str]:
    """What becomes of a backend whose values and places are changed, ."""
    from fairlead.interpret import run

    def faulty(graph: Graph, inputs: Any) -> Any:
        return change(inputs[0], *run(graph, inputs))

    return failure(Faulty(faulty, extern_aten=("*",)), graph, [X])


OPEN = {
    "sort": two("aten.sort.default", 1, False),
    "sort, descending": two("aten.sort.default", 1, True),
    "sort, not stable": two("aten.sort.stable", stable=False, dim=1),
    "topk": two("aten.topk.default", 2),
    "kthvalue": two("aten.kthvalue.default", 4),
    "median": two("aten.median.dim", 1),
    "median, dimension kept": two("aten.median.dim", 1, True),
    "nanmedian": two("aten.nanmedian.dim", -1),
    "mode": two("aten.mode.default", 1),
    "cummax": two("aten.cummax.default", 1),
    "cummin": two("aten.cummin.default", 1),
}
FIRST = {
    "max": two("aten.max.dim", 1),
    "min": two("aten.min.dim", 1),
    "stable sort": two("aten.sort.stable", stable=True, dim=1),
}


def honest(x: torch.Tensor, values: torch.Tensor, places: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return values, places


def last_of_equals(x: torch.Tensor, values: torch.Tensor, places: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Equal elements are taken from the end of the row."""
    rows = places.reshape(3, -1).clone()
    for row, own in zip(rows, x, strict=True):
        taken: set[int] = set()
        for i, place in enumerate(row.tolist()):
            row[i] = max(j for j in range(5) if own[j] == own[place] and j not in taken)
            taken |= {int(row[i])}
    return values, rows.reshape(places.shape)


def first_so_far(x: torch.Tensor, values: torch.Tensor, places: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Equal elements are taken from the beginning of the row, again and again."""
    rows = places.clone()
    for row, own in zip(rows, x, strict=True):
        for i, place in enumerate(row.tolist()):
            row[i] = min(j for j in range(5) if own[j] == own[place])
    return values, rows


def by_count(number: int, apart: int = 0) -> Change:
    """The one of a row's different values that is so often there, in order of how often; its place, moved by that."""

    def change(x: torch.Tensor, values: torch.Tensor, places: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        counts = (x[:, :, None] == x[:, None, :]).sum(1) * 8 + torch.arange(5)
        found = counts.argsort(1, descending=True)[:, number]
        return x.gather(1, found[:, None])[:, 0], (found + apart) % 5

    return change


def other_places(name: str) -> Change:
    return first_so_far if name.startswith("cum") else last_of_equals


@pytest.mark.parametrize("name", OPEN)
def test_another_place_of_an_equal_element_passes(name: str) -> None:
    assert judged(OPEN[name], honest) == PASSES
    assert judged(OPEN[name], other_places(name)) == PASSES


@pytest.mark.parametrize("name", OPEN)
def test_a_place_of_another_element_does_not(name: str) -> None:
    assert judged(OPEN[name], lambda x, v, p: (v, (p + 1) % 5)) == MISMATCH
    assert judged(OPEN[name], lambda x, v, p: (v, p + 5)) == MISMATCH
    assert judged(OPEN[name], lambda x, v, p: (v, p - 5)) == MISMATCH


@pytest.mark.parametrize("name", ["sort", "sort, descending", "sort, not stable", "topk"])
def test_no_place_is_told_twice(name: str) -> None:
    assert judged(OPEN[name], first_so_far) == MISMATCH


def test_a_running_maximum_is_not_in_what_comes_later() -> None:
    later = lambda x, v, p: (v, torch.where(x == v, torch.arange(5), p).flip(1).cummax(1).values.flip(1))  # noqa: E731
    assert judged(OPEN["cummax"], later) == MISMATCH


def test_any_value_that_is_most_frequent_is_a_mode_with_its_own_place() -> None:
    assert judged(OPEN["mode"], by_count(0)) == PASSES
    assert judged(OPEN["mode"], by_count(0, apart=1)) == MISMATCH
    assert judged(OPEN["mode"], by_count(4)) == MISMATCH


@pytest.mark.parametrize("name", FIRST)
def test_where_an_order_is_promised_it_counts(name: str) -> None:
    assert judged(FIRST[name], honest) == PASSES
    assert judged(FIRST[name], last_of_equals) == MISMATCH
