"""Random numbers: eager's under the same seed, unless the backend says that it draws its own; never constant."""

from __future__ import annotations

import torch
from torch import Tensor

from fairlead_conformance._case import Level
from fairlead_conformance._families.semantics._nets import Noisy
from fairlead_conformance._programs import Trial, check
from fairlead_conformance._status import Status


@check(Level.L1, mandatory=True)
def a_program_that_draws_nothing_moves_no_generator(trial: Trial) -> None:
    twin = trial.compile(lambda x: x.relu() + 1)
    twin(trial.normal(3))
    twin(trial.normal(3))


@check(Level.L1)
def dropout_drops_what_eager_drops(trial: Trial) -> None:
    twin = trial.compile(trial.made(Noisy).train(), draws=True)
    for _ in range(2):
        twin(trial.normal(4, 8))


@check(Level.L1)
def dropout_drops_the_right_share(trial: Trial) -> None:
    twin = trial.compile(lambda x: torch.dropout(x, 0.3, True), draws=True)
    got = twin(trial.ones(20_000))
    share = (got == 0).float().mean().item()
    trial.require(abs(share - 0.3) < 0.025, Status.FAIL_RNG, "share", f"{share:.3f} of the values dropped, not 0.3")
    kept = got[got != 0]
    right = bool(((kept - 1 / 0.7).abs() < 1e-5).all())
    trial.require(right, Status.FAIL_RNG, "scale", "what is kept is not scaled by 1/(1-p)")


@check(Level.L1)
def each_call_draws_anew(trial: Trial) -> None:
    twin = trial.compile(lambda x: torch.dropout(x, 0.5, True), draws=True)
    twin(trial.ones(64))
    torch.manual_seed(trial.salt)
    first, second = twin.alone(trial.ones(64)).clone(), twin.alone(trial.ones(64))
    trial.require(not torch.equal(first, second), Status.FAIL_RNG, "fresh-numbers", "two calls drew the same")
    torch.manual_seed(trial.salt)
    again = twin.alone(trial.ones(64))
    trial.require(torch.equal(first, again), Status.FAIL_RNG, "seed", "the same seed gives other numbers")


@check(Level.L1)
def another_seed_draws_others(trial: Trial) -> None:
    twin = trial.compile(lambda x: torch.dropout(x, 0.5, True), draws=True)
    twin(trial.ones(64))
    results = []
    for seed in (trial.salt, trial.salt + 1):
        torch.manual_seed(seed)
        results.append(twin.alone(trial.ones(64)).clone())
    trial.require(not torch.equal(*results), Status.FAIL_RNG, "seed", "two seeds give the same numbers")


@check(Level.L1)
def two_draws_in_one_program_differ(trial: Trial) -> None:
    def program(x: Tensor) -> tuple[Tensor, Tensor]:
        return torch.dropout(x, 0.5, True), torch.dropout(x * 1, 0.5, True)

    first, second = trial.compile(program, draws=True)(trial.ones(64))
    trial.require(not torch.equal(first, second), Status.FAIL_RNG, "fresh-numbers", "two dropouts drew the same")


@check(Level.L1)
def dropout_in_evaluation_drops_nothing(trial: Trial) -> None:
    trial.compile(trial.made(Noisy))(trial.normal(4, 8))


@check(Level.L2)
def noise_is_eagers(trial: Trial) -> None:
    def program(x: Tensor) -> tuple[Tensor, ...]:
        y = x + torch.randn_like(x)
        return y, torch.rand(3, device=x.device), y * torch.rand(4, device=x.device)

    twin = trial.compile(program, draws=True)
    for _ in range(2):
        twin(trial.normal(4))


@check(Level.L2)
def noise_has_the_right_moments(trial: Trial) -> None:
    noise = trial.compile(lambda x: torch.randn_like(x) * 2 + 1, draws=True)(trial.ones(20_000))
    mean, deviation = noise.mean().item(), noise.std().item()
    right = abs(mean - 1) < 0.1 and abs(deviation - 2) < 0.1
    trial.require(right, Status.FAIL_RNG, "moments", f"mean {mean:.3f} and deviation {deviation:.3f}, not 1 and 2")


@check(Level.L2)
def draws_keep_the_order_of_the_program(trial: Trial) -> None:
    def program(x: Tensor) -> Tensor:
        first = torch.rand_like(x)
        y = (x + first).relu()
        second = torch.rand_like(x)
        return y * second - first

    trial.compile(program, draws=True)(trial.normal(5))


@check(Level.L2)
def a_branch_not_taken_draws_nothing(trial: Trial) -> None:
    def program(x: Tensor, noisy: bool) -> Tensor:
        return x + torch.rand_like(x) if noisy else x + 1

    twin = trial.compile(program, draws=True)
    for noisy in (False, True, False):
        twin(trial.normal(4), noisy)
