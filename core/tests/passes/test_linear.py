"""Linear layers put together again."""

from __future__ import annotations

import pytest

from fairlead.ir import Dim, Kind, Role, TensorType, Value
from fairlead.passes import recognize_composites

from ._build import Builder, f32, nodes_of, rewritten, text


def product(b: Builder, x: Value, weight: Value, bias: Value | None = None) -> Value:
    """``x @ weight.T + bias`` of matrices, as AOTAutograd has it."""
    out, inner = weight.tensor.shape
    turned = b("aten.permute.default", weight, (1, 0), to=f32(inner, out, strides=(1, inner)))
    to = f32(x.tensor.shape[0], out)
    if bias is None:
        return b("aten.mm.default", x, turned, to=to)
    return b("aten.addmm.default", bias, x, turned, 1, 1, to=to)


def reshaped(b: Builder, x: Value, *shape: Dim) -> Value:
    return b("aten.view.default", x, shape, to=f32(*shape))


def layer(b: Builder, x: Value, weight: Value, bias: Value | None = None) -> Value:
    """The same of ``x`` of three dimensions, of which the first is 2 and the second 5."""
    flat = reshaped(b, x, 10, x.tensor.shape[-1])
    return reshaped(b, product(b, flat, weight, bias), 2, 5, weight.tensor.shape[0])


def test_a_product_with_a_transposed_matrix_is_a_linear_layer() -> None:
    b = Builder()
    x, weight = b.input(f32("b", 8), name="x"), b.input(f32(16, 8), Role.parameter, "fc.weight")
    bias = b.input(f32(16), Role.parameter, "fc.bias")
    assert rewritten(recognize_composites, b.graph(product(b, x, weight, bias))) == text(
        """
        symbol b in [2, inf] from in0.dim0
        graph @g inference {
          in %0 user "x" : f32[b, 8]
          in %1 parameter "fc.weight" : f32[16, 8]
          in %2 parameter "fc.bias" : f32[16]
          %5 = aten.linear.default(%0, %1, %2) : f32[b, 16]
          out %5 user
        }
        """
    )


def test_without_a_bias_it_is_one_too() -> None:
    b = Builder()
    graph = b.graph(product(b, b.input(f32(4, 8)), b.input(f32(16, 8))))
    assert nodes_of(recognize_composites(graph)) == "%4 = aten.linear.default(%0, %1, none) : f32[4, 16]\nout %4 user"


def test_views_around_it_are_part_of_it() -> None:
    b = Builder()
    graph = b.graph(layer(b, b.input(f32(2, 5, 8)), b.input(f32(16, 8)), b.input(f32(16))))
    assert nodes_of(recognize_composites(graph)) == text(
        """
        %8 = aten.linear.default(%0, %1, %2) : f32[2, 5, 16]
        out %8 user
        """
    )


def test_layers_that_follow_each_other_are_all_found() -> None:
    b = Builder()
    first, second = b.input(f32(16, 8)), b.input(f32(4, 16))
    graph = b.graph(layer(b, layer(b, b.input(f32(2, 5, 8)), first), second))
    assert nodes_of(recognize_composites(graph)) == text(
        """
        %12 = aten.linear.default(%2, %0, none) : f32[2, 5, 16]
        %14 = aten.linear.default(%12, %1, none) : f32[2, 5, 4]
        out %14 user
        """
    )


def test_the_result_of_a_layer_may_be_the_weight_of_another() -> None:
    b = Builder()
    weight = product(b, b.input(f32(16, 4)), b.input(f32(8, 4)))
    graph = b.graph(product(b, b.input(f32(3, 8)), weight))
    assert nodes_of(recognize_composites(graph)) == text(
        """
        %7 = aten.linear.default(%0, %1, none) : f32[16, 8]
        %8 = aten.linear.default(%4, %7, none) : f32[3, 16]
        out %8 user
        """
    )


def test_a_flat_result_that_others_use_stays() -> None:
    b = Builder()
    flat = product(b, reshaped(b, b.input(f32(2, 5, 8)), 10, 8), b.input(f32(16, 8)))
    relu = b("aten.relu.default", flat, to=f32(10, 16))
    assert nodes_of(recognize_composites(b.graph(relu, reshaped(b, flat, 2, 5, 16)))) == text(
        """
        %1 = aten.view.default(%0, [10, 8]) : f32[10, 8]
        %7 = aten.linear.default(%1, %2, none) : f32[10, 16]
        %5 = aten.relu.default(%7) : f32[10, 16]
        %6 = aten.view.default(%7, [2, 5, 16]) : f32[2, 5, 16]
        out %5 user
        out %6 user
        """
    )


@pytest.mark.parametrize("shape", [(5, 2, 16), (10, 4, 4), (10, 16, 1)])
def test_a_view_into_another_shape_stays(shape: tuple[int, ...]) -> None:
    b = Builder()
    flat = product(b, reshaped(b, b.input(f32(2, 5, 8)), 10, 8), b.input(f32(16, 8)))
    found = nodes_of(recognize_composites(b.graph(reshaped(b, flat, *shape))))
    assert "aten.linear.default(%1, %2, none) : f32[10, 16]" in found
    assert f"aten.view.default(%6, [{', '.join(map(str, shape))}])" in found


def test_a_view_that_does_not_flatten_the_leading_dimensions_stays() -> None:
    b = Builder()
    flat = product(b, reshaped(b, b.input(f32(2, 4, 10)), 10, 8), b.input(f32(16, 8)))
    assert "aten.view.default(%0, [10, 8])" in nodes_of(recognize_composites(b.graph(reshaped(b, flat, 2, 5, 16))))


@pytest.mark.parametrize("bias", [f32(4, 16), f32(1, 16), f32(1), f32(4, 1), f32()])
def test_a_bias_of_another_shape_is_no_bias(bias: TensorType) -> None:
    b = Builder()
    graph = b.graph(product(b, b.input(f32(4, 8)), b.input(f32(16, 8)), b.input(bias)))
    assert recognize_composites(graph) == graph


@pytest.mark.parametrize(("beta", "alpha"), [(2, 1), (1, 0.5), (0, 1)])
def test_a_scaled_product_is_no_layer(beta: float, alpha: float) -> None:
    b = Builder()
    x, weight, bias = b.input(f32(4, 8)), b.input(f32(16, 8)), b.input(f32(16))
    turned = b("aten.permute.default", weight, (1, 0), to=f32(8, 16))
    graph = b.graph(b("aten.addmm.default", bias, x, turned, beta, alpha, to=f32(4, 16)))
    assert recognize_composites(graph) == graph


def test_a_product_with_a_matrix_that_is_not_transposed_stays() -> None:
    """GPT-2 keeps its weights the other way round."""
    b = Builder()
    graph = b.graph(
        b("aten.addmm.default", b.input(f32(16)), b.input(f32(4, 8)), b.input(f32(8, 16)), 1, 1, to=f32(4, 16))
    )
    assert recognize_composites(graph) == graph


def test_the_products_of_backward_graphs_are_no_layers() -> None:
    b = Builder(Kind.backward)
    graph = b.graph(product(b, b.input(f32(4, 8)), b.input(f32(16, 8))))
    assert recognize_composites(graph) == graph


def test_forward_graphs_of_training_have_layers() -> None:
    b = Builder(Kind.forward)
    graph = b.graph(product(b, b.input(f32(4, 8)), b.input(f32(16, 8))))
    assert [n.op for n in recognize_composites(graph).nodes] == ["aten.linear.default"]
