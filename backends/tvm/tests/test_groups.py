"""Products of groups of rows, each with its matrix, and weights that are read in another order of dimensions."""

from __future__ import annotations

import pytest
import torch

from fairlead import interpret
from fairlead.ir import Builder, Graph, Role
from fairlead_tvm import TVMOptions, backend
from fairlead_tvm._turned import turned

GROUPS, INNER, COLUMNS = 4, 16, 70


def groups(rows: int | str, *, is_turned: bool = False) -> Graph:
    b = Builder()
    x, ends = b.input(f"f32[{rows}, {INNER}]"), b.input(f"i32[{GROUPS}]")
    shape = f"f32[{GROUPS}, {COLUMNS}, {INNER}]" if is_turned else f"f32[{GROUPS}, {INNER}, {COLUMNS}]"
    w = b.input(shape, role=Role.parameter)
    matrices = b.op("aten.permute.default", w, (0, -1, -2)) if is_turned else w
    b.output(b.op("aten._grouped_mm.default", x, matrices, ends, None, None, to=f"f32[{rows}, {COLUMNS}]"))
    return b.graph()


def by_rows(x: torch.Tensor, matrices: torch.Tensor, ends: list[int]) -> torch.Tensor:
    expected, first = torch.zeros(len(x), COLUMNS), 0
    for matrix, end in zip(matrices, ends, strict=True):
        if end > first:
            expected[first:end] = (x[first:end].double() @ matrix.double()).float()
            first = min(end, len(x))
    return expected


ENDS = {
    "some": [2, 2, 7, 40],
    "one": [0, 0, 0, 40],
    "rest": [3, 20, 33, 35],
    "none": [0, 0, 0, 0],
    "beyond": [3, 20, 90, 90],
}


@pytest.mark.parametrize("packed", [True, False], ids=["packed", "given"])
@pytest.mark.parametrize("ends", ENDS.values(), ids=ENDS)
def test_each_row_meets_the_matrix_of_its_group(ends: list[int], packed: bool) -> None:
    """What is behind the last end is zero, and an end behind the last row is the last row's."""
    x, matrices = torch.randn(40, INNER), torch.randn(GROUPS, INNER, COLUMNS)
    given = [x, torch.tensor(ends, dtype=torch.int32), matrices]
    for rows in (40, "n"):
        run = backend.compile(groups(rows), TVMOptions(threads="one"), {2: matrices} if packed else {})
        (found,) = run(given[:2] if packed else given)
        torch.testing.assert_close(found, by_rows(x, matrices, ends), rtol=0, atol=1e-5)


def test_a_weight_that_is_only_read_turned_is_packed_as_it_is_read() -> None:
    graph = groups(40, is_turned=True)
    (node,) = turned(graph, {2})[0].nodes
    assert node.op == "aten._grouped_mm.default"
    x, weight = torch.randn(40, INNER), torch.randn(GROUPS, COLUMNS, INNER)
    run = backend.compile(graph, TVMOptions(threads="one"), {2: weight})
    for made in (weight, weight * 2):
        run.refit({2: made})
        (found,) = run([x, torch.tensor(ENDS["some"], dtype=torch.int32)])
        torch.testing.assert_close(found, by_rows(x, made.transpose(1, 2), ENDS["some"]), rtol=0, atol=1e-5)


def test_a_weight_that_is_read_as_it_is_as_well_is_left_so() -> None:
    b = Builder()
    x, w = b.input("f32[3, 5]"), b.input("f32[5, 5]", role=Role.parameter)
    b.output(b.op("aten.mm.default", b.op("aten.mm.default", x, b.op("aten.permute.default", w, (1, 0))), w))
    graph = b.graph()
    assert turned(graph, {1}) == (graph, {})
    given = [torch.randn(3, 5), torch.randn(5, 5)]
    (found,) = backend.compile(graph, TVMOptions(threads="one"), {1: given[1]})(given[:1])
    torch.testing.assert_close(found, interpret.run(graph, given)[0])


def test_a_weight_that_is_given_out_turned_is_a_copy() -> None:
    b = Builder()
    w = b.input("f32[3, 5]", role=Role.parameter)
    b.output(b.op("aten.permute.default", w, (1, 0)))
    weight = torch.randn(3, 5)
    (found,) = backend.compile(b.graph(), TVMOptions(threads="one"), {0: weight})([])
    found.zero_()
    torch.testing.assert_close(backend.compile(b.graph(), TVMOptions(threads="one"), {0: weight})([])[0], weight.t())
    assert weight.abs().sum() > 0
