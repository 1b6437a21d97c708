"""What is no one graph, and says so."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch.utils.checkpoint

import fairlead
from fairlead.errors import ArgumentError, StepError

from .twins import Twins, adamw, squared


def test_an_error_in_the_loss_leaves_everything_as_it_was() -> None:
    twins = Twins(torch.nn.Linear(8, 3), adamw, squared)
    with pytest.raises(StepError, match="the loss function is no one graph"):
        twins.step(torch.randn(3, 7))
    twins.both(torch.randn(3, 8))
    twins.compare()
    assert twins.optimizer.param_groups[0]["lr"] == 1e-2


def _branches(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    return model(x).sum() if x.sum() > 0 else model(-x).sum()


def _hooked(model: torch.nn.Module) -> Any:
    model.weight.register_hook(lambda gradient: gradient * 2)
    return adamw(model.parameters())


def _hooked_module(model: torch.nn.Module) -> Any:
    model.register_full_backward_hook(lambda *given: None)
    return adamw(model.parameters())


def _hooked_step(model: torch.nn.Module) -> Any:
    optimizer = adamw(model.parameters())
    optimizer.register_step_post_hook(lambda *given: None)
    return optimizer


@pytest.mark.parametrize(
    ("make", "loss", "message"),
    [
        (lambda m: torch.optim.LBFGS(m.parameters()), squared, "calls the loss several times"),
        (lambda m: torch.optim.Adafactor(m.parameters()), squared, "the optimizer's step is no one graph"),
        (lambda m: torch.optim.AdamW(m.parameters(), differentiable=True), squared, "is differentiable"),
        (lambda m: adamw([torch.zeros(2)]), squared, "no weights that require gradients"),
        (lambda m: adamw([torch.zeros(2, requires_grad=True)]), squared, "the loss depends on none of its weights"),
        (_hooked, squared, "hooks of its gradient"),
        (_hooked_module, squared, "hooks of its backward"),
        (_hooked_step, squared, "hooks of its step"),
        (lambda m: adamw(m.parameters()), lambda m, x: m(x), "gave a loss of shape (4, 3)"),
        (lambda m: adamw(m.parameters()), lambda m, x: m(x).detach().sum(), "depends on no weights"),
        (lambda m: adamw(m.parameters()), lambda m, x: {"loss": m(x).sum()}, "gave no tensor for its loss"),
        (lambda m: adamw(m.parameters()), lambda m, x: 3.0, "gave a float"),
        (lambda m: adamw(m.parameters()), _branches, "the loss function is no one graph: "),
    ],
)
def test_what_is_no_one_graph_is_an_error_that_says_why(make: Any, loss: Any, message: str) -> None:
    model = torch.nn.Linear(8, 3)
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(StepError) as failure:
        fairlead.compile_step(model, make(model), loss, backend="eager")(torch.randn(4, 8))
    assert message in failure.value.what
    assert failure.value.where
    assert failure.value.next
    torch.testing.assert_close(model.state_dict(), before)
    assert model.weight.grad is None


def test_a_grad_scaler_is_declined_wherever_it_is() -> None:
    model, scaler = torch.nn.Linear(8, 3), torch.amp.GradScaler("cpu")
    with pytest.raises(StepError, match="GradScaler decides after the backward"):
        fairlead.compile_step(model, adamw(model.parameters()), lambda m, x: scaler.scale(m(x).sum()))
    step = fairlead.compile_step(model, adamw(model.parameters()), squared, backend="eager")
    with pytest.raises(StepError, match="GradScaler decides after the backward"):
        step(torch.randn(4, 8), scaler)


def test_arguments_of_the_wrong_kind_are_told() -> None:
    model = torch.nn.Linear(8, 3)
    optimizer = adamw(model.parameters())
    with pytest.raises(ArgumentError, match="a list is no optimizer"):
        fairlead.compile_step(model, [optimizer], squared)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="loss_fn is a Tensor"):
        fairlead.compile_step(model, optimizer, torch.zeros(()))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="model is a function"):
        fairlead.compile_step(squared, optimizer, squared)  # type: ignore[arg-type]
    with pytest.raises(StepError, match="in inference mode"), torch.inference_mode():
        fairlead.compile_step(model, optimizer, squared, backend="eager")(torch.randn(4, 8))
