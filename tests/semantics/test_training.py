"""Training: gradients match, dropout drops, nothing is detached."""

from __future__ import annotations

import copy

import pytest
import torch

import fairlead

from .nets import Attention, Counting, Mlp


def _losses(model: torch.nn.Module, compiled: torch.nn.Module, steps: int) -> list[float]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for step in range(steps):
        torch.manual_seed(step)
        ids = torch.randint(0, 16, (4, 6))
        logits = compiled(ids)
        loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_a_training_loop_follows_eagers_loss_curve(backend: str) -> None:
    model = Attention()
    model.dropout.p = 0.0
    reference = copy.deepcopy(model)
    expected = _losses(reference, reference, 12)
    got = _losses(model, fairlead.compile(model, backend=backend), 12)
    assert got == pytest.approx(expected, rel=1e-3)
    assert got[-1] < got[0]


def test_gradients_of_parameters_and_inputs_match_eagers(backend: str) -> None:
    model = Mlp()
    x = torch.randn(3, 8, requires_grad=True)
    wanted = torch.autograd.grad(model(x).square().sum(), [x, *model.parameters()])
    got = torch.autograd.grad(fairlead.compile(model, backend=backend)(x).square().sum(), [x, *model.parameters()])
    for mine, theirs in zip(got, wanted, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)


def test_gradients_of_attention_match_eagers_with_growing_length(backend: str) -> None:
    model = Attention().train()
    model.dropout.p = 0.0
    compiled = fairlead.compile(model, backend=backend, dynamic=True)
    for length in (4, 9):
        ids = torch.randint(0, 16, (2, length))
        wanted = torch.autograd.grad(model(ids).square().sum(), list(model.parameters()))
        got = torch.autograd.grad(compiled(ids).square().sum(), list(model.parameters()))
        for mine, theirs in zip(got, wanted, strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)


def test_dropout_drops_the_right_share_and_something_else_each_time(backend: str) -> None:
    dropout = torch.nn.Dropout(0.3).train()
    compiled = fairlead.compile(dropout, backend=backend)
    first, second = compiled(torch.ones(20_000)), compiled(torch.ones(20_000))
    assert (first == 0).float().mean().item() == pytest.approx(0.3, abs=0.02)
    torch.testing.assert_close(first[first != 0].unique(), torch.tensor([1 / 0.7]))
    assert not torch.equal(first, second)


@pytest.mark.parametrize("name", ["eager", "onnxrt", "openvino", "openxla", "tvm"])
def test_dropout_masks_are_eagers_under_the_same_seed(name: str) -> None:
    dropout = torch.nn.Dropout(0.3).train()
    compiled = fairlead.compile(dropout, backend=name)
    torch.manual_seed(3)
    expected = dropout(torch.ones(1000))
    torch.manual_seed(3)
    torch.testing.assert_close(compiled(torch.ones(1000)), expected)


def test_batch_norm_trains(backend: str) -> None:
    model = Counting().train()
    reference = copy.deepcopy(model)
    compiled = fairlead.compile(model, backend=backend)
    x = torch.randn(6, 8)
    compiled(x).sum().backward()
    reference(x).sum().backward()
    torch.testing.assert_close(model.norm.running_var, reference.norm.running_var)
    for mine, theirs in zip(model.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-4, atol=1e-5)


def test_training_under_autocast_gives_float32_gradients(backend: str) -> None:
    model = Mlp()
    compiled = fairlead.compile(model, backend=backend)
    x = torch.randn(4, 8)
    with torch.autocast("cpu", torch.bfloat16):
        wanted = torch.autograd.grad(model(x).float().square().sum(), list(model.parameters()))
        got = torch.autograd.grad(compiled(x).float().square().sum(), list(model.parameters()))
    for mine, theirs in zip(got, wanted, strict=True):
        assert mine.dtype == theirs.dtype
        torch.testing.assert_close(mine, theirs, rtol=5e-2, atol=5e-2)


@pytest.mark.parametrize("norm", ["BatchNorm2d(8)", "GroupNorm(2, 8)", "InstanceNorm2d(8, affine=True)"])
@pytest.mark.parametrize("name", ["inductor", "ipex"])
def test_norms_of_halves_by_weights_of_float32_train_where_they_are(name: str, norm: str) -> None:
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, bias=False), eval(f"torch.nn.{norm}"))
    compiled = fairlead.compile(net, backend=name, fallback=(), benchmark=False)
    x, towards = torch.randn(4, 3, 9, 9), torch.randn(4, 8, 7, 7)
    with torch.autocast("cpu", torch.bfloat16):
        wanted = torch.autograd.grad((net(x).float() * towards).sum(), list(net.parameters()))
        got = torch.autograd.grad((compiled(x).float() * towards).sum(), list(net.parameters()))
    for mine, theirs in zip(got, wanted, strict=True):
        assert mine.dtype == theirs.dtype
        assert (mine - theirs).norm() <= 0.05 * theirs.norm()
    assert compiled.fairlead.placement.native_share == 1


@pytest.mark.parametrize("name", ["onnxrt", "openxla"])
def test_a_training_step_of_convolutions_is_left_to_who_is_faster(name: str) -> None:
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.GELU(), torch.nn.Conv2d(4, 4, 3))
    compiled = fairlead.compile(model, backend=name)
    compiled(torch.randn(1, 3, 8, 8)).sum().backward()
    placement = compiled.fairlead.placement
    assert placement.native_share == 0
    assert {each.reason.partition(":")[0] for each in placement.declines} == {"slower than eager here"}
    with torch.no_grad():
        compiled(torch.randn(1, 3, 8, 8))
    assert compiled.fairlead.placement.native_share > 0
