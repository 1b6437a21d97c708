"""Dropout as a draw and two products."""

from __future__ import annotations

import pytest
import torch

from fairlead._torch_types import TORCH_DTYPES
from fairlead.interpret import run
from fairlead.ir import DType, Graph, Kind, Node, TensorType, Value
from fairlead.passes import draws, draws_random_numbers, split_dropout

from ._build import Builder, f32, nodes_of, rewritten, text, typed


def dropout(b: Builder, x: Value, p: float, train: bool | None = True) -> Graph:
    return b.graph(*b.many("aten.native_dropout.default", x, p, train, to=(x.tensor, typed("bool", *x.tensor.shape))))


def test_a_dropout_is_a_mask_that_torch_draws_and_two_products() -> None:
    b = Builder(Kind.forward)
    assert rewritten(split_dropout, dropout(b, b.input(f32("b", 8), name="x"), 0.25)) == text(
        """
        symbol b in [2, inf] from in0.dim0
        graph @g forward {
          in %0 user "x" : f32[b, 8]
          %3 = nn.bernoulli.default([<b>, 8], 0.75, #dtype<bool>, #device<cpu>) : bool[b, 8]
          %4 = aten.mul.Tensor(%0, %3) : f32[b, 8]
          %5 = aten.mul.Tensor(%4, 1.3333333333333333) : f32[b, 8]
          out %5 user
          out %3 user
        }
        """
    )


def test_dropping_everything_divides_nothing_by_zero() -> None:
    b = Builder(Kind.forward)
    assert "aten.mul.Tensor(%4, 0.0)" in nodes_of(split_dropout(dropout(b, b.input(f32(2)), 1.0)))


def test_a_dropout_that_is_off_stays() -> None:
    b = Builder()
    graph = dropout(b, b.input(f32(2)), 0.5, train=False)
    assert split_dropout(graph) == graph


@pytest.mark.parametrize("p", [0.0, 0.1, 0.35, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16", "f64"])
def test_the_numbers_are_those_of_eager_under_the_same_seed(dtype: str, p: float) -> None:
    b = Builder(Kind.forward)
    graph = dropout(b, b.input(typed(dtype, 40, 50)), p)
    x = torch.randn(40, 50).to(TORCH_DTYPES[DType(dtype)])
    torch.manual_seed(3)
    wanted = torch.nn.functional.dropout(x, p)
    torch.manual_seed(3)
    whole = run(graph, [x])
    torch.manual_seed(3)
    parts = run(split_dropout(graph), [x])
    assert torch.equal(whole[0], wanted)
    assert torch.equal(parts[0], wanted)
    assert torch.equal(parts[1], whole[1])


@pytest.mark.parametrize(
    ("shape", "order"),
    [((40, 50), (1, 0)), ((2, 3, 4, 5), (0, 3, 1, 2)), ((1, 6, 7), (0, 2, 1)), ((4, 1, 5), (2, 1, 0))],
)
def test_the_numbers_are_those_of_eager_where_dimensions_lie_in_another_order(
    shape: tuple[int, ...], order: tuple[int, ...]
) -> None:
    x = torch.randn(shape).permute(order)
    b = Builder(Kind.forward)
    graph = dropout(b, b.input(f32(*x.shape, strides=x.stride())), 0.5)
    torch.manual_seed(3)
    wanted = torch.nn.functional.dropout(x, 0.5)
    torch.manual_seed(3)
    assert torch.equal(run(split_dropout(graph), [x])[0], wanted)


def test_a_mask_is_drawn_in_the_order_of_memory() -> None:
    b = Builder(Kind.forward)
    x = b.input(f32("b", "s", 8, strides=(8, "8*b", 1)))
    assert nodes_of(split_dropout(dropout(b, x, 0.5))).splitlines()[:2] == [
        "%3 = nn.bernoulli.default([<s>, <b>, 8], 0.5, #dtype<bool>, #device<cpu>) : bool[s, b, 8]",
        "%4 = aten.permute.default(%3, [1, 0, 2]) : bool[b, s, 8] strides[8, 8*b, 1]",
    ]


def test_a_mask_for_memory_with_gaps_is_drawn_as_it_is() -> None:
    b = Builder(Kind.forward)
    found = nodes_of(split_dropout(dropout(b, b.input(f32(4, 5, strides=(10, 2))), 0.5)))
    assert found.startswith("%3 = nn.bernoulli.default([4, 5]")


def test_drawing_ops_are_told_from_others() -> None:
    assert draws_random_numbers("aten.rand.default")
    assert draws_random_numbers("aten.normal.Tensor_float")
    assert draws_random_numbers("nn.bernoulli.default")
    assert not draws_random_numbers("aten.add.Tensor")
    assert not draws_random_numbers("vendor.rand.default")


@pytest.mark.parametrize(("kind", "place"), [("flash", 3), ("efficient", 5), ("cudnn", 5)])
def test_a_kernel_of_attention_draws_where_it_drops(kind: str, place: int) -> None:
    for p in (0.0, 0.1):
        args = tuple(p if i == place else None for i in range(7))
        assert draws(Node(f"aten._scaled_dot_product_{kind}_attention.default", args, ())) is (p > 0)


def test_a_dropout_on_another_device_is_drawn_whole() -> None:
    """CUDA's kernel of a dropout draws other numbers than its ``bernoulli_``."""
    b = Builder()
    x = b.input(TensorType(DType.f32, (8,), device="cuda:0"))
    mask = TensorType(DType.bool, (8,), device="cuda:0")
    graph = b.graph(*b.many("aten.native_dropout.default", x, 0.5, True, to=(x.tensor, mask)))
    assert split_dropout(graph) == graph
