"""Products of bfloat16 in float32."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from fairlead.interpret import run
from fairlead.ir import Dim, Graph, Role, TensorType, Token, Value, to_text, verify
from fairlead.passes import widen_products

from ._build import Builder, nodes_of, text, typed


def bf16(*shape: Dim) -> TensorType:
    return typed("bf16", *shape)


def weight(b: Builder, *shape: int) -> Value:
    return b.input(bf16(*shape), Role.parameter, "w")


def linear(b: Builder, x: Value, w: Value, bias: Value | None = None) -> Value:
    return b("aten.linear.default", x, w, bias, to=bf16(*x.tensor.shape[:-1], w.tensor.shape[0]))


def widened(graph: Graph, *static: int) -> str:
    """The nodes; the graph keeps every rule of the IR."""
    return nodes_of(widen_products(graph, static).graph)


def inputs_of(graph: Graph) -> list[torch.Tensor]:
    torch.manual_seed(0)
    drawn = []
    for value in (i.value for i in graph.inputs):
        shape = [n for n in value.tensor.shape if isinstance(n, int)]
        whole = value.tensor.dtype.is_integer
        drawn.append(torch.randint(0, 3, shape) if whole else torch.randn(shape).to(torch.bfloat16))
    return drawn


def test_a_product_reads_float32_and_is_rounded_once() -> None:
    b = Builder()
    graph = b.graph(linear(b, b.input(bf16("b", 8), name="x"), weight(b, 16, 8), weight(b, 16)))
    found = widen_products(graph, {1, 2})
    assert found.inputs == {1, 2}
    assert to_text(verify(found.graph)) == text(
        """
        symbol b in [2, inf] from in0.dim0
        graph @g inference {
          in %0 user "x" : bf16[b, 8]
          in %1 parameter "w" : f32[16, 8]
          in %2 parameter "w" : f32[16]
          %4 = aten._to_copy.default(%0, #dtype<f32>, none, none, none, false, none) : f32[b, 8]
          %3 = aten.linear.default(%4, %1, %2) : f32[b, 16]
          %5 = aten._to_copy.default(%3, #dtype<bf16>, none, none, none, false, none) : bf16[b, 16]
          out %5 user
        }
        """
    )


def test_what_two_products_read_is_cast_once() -> None:
    b = Builder()
    x = b.input(bf16(4, 8))
    found = widen_products(b.graph(linear(b, x, weight(b, 3, 8)), linear(b, x, weight(b, 5, 8))), {1, 2})
    assert [n.op for n in found.graph.nodes].count("aten._to_copy.default") == 3


def test_weights_that_change_are_cast_at_each_call() -> None:
    b = Builder()
    graph = b.graph(linear(b, b.input(bf16(4, 8)), weight(b, 16, 8)))
    assert not widen_products(graph).inputs
    assert widened(graph).count("#dtype<f32>") == 2


def test_views_of_a_weight_are_of_float32_too() -> None:
    b = Builder()
    x, w = b.input(bf16(4, 8)), weight(b, 2, 8, 16)
    picked = b("aten.select.int", w, 0, 1, to=bf16(8, 16))
    graph = b.graph(b("aten.mm.default", x, picked, to=bf16(4, 16)))
    assert widen_products(graph, {1}).inputs == {1}
    assert "aten.select.int(%1, 0, 1) : f32[8, 16]" in widened(graph, 1)
    assert widened(graph, 1).count("#dtype<f32>") == 1


def test_rows_of_a_weight_that_is_a_factor_as_well_are_rounded_back() -> None:
    b = Builder()
    index, w = b.input(typed("i64", 3)), weight(b, 16, 8)
    rows = b("aten.embedding.default", w, index, -1, False, False, to=bf16(3, 8))
    graph = b.graph(linear(b, rows, w))
    assert widened(graph, 1).splitlines()[:2] == [
        "%2 = aten.embedding.default(%1, %0, -1, false, false) : f32[3, 8]",
        "%4 = aten._to_copy.default(%2, #dtype<bf16>, none, none, none, false, none) : bf16[3, 8]",
    ]


def test_others_are_given_bfloat16() -> None:
    b = Builder()
    x, w = b.input(bf16(4, 8)), weight(b, 16, 8)
    twice = b("aten.add.Tensor", w, w, 1, to=bf16(16, 8))
    graph = b.graph(linear(b, x, w), twice)
    assert widen_products(graph, {1}).inputs == {1}
    assert "aten.add.Tensor(%4, %4, 1) : bf16[16, 8]" in widened(graph, 1)


def test_a_weight_that_is_a_result_stays() -> None:
    b = Builder()
    x, w = b.input(bf16(4, 8)), weight(b, 8, 8)
    shown = b("aten.permute.default", w, (1, 0), to=TensorType(w.tensor.dtype, (8, 8), (1, 8)))
    graph = b.graph(linear(b, x, w), shown)
    assert not widen_products(graph, {1}).inputs
    verify(widen_products(graph, {1}).graph)


def test_results_of_other_dtypes_and_unused_ones_stay() -> None:
    b = Builder()
    q = b.input(bf16(1, 2, 4, 8))
    out, lse = bf16(1, 2, 4, 8), typed("f32", 1, 2, 4)
    first, logsumexp = b.many("nn.scaled_dot_product_attention", q, q, q, None, 0.0, False, 0.5, to=(out, lse))
    second, _ = b.many("nn.scaled_dot_product_attention", q, q, q, None, 0.0, False, 0.5, to=(out, None))
    found = widened(b.graph(first, logsumexp, second))
    assert found.count("#dtype<bf16>") == 2
    assert found.count("#dtype<f32>") == 1


@pytest.mark.parametrize("dtype", ["f32", "f16", "f64"])
def test_products_of_other_dtypes_are_left_alone(dtype: str) -> None:
    b = Builder()
    x, w = b.input(typed(dtype, 4, 8)), b.input(typed(dtype, 8, 3))
    graph = b.graph(b("aten.mm.default", x, w, to=typed(dtype, 4, 3)))
    assert widen_products(graph, {1}).graph == graph


def test_a_product_of_a_stated_dtype_is_left_alone() -> None:
    b = Builder()
    x, w, ends = b.input(bf16(4, 8)), weight(b, 2, 8, 3), b.input(typed("i32", 2))
    stated = Token("dtype", "bf16")
    graph = b.graph(b("aten._grouped_mm.default", x, w, ends, None, stated, to=bf16(4, 3)))
    assert widen_products(graph, {1}).graph == graph


def _layer(b: Builder) -> Value:
    return linear(b, b.input(bf16(4, 8)), weight(b, 16, 8), weight(b, 16))


def _tied(b: Builder) -> Value:
    index, w = b.input(typed("i64", 3)), weight(b, 16, 8)
    return linear(b, b("aten.embedding.default", w, index, -1, False, False, to=bf16(3, 8)), w)


def _convolution(b: Builder) -> Value:
    x, w = b.input(bf16(1, 4, 9, 9)), weight(b, 6, 4, 3, 3)
    args = (None, (1, 1), (1, 1), (1, 1), False, (0, 0), 1)
    return b("aten.convolution.default", x, w, *args, to=bf16(1, 6, 9, 9))


@pytest.mark.parametrize("body", [_layer, _tied, _convolution])
def test_the_numbers_are_those_of_torch(body: Callable[[Builder], Value]) -> None:
    b = Builder()
    graph = b.graph(body(b))
    given = inputs_of(graph)
    found = widen_products(graph, {1, 2})
    wide = [x.float() if i in found.inputs else x for i, x in enumerate(given)]
    (here,), (torchs,) = run(found.graph, wide), run(graph, given)
    assert found.inputs
    assert here.dtype is torchs.dtype is torch.bfloat16
    torch.testing.assert_close(here, torchs, rtol=2**-7, atol=2**-7)
