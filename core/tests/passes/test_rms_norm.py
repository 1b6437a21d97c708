"""Root mean square norms that a program writes out become one node, where nothing else reads their parts."""

from __future__ import annotations

import pytest
import torch

from fairlead.interpret import run
from fairlead.ir import Dim, Graph, TensorType, Value
from fairlead.passes import decompose, recognize_composites

from ._build import Builder, nodes_of, typed

NORM = "aten._fused_rms_norm.default"


def norm(b: Builder, x: Value, *, axes: tuple[int, ...] = (1,), power: bool = True) -> Value:
    """The norm of a matrix in pieces, its reciprocal root first."""
    kept = TensorType(x.tensor.dtype, tuple(1 if i in axes else d for i, d in enumerate(x.tensor.shape)))
    square = ("aten.pow.Tensor_Scalar", x, 2) if power else ("aten.mul.Tensor", x, x)
    mean = b("aten.mean.dim", b(*square, to=x.tensor), axes, True, None, to=kept)
    root = b("aten.rsqrt.default", b("aten.add.Tensor", mean, 1e-6, 1, to=kept), to=kept)
    return b("aten.mul.Tensor", x, root, to=x.tensor)


def weighted(rows: Dim = 3, dtype: str = "f32", **kwargs: object) -> Graph:
    b = Builder()
    x, w = b.input(typed(dtype, rows, 8)), b.input(typed(dtype, 8))
    return b.graph(b("aten.mul.Tensor", w, norm(b, x, **kwargs), to=x.tensor))  # type: ignore[arg-type]


@pytest.mark.parametrize("power", [True, False])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_a_norm_and_its_weight_are_one_node(dtype: str, power: bool) -> None:
    found = nodes_of(recognize_composites(weighted(dtype=dtype, power=power)))
    assert found == f"%10, _ = {NORM}(%0, [8], %1, 1e-06) : {dtype}[3, 8], _\nout %10 user"


def test_a_norm_without_a_weight_is_one_node() -> None:
    b = Builder()
    x = b.input(typed("f32", "rows", 8))
    found = nodes_of(recognize_composites(b.graph(norm(b, x))))
    assert found == f"%6, _ = {NORM}(%0, [8], none, 1e-06) : f32[rows, 8], _\nout %6 user"


@pytest.mark.parametrize(
    "graph",
    [weighted(dtype="bf16"), weighted(axes=(0,)), weighted(rows="rows", axes=(0, 1))],
    ids=["reduced precision", "leading dimension", "symbolic size"],
)
def test_what_is_another_norm_stays(graph: Graph) -> None:
    assert recognize_composites(graph) == graph


def test_a_norm_whose_root_is_read_elsewhere_stays() -> None:
    b = Builder()
    x = b.input(typed("f32", 3, 8))
    y = norm(b, x)
    root = next(n.result for n in b.graph(y).nodes if n.op == "aten.rsqrt.default")
    graph = b.graph(y, root)
    assert recognize_composites(graph) == graph


@pytest.mark.parametrize("power", [True, False])
def test_whole_and_in_pieces_it_gives_the_same(power: bool) -> None:
    graph = weighted(power=power)
    whole = recognize_composites(graph)
    inputs = [torch.linspace(-2, 3, 24).view(3, 8), torch.linspace(0, 1, 8)]
    (expected,) = run(graph, inputs)
    torch.testing.assert_close(run(whole, inputs)[0], expected)
    torch.testing.assert_close(run(decompose(whole, ()), inputs)[0], expected)
    assert NORM not in nodes_of(decompose(whole, ()))


def test_the_composite_means_what_torch_s_function_does() -> None:
    for dtype in ("f32", "bf16", "f16"):
        b = Builder()
        x, w = b.input(typed(dtype, 3, 8)), b.input(typed(dtype, 8))
        y, _ = b.many(NORM, x, (8,), w, None, to=(x.tensor, typed("f32", 3, 1)))
        given = [torch.linspace(-2, 3, 24).view(3, 8), torch.linspace(0, 1, 8)]
        given = [g.to({"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}[dtype]) for g in given]
        expected = torch.nn.functional.rms_norm(given[0], (8,), given[1])
        torch.testing.assert_close(run(b.graph(y), given)[0], expected)
