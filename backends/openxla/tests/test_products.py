"""Products with weights, however many rows there are and however the weight lies for so many."""

from __future__ import annotations

import pytest
import torch

from fairlead.ir import DType, Graph, Input, Kind, Node, Output, TensorType, Value
from fairlead_openxla import OpenXLAOptions, backend
from fairlead_openxla._layouts import Layout, matrix

OPS = {"aten.linear.default": True, "aten.mm.default": False}
"""Whether the weight is read as its transpose."""


def product(op: str, rows: int | str, inner: int, columns: int) -> tuple[Graph, Node]:
    shape = (columns, inner) if OPS[op] else (inner, columns)
    x, w, y = (Value(i, TensorType(DType.f32, s)) for i, s in enumerate([(rows, inner), shape, (rows, columns)]))
    node = Node(op, (x, w, None) if OPS[op] else (x, w), (y,))
    return Graph("g", Kind.inference, (Input(x), Input(w)), (node,), (Output(y),), ()), node


@pytest.mark.parametrize("columns", [96, 1024])
@pytest.mark.parametrize("rows", [1, 8, 32, 200])
@pytest.mark.parametrize("op", OPS)
def test_a_product_with_a_weight_is_eagers_for_any_rows(op: str, rows: int, columns: int) -> None:
    g, _ = product(op, rows, 128, columns)
    x, weight = torch.randn(rows, 128), torch.randn(128, columns)
    run = backend.compile(g, OpenXLAOptions(), {1: weight.T.contiguous() if OPS[op] else weight})
    torch.testing.assert_close(run([x])[0], x @ weight, rtol=1e-4, atol=1e-4)


def layout(op: str, rows: int | str, columns: int) -> Layout | None:
    _, node = product(op, rows, 768, columns)
    found = matrix(1, transposed=OPS[op])(node)
    return None if found is None else found[1]


def test_for_some_dozens_of_rows_a_weight_of_a_layer_is_read_where_it_lies() -> None:
    assert layout("aten.linear.default", 96, 3072) is None
    assert layout("aten.mm.default", 96, 3072) == Layout((1, 0))


@pytest.mark.parametrize("rows", [256, "s"])
def test_columns_are_cut_where_their_rows_would_share_lines(rows: int | str) -> None:
    assert layout("aten.linear.default", rows, 3072) == Layout((1, 0), 384)
    assert layout("aten.linear.default", rows, 768) == Layout((1, 0))


def test_columns_are_not_cut_for_a_few_rows() -> None:
    assert layout("aten.mm.default", 4, 3072) == Layout((0, 1))
