"""Weights may be baked in, and are never stale: the next call uses what they are then."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch import Tensor, nn

from fairlead_conformance._case import Level
from fairlead_conformance._families.semantics._nets import Mlp, Tied
from fairlead_conformance._programs import Trial, check


def _changed_between_calls(trial: Trial, change: Callable[[nn.Module], object]) -> None:
    twin = trial.compile(trial.made(Mlp))
    twin(trial.normal(3, 8))
    twin.each(change)
    twin(trial.normal(3, 8))
    twin(trial.normal(3, 8))


def _shifted(module: nn.Module) -> dict[str, Tensor]:
    return {name: tensor + 0.25 for name, tensor in module.state_dict().items()}


@check(Level.L1, mandatory=True)
def weights_written_in_place(trial: Trial) -> None:
    _changed_between_calls(trial, lambda module: [p.mul_(1.5) for p in module.parameters()])


@check(Level.L1)
def one_bias_written_in_place(trial: Trial) -> None:
    _changed_between_calls(trial, lambda module: module.get_parameter("up.bias").add_(1))


@check(Level.L1)
def a_state_dict_loaded(trial: Trial) -> None:
    _changed_between_calls(trial, lambda module: module.load_state_dict(_shifted(module)))


@check(Level.L2)
def a_state_dict_assigned(trial: Trial) -> None:
    _changed_between_calls(trial, lambda module: module.load_state_dict(_shifted(module), assign=True))


@check(Level.L1)
def a_parameter_replaced(trial: Trial) -> None:
    def replace(module: nn.Module) -> None:
        up = module.get_submodule("up")
        up.weight = nn.Parameter(up.get_parameter("weight").flip(0).clone())

    _changed_between_calls(trial, replace)


@check(Level.L1)
def data_replaced(trial: Trial) -> None:
    def replace(module: nn.Module) -> None:
        bias = module.get_parameter("down.bias")
        bias.data = torch.full_like(bias, 0.5)

    _changed_between_calls(trial, replace)


@check(Level.L2)
def data_written_and_refreshed(trial: Trial) -> None:
    twin = trial.compile(trial.made(Mlp))
    twin(trial.normal(3, 8))
    twin.each(lambda module: module.up.weight.data.mul_(-2))
    twin.compiled.fairlead.refresh()
    twin(trial.normal(3, 8))


@check(Level.L1)
def an_optimizer_steps_between_calls(trial: Trial) -> None:
    twin = trial.compile(trial.made(Mlp))
    twin(trial.normal(3, 8))

    def step(module: nn.Module) -> None:
        for parameter in module.parameters():
            parameter.grad = torch.ones_like(parameter)
        torch.optim.SGD(module.parameters(), lr=0.1).step()
        module.zero_grad()

    twin.each(step)
    twin(trial.normal(3, 8))


@check(Level.L2)
def weights_written_before_each_call(trial: Trial) -> None:
    twin = trial.compile(trial.made(Mlp))
    for _ in range(9):
        twin.each(lambda module: module.up.weight.mul_(1.01))
        twin(trial.normal(3, 8))


@check(Level.L1)
def tied_weights_stay_tied(trial: Trial) -> None:
    twin = trial.compile(trial.made(Tied))
    twin(trial.integers(12, 2, 5))
    twin.each(lambda module: module.embedding.weight.mul_(-0.5))
    twin(trial.integers(12, 2, 5))


@check(Level.L1)
def instances_that_share_code(trial: Trial) -> None:
    class Layers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(Mlp() for _ in range(3))

        def forward(self, x: Tensor) -> Tensor:
            for layer in self.layers:
                x = x + layer(x)
            return x

    trial.compile(trial.made(Layers))(trial.normal(2, 8))
    first = trial.made(Mlp)
    twins = [trial.compile(first), trial.compile(Mlp().eval().to(trial.device))]
    for _ in range(2):
        for twin in twins:
            twin(trial.normal(2, 8))


@check(Level.L1)
def a_tensor_of_an_enclosing_scope_written(trial: Trial) -> None:
    scale = trial.normal(4)
    twin = trial.compile(lambda x: x * scale)
    twin(trial.normal(3, 4))
    scale.add_(1)
    twin(trial.normal(3, 4))


@check(Level.L2)
def a_module_frozen_and_thawed(trial: Trial) -> None:
    twin = trial.compile(trial.made(Mlp), within=torch.enable_grad)
    for learns in (True, False, True):
        twin.each(functools.partial(nn.Module.requires_grad_, requires_grad=learns))
        twin(trial.normal(2, 8))


@check(Level.L2)
def two_programs_of_one_module(trial: Trial) -> None:
    module = trial.made(Mlp)
    first, second = trial.compile(module), trial.compile(module)
    first(trial.normal(2, 8))
    second(trial.normal(2, 8))
    first.each(lambda given: given.up.weight.mul_(2))
    for given in (second.eager, second.exact):
        given.load_state_dict(module.state_dict())
    for twin in (first, second):
        twin(trial.normal(2, 8))


@check(Level.L2)
def weights_that_are_views(trial: Trial) -> None:
    class Fused(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.both = nn.Parameter(torch.randn(16, 8))

        def forward(self, x: Tensor) -> Tensor:
            left, right = self.both.chunk(2)
            return torch.tanh(x @ left.t()) * (x @ right.t())

    twin = trial.compile(trial.made(Fused))
    twin(trial.normal(3, 8))
    twin.each(lambda module: module.both[3].add_(1))
    twin(trial.normal(3, 8))
