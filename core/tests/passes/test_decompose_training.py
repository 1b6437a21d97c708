"""What training graphs are made of, taken apart, computes what ATen's kernels compute, in every precision."""

from __future__ import annotations

import pytest
import torch

from fairlead.interpret import run
from fairlead.ir import DType, Token
from fairlead.ir.opset import specs
from fairlead.passes import DECOMPOSABLE, decompose

from .test_decompose import FLOATS, check, composite, seed

__all__ = ["seed"]

aten = torch.ops.aten


def token(dtype: torch.dtype) -> Token:
    names = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64"}
    return Token("dtype", DType(names[dtype]))


def curve(dtype: torch.dtype) -> torch.Tensor:
    """Both tails, the bend, both zeros and what is not a number."""
    return torch.cat([torch.linspace(-8, 8, 65, dtype=dtype), torch.tensor([0.0, -0.0, torch.nan, 30.0], dtype=dtype)])


FORWARD = [
    ("elu", (1.0, 1.0, 1.0)),
    ("elu", (1.5, 1.05, 0.5)),
    ("hardsigmoid", ()),
    ("hardswish", ()),
    ("hardtanh", (-1.0, 2)),
    ("leaky_relu", (0.01,)),
    ("mish", ()),
    ("softplus", (1, 20)),
    ("softplus", (0.5, 2)),
]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("op", "rest"), FORWARD)
def test_an_activation(op: str, rest: tuple[float, ...], dtype: torch.dtype) -> None:
    x = curve(dtype)
    check(f"aten.{op}.default", (x, *rest), [getattr(aten, op)(x, *rest)])


def test_hardtanh_of_integers() -> None:
    x = torch.arange(-5, 6)
    check("aten.hardtanh.default", (x, -2, 3), [aten.hardtanh(x, -2, 3)])


BACKWARD = [
    ("gelu_backward", ("none",)),
    ("gelu_backward", ("tanh",)),
    ("silu_backward", ()),
    ("sigmoid_backward", ()),
    ("threshold_backward", (0,)),
    ("threshold_backward", (0.5,)),
]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("op", "rest"), BACKWARD)
def test_the_gradient_of_an_activation(op: str, rest: tuple[object, ...], dtype: torch.dtype) -> None:
    x = curve(dtype)
    grad = torch.randn_like(x)
    keywords = {"approximate": rest[0]} if op == "gelu_backward" else {}
    wanted = getattr(aten, op)(grad, x, *(() if keywords else rest), **keywords)
    check(f"aten.{op}.default", (grad, x, *rest), [wanted])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("shape", "dim"), [((3, 4), -1), ((3, 4), 0), ((), 0), ((2, 0), 1)])
@pytest.mark.parametrize("op", ["_softmax_backward_data", "_log_softmax_backward_data"])
def test_the_gradient_of_softmax(op: str, shape: tuple[int, ...], dim: int, dtype: torch.dtype) -> None:
    y = torch.randn(shape, dtype=dtype).softmax(dim)
    y = y.log() if "log" in op else y
    grad = torch.randn(shape, dtype=dtype)
    check(f"aten.{op}.default", (grad, y, dim, token(dtype)), [getattr(aten, op)(grad, y, dim, dtype)])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("shape", "normalized"), [((4, 6), (6,)), ((2, 5, 6), (5, 6)), ((5, 6), (5, 6)), ((0, 6), (6,))]
)
@pytest.mark.parametrize("affine", [True, False])
def test_the_gradient_of_layer_norm(
    shape: tuple[int, ...], normalized: tuple[int, ...], affine: bool, dtype: torch.dtype
) -> None:
    x, grad = torch.randn(shape, dtype=dtype), torch.randn(shape, dtype=dtype)
    weight, bias = (torch.randn(normalized, dtype=dtype) if affine else None for _ in range(2))
    _, mean, rstd = aten.native_layer_norm(x, normalized, weight, bias, 1e-5)
    args = (grad, x, normalized, mean, rstd, weight, bias, (True, affine, affine))
    check("aten.native_layer_norm_backward.default", args, aten.native_layer_norm_backward(*args))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("eps", [1e-6, None])
def test_root_mean_square_norm(affine: bool, eps: float | None, dtype: torch.dtype) -> None:
    if not hasattr(aten, "_fused_rms_norm_backward"):
        pytest.skip("this torch has no such op")
    x, grad = torch.randn(2, 5, 6, dtype=dtype) * 2 + 1, torch.randn(2, 5, 6, dtype=dtype)
    weight = torch.randn(6, dtype=dtype) if affine else None
    out, rstd = aten._fused_rms_norm(x, (6,), weight, eps)
    check("aten._fused_rms_norm.default", (x, (6,), weight, eps), [out, rstd])
    args = (grad, x, (6,), rstd, weight, (True, affine))
    leaves = [v.double().requires_grad_() for v in (x, weight) if v is not None]
    wide = torch.nn.functional.rms_norm(leaves[0], (6,), leaves[1] if affine else None, eps or torch.finfo(dtype).eps)
    wanted = [g.to(dtype) for g in torch.autograd.grad(wide, leaves, grad.double())]
    graph, inputs = composite("aten._fused_rms_norm_backward.default", args, [*wanted, *(() if affine else (None,))])
    close = {"rtol": 3e-2, "atol": 6e-2} if dtype.itemsize == 2 else {"rtol": 1e-4, "atol": 1e-5}
    for found, right in zip(run(decompose(graph, ()), inputs), wanted, strict=True):
        torch.testing.assert_close(found, right, **close)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(2, 6, 5), (1, 6, 7), (2, 6, 3, 4)])
