"""How programs are written: breaks, side effects, arguments that are no tensors, errors, long and shared code."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch import Tensor, nn

from fairlead_conformance._case import Level
from fairlead_conformance._families.semantics._nets import Mlp
from fairlead_conformance._programs import Trial, check


@check(Level.L1)
def a_graph_break(trial: Trial) -> None:
    class Broken(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = Mlp(), Mlp()

        def forward(self, x: Tensor) -> Any:
            y = self.first(x)
            torch._dynamo.graph_break()
            return self.second(y) + x

    twin = trial.compile(trial.made(Broken))
    twin(trial.normal(2, 8))
    twin(trial.normal(2, 8))


@check(Level.L1)
def a_number_that_changes(trial: Trial) -> None:
    twin = trial.compile(lambda x, factor, count: x * factor + count)
    for factor, count in ((0.5, 1), (0.25, 1), (0.5, 2), (-3.0, 0)):
        twin(trial.normal(3, 4), factor, count)


@check(Level.L1)
def a_flag_that_changes(trial: Trial) -> None:
    def program(x: Tensor, flag: bool, how: str = "add") -> Tensor:
        y = x.relu() if flag else -x
        return y + 1 if how == "add" else y * 2

    twin = trial.compile(program)
    for flag, how in ((True, "add"), (False, "add"), (True, "mul"), (False, "mul"), (True, "add")):
        twin(trial.normal(4), flag, how)


@check(Level.L1)
def an_argument_that_may_be_none(trial: Trial) -> None:
    def program(x: Tensor, bias: Tensor | None = None) -> Tensor:
        return x * 2 if bias is None else x * 2 + bias

    twin = trial.compile(program)
    twin(trial.normal(4))
    twin(trial.normal(4), trial.normal(4))
    twin(trial.normal(4), bias=None)


@check(Level.L1)
def arguments_by_name_in_any_order(trial: Trial) -> None:
    twin = trial.compile(lambda x, *, left, right: x * left - right)
    twin(trial.normal(3), right=trial.normal(3), left=trial.normal(3))
    twin(trial.normal(3), left=trial.normal(3), right=trial.normal(3))


@check(Level.L2)
def another_dtype_at_the_second_call(trial: Trial) -> None:
    twin = trial.compile(lambda x: x * 2 + 1)
    for dtype in (torch.float32, torch.int64, torch.float64, torch.float32):
        twin((trial.normal(4) * 10).to(dtype))


@check(Level.L1)
def an_error_and_then_a_right_call(trial: Trial) -> None:
    twin = trial.compile(lambda x, y: x @ y + 1)
    twin(trial.normal(2, 3), trial.normal(3, 2))
    with torch.no_grad(), contextlib.suppress(Exception):  # torch refuses to capture it
        twin.compiled(trial.normal(2, 3), trial.normal(4, 2))
    twin(trial.normal(2, 3), trial.normal(3, 2))


@check(Level.L1)
def an_error_of_the_program_itself(trial: Trial) -> None:
    def program(x: Tensor, fails: bool) -> Tensor:
        y = x * 2
        if fails:
            raise KeyError("the program's own")
        return y + 1

    twin = trial.compile(program)
    twin(trial.normal(3), False)
    with contextlib.suppress(KeyError):
        twin.compiled(trial.normal(3), True)
    twin(trial.normal(3), False)


@check(Level.L1)
def a_list_that_the_program_appends_to(trial: Trial) -> None:
    def program(x: Tensor, seen: list[Tensor]) -> Tensor:
        seen.append(x * 2)
        seen.append(seen[0] + 1)
        return x + 1

    trial.compile(program)(trial.normal(3), [])


@check(Level.L2)
def an_attribute_that_counts(trial: Trial) -> None:
    class Stepping(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.steps = 0

        def forward(self, x: Tensor) -> Tensor:
            self.steps += 1
            return x * self.steps

    twin = trial.compile(trial.made(Stepping))
    for _ in range(4):
        twin(trial.normal(3))


@check(Level.L2)
def hooks_of_a_module(trial: Trial) -> None:
    module = trial.made(Mlp)
    module.get_submodule("up").register_forward_hook(lambda mod, args, out: out * 2)
    module.get_submodule("down").register_forward_pre_hook(lambda mod, args: (args[0] + 1,))
    trial.compile(module)(trial.normal(2, 8))


@check(Level.L2)
def a_chain_of_two_hundred_ops(trial: Trial) -> None:
    def program(x: Tensor) -> Tensor:
        for step in range(100):
            x = (x * 1.01).relu() if step % 3 else x - 0.01
        return x

    trial.compile(program)(trial.normal(4))


@check(Level.L1)
def one_value_used_many_times(trial: Trial) -> None:
    def program(x: Tensor) -> Tensor:
        y = x.relu()
        z = y * y + y
        return (z - y) * (z + y) + x

    trial.compile(program)(trial.normal(5))


@check(Level.L1)
def layers_of_one_shape_keep_their_own_weights(trial: Trial) -> None:
    module = trial.made(lambda: nn.Sequential(*(nn.Linear(8, 8) for _ in range(4))))
    trial.compile(module)(trial.normal(3, 8))


@check(Level.L1)
def constants_inside_of_the_program(trial: Trial) -> None:
    def program(x: Tensor) -> tuple[Tensor, ...]:
        table = torch.tensor([[1.0, -2.0], [3.0, 4.0]], device=x.device)
        return x * table, x + torch.ones(2, device=x.device), x.new_zeros(2, 2), x.new_full((2,), 3.5) * x[0]

    trial.compile(program)(trial.normal(2, 2))


@check(Level.L2)
def gradients_taken_inside_of_the_program(trial: Trial) -> None:
    def program(x: Tensor) -> tuple[Tensor, Tensor]:
        slope = torch.func.grad(lambda v: (v * v * v).sum())(x)
        return slope, torch.func.vmap(lambda row: row * row.sum())(x)

    trial.compile(program)(trial.normal(3, 4))


@check(Level.L2)
def two_programs_in_turn(trial: Trial) -> None:
    first, second = trial.compile(lambda x: x * 2 + 1), trial.compile(lambda x: x * 2 - 1)
    for _ in range(3):
        first(trial.normal(4))
        second(trial.normal(4))


@check(Level.L2)
def a_compiled_program_in_another(trial: Trial) -> None:
    inner = trial.compile(trial.made(Mlp))
    inner(trial.normal(2, 8))
    outer = trial.compile(nn.Sequential(inner.eager, nn.ReLU()))
    outer(trial.normal(2, 8))
