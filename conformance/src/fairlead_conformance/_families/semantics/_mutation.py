"""What a program writes to is written exactly as in eager, and nothing else is."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fairlead_conformance._case import Level
from fairlead_conformance._families.semantics._nets import Counting, Mlp
from fairlead_conformance._programs import Trial, check


@check(Level.L1, mandatory=True)
def inputs_are_left_alone(trial: Trial) -> None:
    twin = trial.compile(trial.made(Mlp))
    twin(trial.normal(4, 8))
    twin(trial.normal(4, 8))


@check(Level.L1)
def an_input_written_in_place(trial: Trial) -> None:
    def program(x: Tensor, y: Tensor) -> Tensor:
        x.add_(y)
        x[0].mul_(2)
        return x * 2

    twin = trial.compile(program)
    for _ in range(2):
        twin(trial.normal(3, 4), trial.normal(3, 4))


@check(Level.L1)
def an_input_written_and_returned(trial: Trial) -> None:
    trial.compile(lambda x, y: x.mul_(y))(trial.normal(3), trial.normal(3))


@check(Level.L1)
def a_program_that_only_writes(trial: Trial) -> None:
    def program(x: Tensor, y: Tensor) -> None:
        x.copy_(y * 2)

    trial.compile(program)(trial.normal(3), trial.normal(3))


@check(Level.L1)
def a_view_of_an_input_written(trial: Trial) -> None:
    def program(x: Tensor) -> Tensor:
        x.t()[1].fill_(5)
        x[:, 2:].mul_(3)
        return x.sum()

    trial.compile(program)(trial.normal(3, 4))


@check(Level.L1)
def a_view_of_something_computed_written(trial: Trial) -> None:
    def program(x: Tensor) -> tuple[Tensor, Tensor]:
        y = x * 2
        z = y.view(-1)
        y[0].add_(1)
        z[-1] = 9
        return y, z

    trial.compile(program)(trial.normal(3, 4))


@check(Level.L1)
def a_transposed_input_written(trial: Trial) -> None:
    def program(x: Tensor) -> Tensor:
        x.add_(1)
        return x * 2

    trial.compile(program)(trial.normal(3, 4).t())


@check(Level.L1)
def read_before_and_after_a_write(trial: Trial) -> None:
    def program(x: Tensor) -> tuple[Tensor, Tensor]:
        before = x * 3
        x.sub_(1)
        return before, x * 3

    trial.compile(program)(trial.normal(5))


@check(Level.L2)
def inputs_that_share_memory(trial: Trial) -> None:
    def program(x: Tensor, y: Tensor) -> Tensor:
        x.add_(1)
        return y * 2

    x = trial.normal(6)
    trial.compile(program, exact=False)(x, x[2:])


@check(Level.L1)
def one_tensor_passed_twice(trial: Trial) -> None:
    def program(x: Tensor, y: Tensor) -> Tensor:
        x.mul_(2)
        return x + y

    x = trial.normal(4)
    trial.compile(program, exact=False)(x, x)


@check(Level.L2)
def a_result_written_to_out(trial: Trial) -> None:
    def program(x: Tensor, y: Tensor, out: Tensor) -> Tensor:
        return torch.add(x, y, out=out) * 2

    trial.compile(program, exact=False)(trial.normal(3), trial.normal(3), trial.normal(3))


@check(Level.L2)
def rows_written_by_index(trial: Trial) -> None:
    def program(cache: Tensor, position: Tensor, row: Tensor) -> Tensor:
        cache.index_copy_(0, position, row)
        return cache.sum(0)

    twin = trial.compile(program)
    for row in range(3):
        twin(trial.normal(5, 4), trial.tensor([row]), trial.normal(1, 4))


@check(Level.L1, mandatory=True)
def a_buffer_counts_the_calls(trial: Trial) -> None:
    twin = trial.compile(trial.made(Counting))
    for _ in range(3):
        twin(trial.normal(3, 8))


@check(Level.L1)
def a_buffer_written_from_outside(trial: Trial) -> None:
    twin = trial.compile(trial.made(Counting))
    twin(trial.normal(3, 8))
    twin.each(lambda module: module.calls.fill_(41))
    twin(trial.normal(3, 8))


@check(Level.L2)
def a_buffer_replaced_by_the_program(trial: Trial) -> None:
    class Replacing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mean: Tensor
            self.register_buffer("mean", torch.zeros(4))

        def forward(self, x: Tensor) -> Tensor:
            self.mean = self.mean * 0.9 + x.mean(0) * 0.1
            return x - self.mean

    twin = trial.compile(trial.made(Replacing))
    for _ in range(3):
        twin(trial.normal(6, 4))


@check(Level.L2)
def statistics_of_a_batch_norm(trial: Trial) -> None:
    twin = trial.compile(trial.made(nn.BatchNorm1d, 4).train())
    for _ in range(3):
        twin(trial.normal(6, 4))


@check(Level.L1)
def a_write_that_does_not_change_the_input_of_a_caller(trial: Trial) -> None:
    def program(x: Tensor) -> Tensor:
        y = x.clone()
        y.mul_(0)
        return x + y.add_(1)

    trial.compile(program)(trial.normal(4))
