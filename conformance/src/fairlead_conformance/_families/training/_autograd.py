"""What autograd does around a program: masks, checkpoints, functions of one's own, saved tensors, sizes, modes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from fairlead_conformance._case import Level
from fairlead_conformance._device_names import kind_of
from fairlead_conformance._families.training._nets import Attention, Mlp
from fairlead_conformance._programs import Trial, attributed, check
from fairlead_conformance._status import Status

_TRAINING = ("training",)


def _gradient(x: Tensor) -> Tensor:
    """NaN everywhere, which no gradient equals, where there is none."""
    return torch.full_like(x, torch.nan) if x.grad is None else x.grad


@check(Level.L3, needs=_TRAINING)
def dropout_drops_the_same_backwards(trial: Trial) -> None:
    twin = trial.compile(lambda x: torch.dropout(x, 0.5, True), draws=True)
    x = trial.ones(256).requires_grad_()
    twin.gradients(x)
    torch.manual_seed(trial.salt)
    with attributed():
        y = twin.compiled(x)
        y.sum().backward()
    same = x.grad is not None and torch.equal(x.grad, y.detach())
    trial.require(same, Status.FAIL_GRAD, "mask", "forward and backward drop others")


@check(Level.L3, needs=_TRAINING)
def a_checkpoint_computes_again(trial: Trial) -> None:
    class Checkpointed(Mlp):
        def forward(self, x: Tensor) -> Any:
            return self.down(checkpoint(lambda y: torch.tanh(self.up(y)) * 2, x, use_reentrant=False))

    trial.compile(trial.made(Checkpointed)).gradients(trial.normal(5, 8).requires_grad_())


@check(Level.L3, needs=_TRAINING)
def a_checkpoint_drops_the_same_again(trial: Trial) -> None:
    def program(x: Tensor) -> Any:
        return checkpoint(lambda y: torch.dropout(torch.tanh(y * 2), 0.5, True) * y, x, use_reentrant=False)

    trial.compile(program, draws=True).gradients(trial.ones(32).requires_grad_())


@check(Level.L3, needs=_TRAINING)
def an_autograd_function_of_ones_own(trial: Trial) -> None:
    class Straight(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return (x > 0).to(x.dtype)

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Tensor:
            return gradient * 3

    straight: Any = Straight.apply
    trial.compile(lambda x: straight(x * 2) + x).gradients(trial.normal(6).requires_grad_())


@check(Level.L3, needs=_TRAINING)
def a_backward_kept_for_a_second(trial: Trial) -> None:
    twin = trial.compile(trial.made(Mlp))
    twin.gradients(trial.normal(5, 8))
    x = trial.normal(5, 8)

    def gradient(module: Any) -> Tensor:
        given = x.clone().requires_grad_()
        loss = module(given).square().sum()
        loss.backward(retain_graph=True)
        loss.backward()
        return _gradient(given)

    with attributed():
        got = gradient(twin.compiled)
    close = torch.allclose(got, gradient(twin.eager), rtol=1e-4, atol=1e-5)
    trial.require(close, Status.FAIL_GRAD, "retain-graph", "the second backward of a call differs from eager's")


@check(Level.L3, needs=_TRAINING)
def two_forwards_before_their_backwards(trial: Trial) -> None:
    twin = trial.compile(trial.made(Mlp))
    twin.gradients(trial.normal(5, 8))
    inputs = [trial.normal(5, 8) for _ in range(2)]

    def gradients(module: Any) -> list[Tensor]:
        given = [x.clone().requires_grad_() for x in inputs]
        for result in reversed([module(x) for x in given]):
            result.square().sum().backward()
        return [_gradient(x) for x in given]

    with attributed():
        got = gradients(twin.compiled)
    wanted = gradients(twin.eager)
    close = all(torch.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in zip(got, wanted, strict=True))
    trial.require(close, Status.FAIL_GRAD, "saved-tensors", "a later forward changed what an earlier one saved")


@check(Level.L3, needs=(*_TRAINING, "dynamic_shapes"))
def lengths_that_change(trial: Trial) -> None:
    twin = trial.compile(trial.made(Attention), dynamic=True)
    for length in (4, 9, 2):
        twin.gradients(trial.normal(2, length, 8).requires_grad_())


@check(Level.L3, needs=_TRAINING)
def batches_of_none_and_of_one(trial: Trial) -> None:
    twin = trial.compile(trial.made(Mlp))
    for size in (3, 0, 1):
        twin.gradients(trial.normal(size, 8).requires_grad_())


@check(Level.L3, needs=_TRAINING)
def under_autocast(trial: Trial) -> None:
    twin = trial.compile(trial.made(Mlp), within=lambda: torch.autocast(kind_of(trial.device), torch.bfloat16))
    twin.gradients(trial.normal(5, 8))


@check(Level.L3, needs=_TRAINING, dtype="bf16")
def in_bfloat16(trial: Trial) -> None:
    module = trial.made(Mlp).to(torch.bfloat16)
    trial.compile(module).gradients(trial.normal(5, 8, dtype=torch.bfloat16))
