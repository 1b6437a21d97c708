"""Results are the caller's own, and are what eager's are: values, dtypes, strides, aliases."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from fairlead_conformance._case import Level
from fairlead_conformance._families.semantics._nets import Mlp
from fairlead_conformance._programs import Trial, check
from fairlead_conformance._status import Status


@check(Level.L1, mandatory=True)
def first_result_is_kept(trial: Trial) -> None:
    twin = trial.compile(trial.made(Mlp))
    first = twin(trial.normal(3, 8))
    second = twin(trial.normal(3, 8))
    trial.require(first.data_ptr() != second.data_ptr(), Status.FAIL_ALIAS, "first-result-kept", "one memory for both")


@check(Level.L1, mandatory=True)
def fresh_inputs_give_fresh_results(trial: Trial) -> None:
    twin = trial.compile(trial.made(Mlp))
    for _ in range(4):
        twin(trial.normal(4, 8))


@check(Level.L1)
def same_inputs_give_the_same_bits(trial: Trial) -> None:
    twin = trial.compile(trial.made(Mlp))
    x = trial.normal(4, 8)
    first, *others = [twin(x).clone() for _ in range(5)]
    same = all(torch.equal(first, other) for other in others)
    trial.require(same, Status.FAIL_NONDETERMINISM, "same-bits", "the same call gives other bits")


@check(Level.L1, mandatory=True)
def inputs_keep_their_order(trial: Trial) -> None:
    twin = trial.compile(lambda a, b, c, d: (a - 2 * b) * c + (d - b) * 0.5)
    twin(*(trial.normal(3, 3) for _ in range(4)))


@check(Level.L1)
def results_keep_their_order(trial: Trial) -> None:
    twin = trial.compile(lambda x: (x + 1, x - 1, x * 3, -x, x + 1))
    twin(trial.normal(3))


@check(Level.L1)
def unused_inputs_are_no_shift(trial: Trial) -> None:
    twin = trial.compile(lambda a, unused, b, also_unused, c: a * b - c)
    twin(*(trial.normal(4) for _ in range(5)))


@check(Level.L1)
def results_that_are_inputs(trial: Trial) -> None:
    twin = trial.compile(lambda x, y: (y, x + y, x, x))
    twin(trial.normal(3), trial.normal(3))


@check(Level.L1)
def results_that_show_inputs(trial: Trial) -> None:
    twin = trial.compile(lambda x: (x.t(), x.view(-1), x[1:], x.t().clone(), x.unsqueeze(0), x * 2))
    twin(trial.normal(3, 4))


@check(Level.L1)
def results_that_show_one_another(trial: Trial) -> None:
    def program(x: Tensor) -> tuple[Tensor, ...]:
        y = x * 2
        return y, y.t(), y[1:], y + 1

    trial.compile(program)(trial.normal(3, 4))


@check(Level.L1)
def a_result_given_twice(trial: Trial) -> None:
    def program(x: Tensor) -> dict[str, Tensor]:
        y = x + 1
        return {"once": y, "twice": y}

    trial.compile(program)(trial.normal(2))


@check(Level.L1)
def equal_results_have_memory_of_their_own(trial: Trial) -> None:
    twin = trial.compile(lambda x: (x + 1, x + 1, x.clone(), x.clone()))
    x = trial.normal(4)
    twin(x)
    results = twin.alone(x)
    results[0].fill_(7)
    trial.require(not torch.equal(results[0], results[1]), Status.FAIL_ALIAS, "aliases", "two results are one")


@check(Level.L1)
def writing_to_a_result_harms_no_later_call(trial: Trial) -> None:
    def program(x: Tensor) -> tuple[Tensor, Tensor]:
        positions = torch.arange(4, device=x.device).unsqueeze(0)
        return positions, positions + x

    twin = trial.compile(program)
    twin(trial.integers(9, 4))
    x = trial.integers(9, 4)
    twin.alone(x)[0].fill_(7)
    twin(x)


@check(Level.L1)
def constants_and_weights_as_results(trial: Trial) -> None:
    class Showing(Mlp):
        def forward(self, x: Tensor) -> Any:
            return self.up.bias, x.new_ones(2), self.down(self.up(x)), self.up.weight.t()

    trial.compile(trial.made(Showing))(trial.normal(2, 8))


class _Pair(NamedTuple):
    left: Tensor
    right: Tensor | None


@check(Level.L1)
def containers_none_and_plain_values(trial: Trial) -> None:
    def program(items: dict[str, list[Tensor]], scale: float = 2.0) -> dict[str, Any]:
        doubled = {name: torch.stack(parts).sum(0) * scale for name, parts in items.items()}
        first = doubled["a"]
        return {"pair": _Pair(first, None), "all": [doubled], "size": first.shape[0], "text": "kept", "none": None}

    twin = trial.compile(program)
    twin({"a": [trial.normal(2), trial.normal(2)], "b": [trial.normal(3)]}, scale=3.0)


@check(Level.L1)
def a_result_that_is_none(trial: Trial) -> None:
    twin = trial.compile(lambda x, y: (None, x * y, None))
    twin(trial.normal(3), trial.normal(3))


@check(Level.L1)
def strides_of_results(trial: Trial) -> None:
    def program(x: Tensor) -> tuple[Tensor, ...]:
        y = x * 2 + 1
        return y.transpose(0, 2), y.permute(1, 2, 0), y[:, ::2], y.expand(2, *y.shape), (y.t_() if y.dim() == 2 else y)

    trial.compile(program)(trial.normal(2, 3, 4))


@check(Level.L1)
def memory_format_is_kept(trial: Trial) -> None:
    twin = trial.compile(lambda x: (x * 2, x.relu() + 1, x.contiguous() - 1))
    twin(trial.normal(2, 3, 4, 5).to(memory_format=torch.channels_last))


@check(Level.L1)
def inputs_of_any_strides(trial: Trial) -> None:
    twin = trial.compile(trial.made(Mlp))
    wide = trial.normal(16, 16)
    for x in (wide[:8].t(), trial.normal(8).expand(3, 8), wide[:, ::2], wide[1:4, 3:11], trial.normal(2, 8, 3).mT):
        twin(x)


@check(Level.L1)
def results_of_no_elements_and_of_one(trial: Trial) -> None:
    twin = trial.compile(lambda x: (x.sum(), x[:0] * 2, x[:1] + 1, x.mean(0, keepdim=True)))
    twin(trial.normal(4, 3))


@check(Level.L1, dtype="i64")
def integers_and_booleans_stay_what_they_are(trial: Trial) -> None:
    def program(x: Tensor) -> tuple[Tensor, ...]:
        return x + 1, x > 3, x * 2 - x, (x > 1) & (x < 7), x.to(torch.float32) / 2

    trial.compile(program)(trial.integers(10, 3, 4))


@check(Level.L1, dtype="i64")
def large_integers_lose_no_digit(trial: Trial) -> None:
    twin = trial.compile(lambda x: (x + 1, x * 3))
    twin(2**53 + 1 + trial.integers(1000, 8))


@check(Level.L1)
def float32_stays_float32(trial: Trial) -> None:
    trial.compile(trial.made(torch.nn.Linear, 256, 64))(trial.normal(16, 256))


@check(Level.L1)
def pairs_of_features_are_those_asked_for(trial: Trial) -> None:
    """The products of 27 features with each other, each pair once, from above the diagonal: as in a recommender."""
    first, second = torch.triu_indices(27, 27, 1, device=trial.device)

    def program(*features: Tensor) -> Tensor:
        each = torch.stack(features, 1)
        return torch.cat([features[0], (each @ each.mT)[:, first, second]], 1)

    trial.compile(program)(*(trial.normal(4, 8) for _ in range(27)))


@check(Level.L1)
def not_a_number_and_infinity_pass_through(trial: Trial) -> None:
    x = trial.normal(6)
    x[0], x[1], x[2], x[3] = float("nan"), float("inf"), float("-inf"), -0.0
    trial.compile(lambda x: (x * 2, x.relu(), x + 1, torch.where(x > 0, x, x - 1), x.exp()))(x)


@check(Level.L2, dtype="bf16")
def bfloat16_stays_bfloat16(trial: Trial) -> None:
    module = trial.made(Mlp).to(torch.bfloat16)
    trial.compile(module)(trial.normal(4, 8, dtype=torch.bfloat16))


@check(Level.L2, dtype="f16")
def float16_stays_float16(trial: Trial) -> None:
    trial.compile(lambda x: (x * 2 + 1, torch.where(x > 0, x, -x)))(trial.normal(4, 8, dtype=torch.float16))


@check(Level.L2, dtype="f64")
def float64_is_not_narrowed(trial: Trial) -> None:
    twin = trial.compile(lambda x, y: (x @ y, (x * 3).sum(0)))
    twin(trial.normal(5, 6, dtype=torch.float64), trial.normal(6, 4, dtype=torch.float64))
