"""Composites and what they decompose into compute the same."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
import torch

from fairlead._torch_types import IR_DTYPES
from fairlead.interpret import run
from fairlead.ir import Argument, Dim, Graph, Kind, TensorType, Value, verify
from fairlead.ir.infer import verify_types
from fairlead.passes import DECOMPOSABLE, decompose

from ._build import Builder, f32, nodes_of, rewritten, text, typed

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
REDUCED = (torch.float32, torch.float16, torch.bfloat16)
CLOSE = {  # ATen's kernels of reduced precision round inside, where what they decompose into does not
    torch.float64: {"rtol": 1e-12, "atol": 1e-12},
    torch.float32: {"rtol": 1e-5, "atol": 1e-5},
    torch.float16: {"rtol": 2e-3, "atol": 4e-3},
    torch.bfloat16: {"rtol": 1.6e-2, "atol": 3e-2},
}

EXACT = {"rtol": 0.0, "atol": 0.0}

Inputs = Sequence[torch.Tensor]


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


def type_of(x: torch.Tensor) -> TensorType:
    return TensorType(IR_DTYPES[x.dtype], tuple(x.shape))


def composite(op: str, args: Sequence[object], results: Sequence[torch.Tensor | None]) -> tuple[Graph, Inputs]:
    """A graph of one op, with an input for each tensor among ``args`` and results like the given ones."""
    b = Builder(Kind.forward)
    given = [a for a in args if isinstance(a, torch.Tensor)]
    values = iter([b.input(type_of(x)) for x in given])
    full: tuple[Argument, ...] = tuple(next(values) if isinstance(a, torch.Tensor) else a for a in args)  # type: ignore[misc]
    out = b.many(op, *full, to=tuple(None if r is None else type_of(r) for r in results))
    return b.graph(*(v for v in out if v is not None)), given


def check(op: str, args: Sequence[object], results: Sequence[torch.Tensor | None]) -> None:
    """What ``op`` decomposes into computes these results, and consists of base ops only."""
    graph, inputs = composite(op, args, results)
    base = verify_types(verify(decompose(graph, keeps=())))
    assert not DECOMPOSABLE & {n.op for n in base.nodes}
    assert [v.type for v in base.output_values()] == [v.type for v in graph.output_values()]
    given_dtype = inputs[0].dtype
    expected = [r for r in results if r is not None]
    for actual, whole, wanted in zip(run(base, inputs), run(graph, inputs), expected, strict=True):
        torch.testing.assert_close(whole, wanted, equal_nan=True)
        torch.testing.assert_close(actual, wanted, equal_nan=True, **CLOSE.get(given_dtype, EXACT))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(6,), (5, 6), (2, 5, 6), (2, 3, 5, 6), (0, 6)])
@pytest.mark.parametrize("biased", [True, False])
def test_linear(shape: tuple[int, ...], biased: bool, dtype: torch.dtype) -> None:
    x, w, bias = (torch.randn(s, dtype=dtype) for s in (shape, (4, 6), (4,)))
    given = bias if biased else None
    check("aten.linear.default", (x, w, given), [torch.nn.functional.linear(x, w, given)])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("beta", "alpha"), [(1, 1), (0, 1), (0.5, 1), (1, 2), (0.25, 0.5)])
@pytest.mark.parametrize("shape", [(4,), (3, 4), (1, 4), (3, 1), ()])
def test_addmm(shape: tuple[int, ...], beta: float, alpha: float, dtype: torch.dtype) -> None:
    bias, x, w = (torch.randn(s, dtype=dtype) for s in (shape, (3, 6), (6, 4)))
    check("aten.addmm.default", (bias, x, w, beta, alpha), [torch.addmm(bias, x, w, beta=beta, alpha=alpha)])


def test_addmm_ignores_what_beta_zero_multiplies() -> None:
    bias, x, w = torch.full((4,), math.nan), torch.randn(3, 6), torch.randn(6, 4)
    check("aten.addmm.default", (bias, x, w, 0, 1), [x @ w])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("shape", "dim"), [((3, 4), -1), ((3, 4), 0), ((2, 3, 4), 1), ((), 0), ((2, 0), 1), ((0, 2), 1)]
)
@pytest.mark.parametrize("op", ["_softmax", "_log_softmax"])
def test_softmax(op: str, shape: tuple[int, ...], dim: int, dtype: torch.dtype) -> None:
    x = torch.randn(shape, dtype=dtype) * 10
    check(f"aten.{op}.default", (x, dim, False), [getattr(torch.ops.aten, op)(x, dim, False)])


@pytest.mark.parametrize("op", ["_softmax", "_log_softmax"])
def test_softmax_of_large_numbers_does_not_overflow(op: str) -> None:
    x = torch.tensor([[3e38, 3e38, -3e38], [-math.inf, 0.0, 1.0], [-math.inf] * 3])
    check(f"aten.{op}.default", (x, 1, False), [getattr(torch.ops.aten, op)(x, 1, False)])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", [("silu",), ("gelu", "none"), ("gelu", "tanh")])
def test_activations(op: tuple[str, ...], dtype: torch.dtype) -> None:
    name, *rest = op
    x = torch.cat([torch.linspace(-8, 8, 65, dtype=dtype), torch.tensor([0.0, -0.0], dtype=dtype)])
    wanted = torch.nn.functional.gelu(x, approximate=rest[0]) if rest else torch.nn.functional.silu(x)
    check(f"aten.{name}.default", (x, *rest), [wanted])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("normalized", [(6,), (5, 6)])
@pytest.mark.parametrize("affine", ["both", "weight", "bias", "none"])
def test_layer_norm(normalized: tuple[int, ...], affine: str, dtype: torch.dtype) -> None:
    x = torch.randn(2, 5, 6, dtype=dtype) * 3 + 1
    weight = torch.randn(normalized, dtype=dtype) if affine in ("both", "weight") else None
    bias = torch.randn(normalized, dtype=dtype) if affine in ("both", "bias") else None
    args = (x, normalized, weight, bias, 1e-5)
    check("aten.native_layer_norm.default", args, torch.native_layer_norm(*args))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_layer_norm_of_reduced_precision_with_float_weights(dtype: torch.dtype) -> None:
    args = (torch.randn(5, 6, dtype=dtype), (6,), torch.randn(6), torch.randn(6), 1e-5)
    check("aten.native_layer_norm.default", args, torch.native_layer_norm(*args))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 5), (2, 3, 4, 5)])
@pytest.mark.parametrize("affine", [True, False])
def test_batch_norm_with_given_statistics(shape: tuple[int, ...], affine: bool, dtype: torch.dtype) -> None:
    weight, bias = (torch.randn(3, dtype=dtype) if affine else None for _ in range(2))
    mean, var = torch.randn(3, dtype=dtype), torch.rand(3, dtype=dtype) + 0.5
    args = (torch.randn(shape, dtype=dtype), weight, bias, mean, var, 0.1, 1e-5)
    op = "aten._native_batch_norm_legit_no_training.default"
    check(op, args, torch.ops.aten._native_batch_norm_legit_no_training(*args))


def test_batch_norm_of_reduced_precision_with_float_weights() -> None:
    rest = [torch.rand(3) + 0.5 for _ in range(4)]
    args = (torch.randn(2, 3, 4, dtype=torch.bfloat16), *rest, 0.1, 1e-5)
    op = "aten._native_batch_norm_legit_no_training.default"
    check(op, args, torch.ops.aten._native_batch_norm_legit_no_training(*args))


def masks(dtype: torch.dtype) -> dict[str, torch.Tensor | None]:
    """Additive masks for five queries and seven keys; the last one leaves the third query nothing to look at."""
    allowed = torch.ones(5, 7, dtype=torch.bool).tril(1)
    hidden = torch.zeros(5, 7, dtype=dtype).masked_fill(~allowed, -math.inf)
    dead = hidden.clone()
    dead[2] = -math.inf
    return {
        "none": None,
        "two dimensions": torch.randn(5, 7, dtype=dtype),
        "four dimensions": torch.randn(2, 1, 5, 7, dtype=dtype),
        "hidden keys": hidden,
        "dead row": dead,
    }


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *args: object) -> tuple[torch.Tensor, torch.Tensor]:
    mask, dropout, causal, scale = args
    flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    return flash(q, k, v, dropout, causal, attn_mask=mask, scale=scale)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("keys", [4, 2])
@pytest.mark.parametrize("mask", ["none", "two dimensions", "four dimensions", "hidden keys", "dead row"])
def test_attention(mask: str, keys: int, dtype: torch.dtype) -> None:
    q, k, v = (torch.randn(2, h, n, 8, dtype=dtype) for h, n in ((4, 5), (keys, 7), (keys, 7)))
    args = (q, k, v, masks(dtype)[mask], 0.0, False, 0.3)
    check("nn.scaled_dot_product_attention", args, attention(*args))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("queries", "keys"), [(5, 5), (5, 7), (7, 5), (1, 4)])
def test_causal_attention(queries: int, keys: int, dtype: torch.dtype) -> None:
    q, k, v = (torch.randn(2, 4, n, 8, dtype=dtype) for n in (queries, keys, keys))
    args = (q, k, v, None, 0.0, True, 8**-0.5)
    check("nn.scaled_dot_product_attention", args, attention(*args))


def gradients(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, grad: torch.Tensor, **how: object) -> Inputs:
    """Autograd's, in double precision, of attention written out."""
    leaves = [x.double().requires_grad_() for x in (q, k, v)]
    group = q.shape[1] // k.shape[1]
    query, key, value = leaves[0], *(x.repeat_interleave(group, 1) for x in leaves[1:])
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        out = torch.nn.functional.scaled_dot_product_attention(query, key, value, **how)  # type: ignore[arg-type]
    return torch.autograd.grad(out, leaves, grad.double())


