"""What models and losses do in whole training steps."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.utils.checkpoint

from .nets import Attention, Mlp
from .twins import Convolutions, Twins, adamw, classified, sgd, squared


def test_sizes_that_change_are_symbols_with_dropout_and_its_numbers() -> None:
    twins = Twins(Attention(), adamw, squared, rng="eager", verify="first")
    for size in (4, 5, 7):
        ids = torch.randint(0, 16, (2, size))
        torch.manual_seed(size)
        found = twins.step(ids).item()
        after = torch.get_rng_state()
        torch.manual_seed(size)
        twins.eager.zero_grad()
        wanted = squared(twins.reference, ids)
        wanted.backward()
        twins.eager.step()
        assert found == pytest.approx(wanted.item(), rel=1e-4)
        assert torch.equal(after, torch.get_rng_state())
    assert twins.compiled == 2


class Branches(torch.nn.Module):
    """Weights that are tied, frozen, not used, and used by some calls alone."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(8, 4)
        self.out = torch.nn.Linear(4, 8, bias=False)
        self.out.weight = self.table.weight
        self.frozen = torch.nn.Linear(4, 4).requires_grad_(False)
        self.unused = torch.nn.Linear(4, 4)
        self.sometimes = torch.nn.Linear(4, 4)
        self.takes_sometimes = False

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.frozen(self.table(ids))
        return self.out(self.sometimes(x) if self.takes_sometimes else x)


def test_tied_frozen_and_unused_weights_are_what_they_are_in_eager_mode() -> None:
    twins = Twins(Branches(), adamw, squared)
    ids = torch.randint(0, 8, (5,))
    for takes in (False, False, True, False, True, False):
        twins.model.takes_sometimes = twins.reference.takes_sometimes = takes
        twins.both(ids)
        twins.compare()
    assert twins.compiled == 2
    state = twins.optimizer.state
    assert twins.model.unused.weight not in state
    assert twins.model.frozen.weight not in state
    twins.model.frozen.requires_grad_(True)
    twins.reference.frozen.requires_grad_(True)
    twins.both(ids)
    twins.compare()


def test_batch_statistics_follow_the_mode() -> None:
    twins = Twins(Convolutions(), adamw, classified)
    for size, trains in ((4, True), (4, False), (4, True)):
        twins.model.train(trains)
        twins.reference.train(trains)
        twins.both(torch.randn(size, 1, 10, 10), torch.randint(0, 3, (size,)))
        twins.compare()
    assert twins.model.norm.num_batches_tracked == 2


def test_dropout_drops_anew_at_each_step_as_eager_does() -> None:
    twins = Twins(Attention(), adamw, lambda model, ids: model(ids).square().mean())
    twins.model.dropout.p = twins.reference.dropout.p = 0.5
    ids = torch.randint(0, 16, (2, 6))
    found = []
    for seed in (1, 2):
        before = copy.deepcopy(twins.model.state_dict())
        torch.manual_seed(seed)
        found.append(twins.step(ids).item())
        torch.manual_seed(seed)
        twins.model.load_state_dict(before)
        assert squared(twins.model, ids).item() == pytest.approx(found[-1])
        torch.manual_seed(seed)
        twins.model.load_state_dict(before)
        twins.step(ids)
    assert found[0] != found[1]
    assert twins.compiled == 1


def test_a_weight_that_is_exchanged_gets_no_gradient_as_in_eager_mode() -> None:
    twins = Twins(torch.nn.Linear(8, 3), adamw, squared)
    twins.both(torch.randn(4, 8))
    with torch.no_grad():
        new = torch.randn(3, 8)
    old = twins.model.weight
    for model in (twins.model, twins.reference):
        model.weight = torch.nn.Parameter(new.clone())
    before = old.detach().clone()
    twins.both(torch.randn(4, 8))
    twins.compare()
    assert torch.equal(old, before)


def test_a_step_under_autocast_leaves_float32_weights_and_state() -> None:
    def autocast_loss(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return model(x).float().square().mean()

    inside = Twins(Mlp(), sgd, autocast_loss)
    around = Twins(copy.deepcopy(inside.model), sgd, squared)
    for _ in range(2):
        x = torch.randn(3, 8)
        inside.both(x)
        with torch.autocast("cpu", torch.bfloat16):
            found = around.step(x)
        assert found.dtype == torch.bfloat16
    inside.compare(rtol=1e-2, atol=1e-3)
    assert all(p.dtype == torch.float32 for p in around.model.parameters())
    for mine, theirs in zip(around.model.parameters(), inside.model.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=5e-2, atol=5e-3)


class Tripled(torch.autograd.Function):
    """A square whose gradient is three times its operand."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return 3 * gradient * x


def _checkpointed(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    return torch.utils.checkpoint.checkpoint(lambda t: model(t).relu(), x, use_reentrant=False).square().mean()


def _with_a_gradient_of_its_own(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    return Tripled.apply(model(x)).mean()


def _with_a_hook(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    y = model(x)
    y.register_hook(lambda gradient: gradient * 2)
    return y.square().mean()


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # by Dynamo
@pytest.mark.parametrize("loss", [_checkpointed, _with_a_gradient_of_its_own, _with_a_hook])
def test_what_changes_a_backward_changes_that_of_a_step(loss: Callable[..., Any]) -> None:
    if loss is _with_a_hook and torch.__version__ < "2.13":
        pytest.skip("hooks of what a program computes break the graphs of older releases of torch")
    twins = Twins(torch.nn.Linear(8, 3), sgd, loss)
    for _ in range(2):
        twins.both(torch.randn(4, 8))
    twins.compare()
    assert [graph.name for graph in twins.step.fairlead.placement.graphs] == ["step_0"]
