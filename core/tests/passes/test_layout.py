"""Inputs that are a permuted row-major tensor are taken as that tensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
import torch

from fairlead.interpret import run
from fairlead.ir import Dim, Role, TensorType, to_text, verify
from fairlead.passes import row_major_inputs

from ._build import Builder, f32, text


def orders(type_: TensorType, *kept: int) -> Mapping[int, tuple[int, ...]]:
    b = Builder()
    x = b.input(type_)
    return row_major_inputs(b.graph(b("aten.neg.default", x, to=f32(*type_.shape))), kept).orders


def test_a_transposed_weight_is_taken_as_it_lies_and_transposed_in_the_graph() -> None:
    b = Builder()
    x, w = b.input(f32(2, 4)), b.input(f32(4, 3, strides=(1, 4)), Role.saved, "permute")
    found = row_major_inputs(b.graph(b("aten.mm.default", x, w, to=f32(2, 3)), w))
    assert found.orders == {1: (1, 0)}
    assert to_text(verify(found.graph)) == text(
        """
        graph @g inference {
          in %0 user "" : f32[2, 4]
          in %1 saved "permute" : f32[3, 4]
          %3 = aten.permute.default(%1, [1, 0]) : f32[4, 3] strides[1, 4]
          %2 = aten.mm.default(%0, %3) : f32[2, 3]
          out %2 user
          out %3 user
        }
        """
    )


@pytest.mark.parametrize(
    ("shape", "strides", "order"),
    [
        ((2, 3, 4, 5), (60, 1, 15, 3), (0, 2, 3, 1)),  # channels last
        ((2, 3, 1, 5), (15, 1, 7, 3), (2, 0, 3, 1)),  # the stride of one element means nothing
        (("b", 3, 4), (12, 1, 3), (0, 2, 1)),
        ((3, "b", 4), (4, 12, 1), (1, 0, 2)),
        ((2, 3), (6, 2), None),  # a slice
        ((2, 3), (0, 1), None),  # expanded
        ((2, 3), (3, 1), None),
        ((1, 3), (9, 1), None),
        ((0, 3), (1, 0), None),
    ],
)
def test_only_permutations_without_gaps_are_taken_so(
    shape: tuple[Dim, ...], strides: tuple[Dim, ...], order: tuple[int, ...] | None
) -> None:
    assert orders(f32(*shape, strides=strides)) == ({} if order is None else {0: order})


def test_inputs_that_are_kept_and_graphs_of_row_major_inputs_stay_as_they_are() -> None:
    assert orders(f32(2, 3, strides=(1, 2)), 0) == {}
    b = Builder()
    x = b.input(f32(2, 3))
    graph = b.graph(b("aten.neg.default", x, to=f32(2, 3)))
    assert row_major_inputs(graph).graph is graph


def test_a_symbol_is_read_where_it_lies_now_and_the_graph_computes_what_it_did() -> None:
    b = Builder()
    x = b.input(f32(2, "b", 3, strides=(3, 6, 1)))
    graph = b.graph(
        b("aten.sum.dim_IntList", x, (1,), False, None, to=f32(2, 3)), b("aten.neg.default", x, to=x.tensor)
    )
    found = row_major_inputs(graph)
    assert verify(found.graph).symbols[0].source == (0, 0)
    given = torch.randn(5, 2, 3).permute(1, 0, 2)

    def laid_out(inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        assert inputs[0].is_contiguous()
        return run(found.graph, list(inputs))

    for actual, wanted in zip(found.around(laid_out)([given]), run(graph, [given]), strict=True):
        assert torch.equal(actual, wanted)


def test_only_inputs_that_are_passed_are_permuted() -> None:
    b = Builder()
    x, w = (b.input(f32(2, 3, strides=(1, 2))) for _ in range(2))
    found = row_major_inputs(b.graph(b("aten.add.Tensor", x, w, 1, to=f32(2, 3))), [0])
    assert found.orders == {1: (1, 0)}
    given = torch.randn(3, 2)
    assert found.around(lambda inputs: [t.shape for t in inputs], [0])([given.t()]) == [given.shape]