@pytest.mark.parametrize("dtype", REDUCED)
@pytest.mark.parametrize("keys", [4, 2])
@pytest.mark.parametrize("how", ["plain", "causal", "mask"])
def test_the_gradient_of_attention(how: str, keys: int, dtype: torch.dtype) -> None:
    q, k, v = (torch.randn(2, h, 5, 8, dtype=dtype) for h in (4, keys, keys))
    mask, causal, scale = torch.randn(5, 5, dtype=dtype) if how == "mask" else None, how == "causal", 0.4
    out, lse = attention(q, k, v, mask, 0.0, causal, scale)
    grad = torch.randn_like(out)
    graph, inputs = composite(
        "nn.scaled_dot_product_attention_backward",
        (grad, q, k, v, out, lse, mask, 0.0, causal, scale),
        (q, k, v),
    )
    given = None if mask is None else mask.double()
    wanted = gradients(q, k, v, grad, attn_mask=given, is_causal=causal, scale=scale)
    base = verify(decompose(graph, keeps=()))
    assert not DECOMPOSABLE & {n.op for n in base.nodes}
    tolerance = {torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 6e-2}[dtype]
    for found in (run(base, inputs), run(graph, inputs)):
        for a, w in zip(found, wanted, strict=True):
            assert a.dtype is dtype
            torch.testing.assert_close(a.double(), w, rtol=tolerance, atol=tolerance)


