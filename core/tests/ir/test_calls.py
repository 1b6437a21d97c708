"""The verifier holds nodes against the signatures of their ops."""

from __future__ import annotations

import pytest

from fairlead.errors import VerificationError
from fairlead.ir import (
    Argument,
    DimExpr,
    DType,
    Graph,
    Input,
    Kind,
    Node,
    Output,
    Role,
    ScalarType,
    TensorType,
    Token,
    Value,
    verify,
)

X = Value(0, TensorType(DType.f32, (2, 3)))
N = Value(1, ScalarType(DType.i64))
Y, Z = (Value(i, X.type) for i in (2, 3))
F32 = Token("dtype", "f32")


def graph(op: str, args: tuple[Argument, ...], *results: Value | None, regions: tuple[Graph, ...] = ()) -> Graph:
    node = Node(op, args, results or (Y,), None, regions)
    outputs = tuple(Output(r) for r in node.results if r is not None)
    return Graph("g", Kind.inference, (Input(X), Input(N, Role.symbol, "n")), (node,), outputs)


@pytest.mark.parametrize(
    ("op", "args"),
    [
        ("aten.add.Tensor", (X, X, 1)),
        ("aten.add.Tensor", (X, 2.5, 1)),
        ("aten.add.Tensor", (X, N, 1)),
        ("aten.select.int", (X, 0, N)),
        ("aten.clamp.default", (X, None, 1.0)),
        ("aten.index.Tensor", (X, (None, X))),
        ("aten.full.default", ((2, 3), 0, F32, None, Token("device", "cpu"), False)),
        ("aten.avg_pool2d.default", (X, 2, (), 0, False, True, None)),
        ("aten.gelu.default", (X, "none")),
        ("mylib.anything.default", ("at all", 1, 2, 3)),
    ],
)
def test_a_call_that_fits_passes(op: str, args: tuple[Argument, ...]) -> None:
    assert verify(graph(op, args))


@pytest.mark.parametrize(
    ("op", "args", "message"),
    [
        ("aten.relu.default", (), "node 0 (aten.relu.default) has 0 arguments, and the op takes 1"),
        ("aten.add.Tensor", (X, X), "node 0 (aten.add.Tensor) has 2 arguments, and the op takes 3"),
        ("aten.relu.default", ("x",), "has for 'self' an argument that is no Tensor"),
        ("aten.relu.default", (None,), "has for 'self' an argument that is no Tensor"),
        ("aten.add.Tensor", (X, X, X), "has for 'alpha' an argument that is no Scalar"),
        ("aten.select.int", (X, True, 0), "has for 'dim' an argument that is no int"),
        ("aten.permute.default", (X, (0, 1.5)), "has for 'dims' an argument that is no int[]"),
        ("aten.permute.default", (X, 1), "has for 'dims' an argument that is no int[]"),
        ("aten.gelu.default", (X, None), "has for 'approximate' an argument that is no str"),
        ("aten.argmax.default", (X, 0, 1), "has for 'keepdim' an argument that is no bool"),
        ("aten.rand.default", ((2, 3), Token("layout", "strided"), None, None, None), "is no ScalarType?"),
        ("aten.index.Tensor", (X, ("x",)), "has for 'indices' an argument that is no Tensor?[]"),
        ("aten.max.dim", (X, 0, False), "node 0 (aten.max.dim) has 1 results, and the op has 2"),
        ("hop.cond", (X, (X,)), "node 0 (hop.cond) has 0 regions, and the op has 2"),
    ],
)
def test_a_call_that_does_not_fit_is_named(op: str, args: tuple[Argument, ...], message: str) -> None:
    with pytest.raises(VerificationError) as caught:
        verify(graph(op, args))
    assert message in caught.value.what


def test_a_node_without_regions_must_have_none() -> None:
    body = Graph("body", Kind.region, (), (), ())
    with pytest.raises(VerificationError, match="has 1 regions, and the op has 0"):
        verify(graph("aten.relu.default", (X,), regions=(body,)))


def test_an_op_that_returns_a_list_has_any_number_of_results() -> None:
    assert verify(graph("aten.split_with_sizes.default", (X, (1, 2), 1), Y, None, Z))
    assert verify(graph("aten.unbind.int", (X, 0), Y, Z))


def test_a_size_that_is_an_expression_fits_where_an_integer_does() -> None:
    with pytest.raises(VerificationError, match="symbol n is used but not declared"):
        verify(graph("aten.view.default", (X, (DimExpr("n"), 2))))
