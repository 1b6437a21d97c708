"""Products of groups of rows, each with its matrix, however the matrices lie."""

from __future__ import annotations

import pytest
import torch

from fairlead.ir import Builder, Graph, Role
from fairlead_openxla import OpenXLAOptions, backend
from fairlead_openxla._layouts import Layout, input_layouts
from fairlead_openxla._rules import wanted

GROUPS, INNER, COLUMNS = 4, 16, 70


def groups(rows: int | str, *, is_turned: bool = False, groups: int = GROUPS) -> Graph:
    b = Builder()
    x, ends = b.input(f"f32[{rows}, {INNER}]"), b.input(f"i32[{groups}]")
    shape = f"f32[{groups}, {COLUMNS}, {INNER}]" if is_turned else f"f32[{groups}, {INNER}, {COLUMNS}]"
    w = b.input(shape, role=Role.parameter)
    matrices = b.op("aten.permute.default", w, (0, 2, 1)) if is_turned else w
    b.output(b.op("aten._grouped_mm.default", x, matrices, ends, None, None, to=f"f32[{rows}, {COLUMNS}]"))
    return b.graph()


def by_rows(x: torch.Tensor, matrices: torch.Tensor, ends: list[int]) -> torch.Tensor:
    expected, first = torch.zeros(len(x), COLUMNS), 0
    for matrix, end in zip(matrices, ends, strict=True):
        expected[first:end] = (x[first:end].double() @ matrix.double()).float()
        first = max(first, min(end, len(x)))
    return expected


ENDS = {
    "some": [2, 2, 7, 150],
    "one": [0, 0, 0, 150],
    "even": [38, 76, 114, 150],
    "rest": [3, 20, 121, 125],
    "none": [0, 0, 0, 0],
    "beyond": [3, 20, 190, 190],
}


@pytest.mark.parametrize("is_turned", [True, False], ids=["turned", "as they are"])
@pytest.mark.parametrize("packed", [True, False], ids=["packed", "given"])
@pytest.mark.parametrize("ends", ENDS.values(), ids=ENDS)
def test_each_row_meets_the_matrix_of_its_group(ends: list[int], packed: bool, is_turned: bool) -> None:
    """What is behind the last end is zero, and an end behind the last row is the last row's."""
    x, matrices = torch.randn(150, INNER), torch.randn(GROUPS, INNER, COLUMNS)
    weight = matrices.transpose(1, 2).contiguous() if is_turned else matrices
    given = [x, torch.tensor(ends, dtype=torch.int32), weight]
    for rows in (150, "n"):
        run = backend.compile(groups(rows, is_turned=is_turned), OpenXLAOptions(), {2: weight} if packed else {})
        (found,) = run(given[:2] if packed else given)
        torch.testing.assert_close(found, by_rows(x, matrices, ends), rtol=0, atol=1e-5)


def test_of_two_tokens_each_row_may_have_a_group_of_its_own() -> None:
    x, matrices = torch.randn(4, INNER), torch.randn(8, INNER, COLUMNS)
    for ends in ([0, 1, 1, 2, 2, 3, 3, 4], [0, 0, 0, 0, 0, 4, 4, 4]):
        run = backend.compile(groups(4, groups=8), OpenXLAOptions(), {2: matrices})
        (found,) = run([x, torch.tensor(ends, dtype=torch.int32)])
        torch.testing.assert_close(found, by_rows(x, matrices, ends), rtol=0, atol=1e-5)


def test_rows_that_are_not_numbers_stay_within_their_group() -> None:
    x, matrices = torch.randn(150, INNER), torch.randn(GROUPS, INNER, COLUMNS)
    x[38:76] = torch.nan
    run = backend.compile(groups(150), OpenXLAOptions(), {2: matrices})
    (found,) = run([x, torch.tensor(ENDS["even"], dtype=torch.int32)])
    torch.testing.assert_close(found, by_rows(x, matrices, ENDS["even"]), rtol=0, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("is_turned", [True, False], ids=["turned", "as they are"])
def test_matrices_of_groups_lie_apart_with_their_columns_in_order_and_new_ones_count(is_turned: bool) -> None:
    graph = groups(150, is_turned=is_turned)
    apart = Layout((0, 1, 2) if is_turned else (0, 2, 1), apart=True)
    assert apart in input_layouts(graph, frozenset({2}), wanted)[graph.inputs[2].value.id]
    weight = torch.randn(GROUPS, COLUMNS, INNER) if is_turned else torch.randn(GROUPS, INNER, COLUMNS)
    for found, matrix in zip(apart.arrays(weight), weight if is_turned else weight.transpose(1, 2), strict=True):
        assert found.data_ptr() == matrix.data_ptr()
        torch.testing.assert_close(found, matrix, rtol=0, atol=0)
    run, x = backend.compile(graph, OpenXLAOptions(), {2: weight}), torch.randn(150, INNER)
    for made in (weight, weight * 2):
        run.refit({2: made})
        matrices = made.transpose(1, 2) if is_turned else made
        (found,) = run([x, torch.tensor(ENDS["some"], dtype=torch.int32)])
        torch.testing.assert_close(found, by_rows(x, matrices, ENDS["some"]), rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("shapes", "reason"),
    [
        (("f32[9, 8]", "f32[8, 9]"), "products of groups other than of rows with matrices of a known size"),
        (("f32[9, 8]", "f32[300, 8, 9]"), "products of 300 groups"),
    ],
)
def test_other_products_of_groups_are_declined(shapes: tuple[str, str], reason: str) -> None:
    b = Builder()
    x, w, ends = b.input(shapes[0]), b.input(shapes[1]), b.input("i32[4]")
    b.output(b.op("aten._grouped_mm.default", x, w, ends, None, None, to="f32[9, 9]"))
    (node,) = b.graph().nodes
    assert backend.supports(node).reason == reason