def test_a_row_that_sees_nothing_has_no_gradient() -> None:
    q, k, v = (torch.randn(1, 1, n, 8) for n in (5, 7, 7))
    mask = masks(torch.float32)["dead row"]
    out, lse = attention(q, k, v, mask, 0.0, False, 1.0)
    args = (torch.ones_like(out), q, k, v, out, lse, mask, 0.0, False, 1.0)
    graph, inputs = composite("nn.scaled_dot_product_attention_backward", args, (q, k, v))
    for found in (run(decompose(graph, ()), inputs), run(graph, inputs)):
        assert found[0][0, 0, 2].tolist() == [0.0] * 8
        assert all(bool(g.isfinite().all()) for g in found)


def test_attention_with_dropout_inside_stays_whole() -> None:
    q = torch.randn(1, 2, 3, 4)
    graph, _ = composite("nn.scaled_dot_product_attention", (q, q, q, None, 0.1, False, 1.0), (q, None))
    assert decompose(graph, keeps=()) == graph


def test_attention_over_an_unknown_number_of_shared_heads_stays_whole() -> None:
    b = Builder()
    q, k = b.input(f32(2, 4, 5, 8)), b.input(f32(2, "h", 5, 8))
    out, _ = b.many("nn.scaled_dot_product_attention", q, k, k, None, 0.0, False, 1.0, to=(q.type, None))  # type: ignore[arg-type]
    graph = b.graph(out)
    assert decompose(graph, keeps=()) == graph


@pytest.mark.parametrize("keeps", [("*",), tuple(DECOMPOSABLE), ("aten.silu.default",)])
def test_what_a_backend_keeps_stays_whole(keeps: tuple[str, ...]) -> None:
    graph, _ = composite("aten.silu.default", (torch.randn(2),), (torch.randn(2),))
    assert decompose(graph, keeps) == graph


