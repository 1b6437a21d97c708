"""The modes of torch that are on at a call: gradients, inference, autocast, and those that the program sets."""

from __future__ import annotations

import functools

import torch
from torch import Tensor, nn

from fairlead_conformance._case import Level
from fairlead_conformance._device_names import kind_of
from fairlead_conformance._families.semantics._nets import Mlp, Noisy
from fairlead_conformance._programs import Trial, check


@check(Level.L1)
def under_inference_mode(trial: Trial) -> None:
    twin = trial.compile(trial.made(Mlp), within=torch.inference_mode)
    twin(trial.normal(2, 8))
    twin(trial.normal(2, 8))


@check(Level.L2)
def tensors_made_under_inference_mode(trial: Trial) -> None:
    with torch.inference_mode():
        module, x = trial.made(Mlp), trial.normal(2, 8)
        trial.compile(module, within=torch.inference_mode)(x)


@check(Level.L1)
def with_gradients_on(trial: Trial) -> None:
    trial.compile(trial.made(Mlp), within=torch.enable_grad)(trial.normal(2, 8))


@check(Level.L2)
def modes_in_turn(trial: Trial) -> None:
    module = trial.made(Mlp)
    for mode in (torch.no_grad, torch.enable_grad, torch.inference_mode, torch.no_grad):
        trial.compile(module, within=mode)(trial.normal(2, 8))


@check(Level.L1)
def no_grad_inside_of_the_program(trial: Trial) -> None:
    def program(x: Tensor) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            y = x * 2
        return y, x * 3

    trial.compile(program, within=torch.enable_grad)(trial.normal(3).requires_grad_())


@check(Level.L1)
def a_detached_result(trial: Trial) -> None:
    trial.compile(lambda x: (x.detach() * 2, x * 2), within=torch.enable_grad)(trial.normal(3).requires_grad_())


@check(Level.L2)
def autocast_around_the_call(trial: Trial) -> None:
    def within() -> torch.autocast:
        return torch.autocast(kind_of(trial.device), torch.bfloat16)

    module = trial.made(Mlp).requires_grad_(False)
    trial.compile(module, within=within)(trial.normal(2, 8))


@check(Level.L2)
def autocast_inside_of_the_program(trial: Trial) -> None:
    def program(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        with torch.autocast(x.device.type, torch.bfloat16):
            y = x @ w
        return y, x @ w

    trial.compile(program)(trial.normal(4, 4), trial.normal(4, 4))


@check(Level.L2)
def autocast_rounds_what_passes_through(trial: Trial) -> None:
    def program(x: Tensor) -> Tensor:
        return x.to(torch.bfloat16).to(torch.float32) - x

    trial.compile(program, exact=False)(trial.normal(64))


@check(Level.L1)
def training_mode_switched(trial: Trial) -> None:
    twin = trial.compile(trial.made(Noisy), draws=True)
    for training in (False, True, False):
        twin.each(functools.partial(nn.Module.train, mode=training))
        twin(trial.normal(3, 8))


@check(Level.L2)
def another_default_dtype(trial: Trial) -> None:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        trial.compile(lambda x: x * torch.ones(3, device=x.device) + 0.1)(trial.normal(3, dtype=torch.float64))
    finally:
        torch.set_default_dtype(before)


@check(Level.L2)
def one_thread(trial: Trial) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        trial.compile(trial.made(Mlp))(trial.normal(2, 8))
    finally:
        torch.set_num_threads(before)


@check(Level.L1)
def several_threads_add_at_one_place(trial: Trial) -> None:
    """Eight thousand rows added to ten: a thread that overwrites what another has added loses whole numbers."""
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        twin = trial.compile(lambda x, places, rows: x.index_add(0, places, rows))
        for _ in range(3):
            twin(trial.normal(10, 2).round(), trial.integers(10, 8000), trial.normal(8000, 2).round())
    finally:
        torch.set_num_threads(before)
