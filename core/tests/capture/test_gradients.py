"""Gradients through captured graphs are eager's, attention's above all."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import fairlead
from fairlead.ir import Graph, opset
from fairlead.passes import canonicalize

from .conftest import Compile

FLASH = "aten._scaled_dot_product_flash_attention_for_cpu.default"


def attend(how: str) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    mask = torch.zeros(5, 5).masked_fill(torch.ones(5, 5).triu(2).bool(), -torch.inf)

    def plain(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(q, k, v)

    def causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    def scaled(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(q, k, v, scale=0.3)

    def additive(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    def boolean(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask == 0)

    def grouped(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(q, k[:, :2], v[:, :2], enable_gqa=True)

    found = {f.__name__: f for f in (plain, causal, scaled, additive, boolean, grouped)}
    return found[how]


def gradients(function: Callable[..., Tensor], inputs: list[Tensor], weight: Tensor) -> list[Tensor]:
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    out = function(*leaves)
    (out * weight).sum().backward()
    return [out.detach(), *(x.grad for x in leaves if x.grad is not None)]


def relative_error(found: Tensor, wanted: Tensor) -> float:
    return float((found - wanted).norm() / wanted.norm())


@pytest.mark.parametrize("how", ["plain", "causal", "scaled", "additive", "boolean", "grouped"])
def test_gradients_of_attention_are_eager_s(program: Compile, how: str) -> None:
    """Torch's own decomposition returns attention weights where the backward expects the logsumexp."""
    torch.manual_seed(0)
    inputs = [torch.randn(2, 4, 5, 8) for _ in range(3)]
    weight = torch.randn(2, 4, 5, 8)
    function = attend(how)
    run = program(function)
    wanted = gradients(function, inputs, weight)
    for found, expected in zip(gradients(run, inputs, weight), wanted, strict=True):
        assert relative_error(found, expected) < 1e-6
    forward, backward = run.graphs
    assert FLASH in ops(forward)
    assert FLASH.replace("_cpu.", "_cpu_backward.") in ops(backward)


def ops(graph: Graph) -> set[str]:
    return {n.op for n in graph.nodes}


@pytest.mark.parametrize("how", ["plain", "causal", "additive"])
def test_gradients_of_attention_are_eager_s_through_the_whole_pipeline(how: str) -> None:
    torch.manual_seed(0)
    torch._dynamo.reset()
    inputs = [torch.randn(2, 4, 5, 8) for _ in range(3)]
    weight = torch.randn(2, 4, 5, 8)
    function = attend(how)
    run = fairlead.compile(function, backend="eager", fallback=(), max_fallback=0)
    wanted = gradients(function, inputs, weight)
    for found, expected in zip(gradients(run, inputs, weight), wanted, strict=True):
        assert relative_error(found, expected) < 1e-6
    assert [g.kind for g in run.fairlead.placement.graphs] == ["forward", "backward"]  # type: ignore[attr-defined]


class Layer(torch.nn.Module):
    """Attention between linear layers and norms, as a transformer has it."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(16)
        self.qkv = torch.nn.Linear(16, 48)
        self.out = torch.nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (y.unflatten(-1, (2, 8)).transpose(1, 2) for y in self.qkv(self.norm(x)).chunk(3, -1))
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + functional.gelu(self.out(mixed.transpose(1, 2).flatten(2)))


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_transformer_layer_learns_as_in_eager(dynamic: bool) -> None:
    torch.manual_seed(0)
    torch._dynamo.reset()
    model = Layer()
    run = fairlead.compile(model, backend="eager", fallback=(), dynamic=dynamic)
    for length in (6, 6) if not dynamic else (6, 9):
        x = torch.randn(3, length, 16)
        model(x).square().mean().backward()
        wanted = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
        model.zero_grad()
        run(x).square().mean().backward()
        for name, parameter in model.named_parameters():
            assert parameter.grad is not None
            assert relative_error(parameter.grad, wanted[name]) < 1e-6, name
        model.zero_grad()
    assert len(wanted) == 6


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("affine", [True, False])
def test_batch_norm_learns_under_autocast(training: bool, affine: bool) -> None:
    """Torch's fake kernel promises statistics in half precision, and the real one returns and takes float32."""
    torch.manual_seed(0)
    torch._dynamo.reset()
    model = torch.nn.Sequential(torch.nn.Conv1d(3, 4, 3), torch.nn.BatchNorm1d(4, affine=affine)).train(training)
    run = fairlead.compile(model, backend="eager", fallback=(), max_fallback=0)
    x = torch.randn(4, 3, 8)
    found = []
    for function in (model, run):
        with torch.autocast("cpu", torch.bfloat16):
            out = function(x)
        found.append(torch.autograd.grad(out.float().square().sum(), list(model.parameters())))
    for wanted, grad in zip(*found, strict=True):
        assert grad.dtype is torch.float32
        assert relative_error(grad, wanted) < 1e-6


def test_distances_that_torch_takes_by_a_product_are_made_of_ops_of_the_opset(program: Compile) -> None:
    run = program(torch.cdist)
    x, y = torch.randn(30, 4), torch.randn(26, 4)
    torch.testing.assert_close(run(x, y), torch.cdist(x, y))
    assert [op for op in ops(canonicalize(run.graph)) if opset.spec(op) is None] == []