def test_only_what_a_backend_does_not_keep_is_taken_apart() -> None:
    b = Builder()
    silu = b("aten.silu.default", b.input(f32(2), name="x"), to=f32(2))
    graph = b.graph(b("aten.gelu.default", silu, "none", to=f32(2)))
    assert rewritten(lambda g: decompose(g, ["aten.gelu.default"]), graph) == text(
        """
        graph @g inference {
          in %0 user "x" : f32[2]
          %3 = aten.sigmoid.default(%0) : f32[2]
          %4 = aten.mul.Tensor(%0, %3) : f32[2]
          %2 = aten.gelu.default(%4, "none") : f32[2]
          out %2 user
        }
        """
    )


def test_reduced_precision_is_computed_in_float32() -> None:
    b = Builder()
    graph = b.graph(b("aten._softmax.default", b.input(typed("bf16", 2, 3)), -1, False, to=typed("bf16", 2, 3)))
    assert nodes_of(decompose(graph, ())) == text(
        """
        %2 = aten._to_copy.default(%0, #dtype<f32>, none, none, none, false, none) : f32[2, 3]
        %3 = aten.amax.default(%2, [1], true) : f32[2, 1]
        %4 = aten.sub.Tensor(%2, %3, 1) : f32[2, 3]
        %5 = aten.exp.default(%4) : f32[2, 3]
        %6 = aten.sum.dim_IntList(%5, [1], true, none) : f32[2, 1]
        %7 = aten.div.Tensor(%5, %6) : f32[2, 3]
        %8 = aten._to_copy.default(%7, #dtype<bf16>, none, none, none, false, none) : bf16[2, 3]
        out %8 user
        """
    )


def test_statistics_that_nobody_reads_are_not_computed_twice() -> None:
    b = Builder()
    x = b.input(f32(2, 3))
    out, _, _ = b.many("aten.native_layer_norm.default", x, (3,), None, None, 1e-5, to=(f32(2, 3), None, None))
    assert nodes_of(decompose(b.graph(out), ())) == text(
        """
        %2 = aten.mean.dim(%0, [1], true, none) : f32[2, 1]
        %3 = aten.sub.Tensor(%0, %2, 1) : f32[2, 3]
        %4 = aten.mul.Tensor(%3, %3) : f32[2, 3]
        %5 = aten.mean.dim(%4, [1], true, none) : f32[2, 1]
        %6 = aten.add.Tensor(%5, 1e-05, 1) : f32[2, 1]
        %7 = aten.rsqrt.default(%6) : f32[2, 1]
        %8 = aten.mul.Tensor(%3, %7) : f32[2, 3]
        out %8 user
        """
    )


def dynamic(op: str, shapes: Sequence[tuple[Dim, ...]], *rest: Argument, to: Sequence[TensorType | None]) -> Graph:
    b = Builder()
    values = [b.input(f32(*s)) for s in shapes]
    return b.graph(*(v for v in b.many(op, *values, *rest, to=tuple(to)) if isinstance(v, Value)))


@pytest.mark.parametrize(
    ("graph", "shapes"),
    [
        (
            dynamic("aten.linear.default", [("b", "s", 6), (4, 6), (4,)], to=[f32("b", "s", 4)]),
            [(2, 5, 6), (4, 6), (4,)],
        ),
        (
            dynamic(
                "nn.scaled_dot_product_attention",
                [("b", 4, "s", 8), ("b", 2, "t", 8), ("b", 2, "t", 8), ("s", "t")],
                0.0,
                True,
                0.5,
                to=[f32("b", 4, "s", 8), f32("b", 4, "s")],
            ),
            [(3, 4, 5, 8), (3, 2, 7, 8), (3, 2, 7, 8), (5, 7)],
        ),
        (
            dynamic("aten._softmax.default", [("b", "s")], 1, False, to=[f32("b", "s")]),
            [(3, 5)],
        ),
    ],
)
def test_symbolic_sizes_stay_symbolic(graph: Graph, shapes: Sequence[tuple[int, ...]]) -> None:
    inputs = [torch.randn(s) for s in shapes]
    base = verify(decompose(graph, keeps=()))
    assert [v.type for v in base.output_values()] == [v.type for v in graph.output_values()]
    for actual, wanted in zip(run(base, inputs), run(graph, inputs), strict=True):
        torch.testing.assert_close(actual, wanted)