@pytest.mark.parametrize("affine", [True, False])
def test_group_norm(shape: tuple[int, ...], affine: bool, dtype: torch.dtype) -> None:
    x, grad = torch.randn(shape, dtype=dtype) * 2 + 1, torch.randn(shape, dtype=dtype)
    weight, bias = (torch.randn(6, dtype=dtype) if affine else None for _ in range(2))
    sizes = (shape[0], 6, x.numel() // (shape[0] * 6), 3)
    args = (x, weight, bias, *sizes, 1e-5)
    out, mean, rstd = aten.native_group_norm(*args)
    check("aten.native_group_norm.default", args, (out, mean, rstd))
    args = (grad, x, mean, rstd, weight, *sizes, (True, affine, affine))
    check("aten.native_group_norm_backward.default", args, aten.native_group_norm_backward(*args))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(8, 3), (4, 3, 5), (2, 3, 4, 5)])
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm(training: bool, affine: bool, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x, grad = torch.randn(shape, dtype=dtype) * 2 + 1, torch.randn(shape, dtype=dtype)
    weight, bias = (torch.randn(3, dtype=dtype) if affine else None for _ in range(2))
    mean, var = torch.randn(3, dtype=dtype), torch.rand(3, dtype=dtype) + 0.5
    args = (x, weight, bias, mean, var, training, 0.1, 1e-5)
    results = aten._native_batch_norm_legit_functional(*args)
    check("aten._native_batch_norm_legit_functional.default", args, results)
    mask = (True, affine, affine)
    args = (grad, x, weight, mean, var, *results[1:3], training, 1e-5, mask)
    check("aten.native_batch_norm_backward.default", args, aten.native_batch_norm_backward(*args))


@pytest.mark.parametrize("dtype", FLOATS)
def test_batch_norm_that_keeps_no_statistics(dtype: torch.dtype) -> None:
    x, weight, bias = torch.randn(4, 3, 5, dtype=dtype), torch.randn(3, dtype=dtype), torch.randn(3, dtype=dtype)
    args = (x, weight, bias, True, 0.1, 1e-5)
    check("aten._native_batch_norm_legit.no_stats", args, aten._native_batch_norm_legit.no_stats(*args))


def test_batch_norm_with_update() -> None:
    x, *rest = torch.randn(4, 3, 5), torch.randn(3), torch.randn(3), torch.randn(3), torch.rand(3) + 0.5
    args = (x, *rest, 0.1, 1e-5)
    out, mean, rstd, reserve, *running = aten._batch_norm_with_update_functional(*args)
    check("aten._batch_norm_with_update_functional.default", args, (out, mean, rstd, reserve, *running))
    args = (torch.randn_like(x), x, *rest[:1], *rest[2:], mean, rstd, True, 1e-5, (True, True, True), reserve)
    check("aten.batch_norm_backward.default", args, aten.batch_norm_backward(*args))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("shape", [(5, 4), (4,), (2, 4, 3, 2)])
def test_negative_log_likelihood(shape: tuple[int, ...], weighted: bool, reduction: int, dtype: torch.dtype) -> None:
    axis = min(1, len(shape) - 1)
    op = "nll_loss2d" if len(shape) == 4 else "nll_loss"
    x = torch.randn(shape, dtype=dtype).log_softmax(axis)
    target = torch.randint(4, shape[:axis] + shape[axis + 1 :])
    if target.dim():
        target.view(-1)[0] = -100
    weight = torch.rand(4, dtype=dtype) if weighted else None
    args = (x, target, weight, reduction, -100)
    out, total = getattr(aten, f"{op}_forward")(*args)
    check(f"aten.{op}_forward.default", args, (out, total))
    args = (torch.randn_like(out), *args, total)
    check(f"aten.{op}_backward.default", args, [getattr(aten, f"{op}_backward")(*args)])


def test_a_loss_whose_items_are_all_ignored_is_not_a_number_but_has_a_gradient() -> None:
    x, target = torch.randn(3, 4).log_softmax(1), torch.full((3,), -100)
    args = (x, target, None, 1, -100)
    out, total = aten.nll_loss_forward(*args)
    check("aten.nll_loss_forward.default", args, (out, total))
    args = (torch.ones(()), *args, total)
    check("aten.nll_loss_backward.default", args, [torch.zeros(3, 4)])


@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("shape", [(5, 4), (4,)])
def test_multi_margin_loss(shape: tuple[int, ...], weighted: bool, power: int, reduction: int) -> None:
    x, target = torch.randn(shape), torch.randint(4, shape[:-1])
    args = (x, target, power, 0.5, torch.rand(4) if weighted else None, reduction)
    out = aten.multi_margin_loss(*args)
    check("aten.multi_margin_loss.default", args, [out])
    args = (torch.randn_like(out), *args)
    check("aten.multi_margin_loss_backward.default", args, [aten.multi_margin_loss_backward(*args)])


@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize("target", [[[3, 0, -1, 1], [2, -1, 0, 0]], [[-1, 0, 1, 2], [1, 2, 0, 3]], [1, 1, -1, 0]])
def test_multilabel_margin_loss(target: list[object], reduction: int) -> None:
    entries = torch.tensor(target)
    x = torch.randn(entries.shape)
    args = (x, entries, reduction)
    out, is_target = aten.multilabel_margin_loss_forward(*args)
    check("aten.multilabel_margin_loss_forward.default", args, (out, is_target))
    args = (torch.randn_like(out), *args, is_target)
    check("aten.multilabel_margin_loss_backward.default", args, [aten.multilabel_margin_loss_backward(*args)])


def test_every_composite_of_the_opset_can_be_taken_apart() -> None:
    """But for the mask that torch draws, and for as many steps as an input has."""
    assert {s.id for s in specs().values() if s.tier == "nn"} - DECOMPOSABLE == {"nn.bernoulli.default", "nn.lstm"}
