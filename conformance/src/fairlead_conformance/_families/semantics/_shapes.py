"""Sizes that change from call to call, down to zero and one, with symbols and without."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fairlead_conformance._case import Level
from fairlead_conformance._families.semantics._nets import Mlp
from fairlead_conformance._programs import Trial, check

_SYMBOLS = ("dynamic_shapes",)


@check(Level.L1)
def a_batch_that_changes(trial: Trial) -> None:
    twin = trial.compile(trial.made(Mlp))
    for size in (4, 9, 3, 4):
        twin(trial.normal(size, 8))


@check(Level.L1, mandatory=True)
def batches_of_none_and_of_one(trial: Trial) -> None:
    twin = trial.compile(lambda x: (x * 2).sum(0), dynamic=False)
    for size in (2, 0, 1):
        twin(trial.normal(size, 3))


@check(Level.L1, needs=_SYMBOLS)
def a_symbol_that_is_zero_or_one(trial: Trial) -> None:
    twin = trial.compile(trial.made(Mlp), dynamic=True)
    for shape in ((3, 2, 8), (1, 1, 8), (0, 4, 8), (5, 0, 8)):
        twin(trial.normal(*shape))


@check(Level.L1, needs=_SYMBOLS)
def a_length_that_grows(trial: Trial) -> None:
    twin = trial.compile(lambda x: x.cumsum(0) * 2, dynamic=True)
    for length in (4, 9, 3, 33):
        twin(trial.normal(length, 3))


@check(Level.L1, needs=_SYMBOLS)
def two_symbols_exchanged(trial: Trial) -> None:
    twin = trial.compile(lambda x, y: (x @ y).t() + x.shape[0] - 2 * y.shape[1], dynamic=True)
    for rows, columns in ((3, 5), (5, 3), (7, 2)):
        twin(trial.normal(rows, 4), trial.normal(4, columns))


@check(Level.L1, needs=_SYMBOLS)
def sizes_used_as_numbers(trial: Trial) -> None:
    def program(x: Tensor) -> tuple[Tensor, int]:
        return x.sum(0) / x.shape[0] + torch.arange(x.shape[1], device=x.device), x.shape[0] * 2

    twin = trial.compile(program, dynamic=True)
    for shape in ((3, 4), (6, 4), (2, 7)):
        twin(trial.normal(*shape))


@check(Level.L1, needs=_SYMBOLS)
def sizes_split_and_merged(trial: Trial) -> None:
    def program(x: Tensor) -> Tensor:
        batch, length, width = x.shape
        heads = x.view(batch, length, 2, width // 2).transpose(1, 2)
        return (heads * 2).transpose(1, 2).reshape(batch * length, width)

    twin = trial.compile(program, dynamic=True)
    for shape in ((2, 3, 4), (3, 5, 8), (1, 2, 6)):
        twin(trial.normal(*shape))


@check(Level.L1, needs=_SYMBOLS)
def slices_whose_ends_follow_the_size(trial: Trial) -> None:
    twin = trial.compile(lambda x: (x[: x.shape[0] // 2] * 2, x[-2:] + 1, x[1:] - x[:-1]), dynamic=True)
    for length in (4, 7, 10):
        twin(trial.normal(length, 2))


@check(Level.L1, needs=_SYMBOLS)
def concatenation_of_two_lengths(trial: Trial) -> None:
    twin = trial.compile(lambda past, x: torch.cat([past, x * 2], 1), dynamic=True)
    for past in (0, 1, 2, 5):
        twin(trial.normal(2, past, 3), trial.normal(2, 2, 3))


@check(Level.L1)
def a_dimension_of_one_is_broadcast(trial: Trial) -> None:
    twin = trial.compile(lambda x, y: x * y - y)
    for shape in ((3, 4), (1, 4), (3, 1), (4,), ()):
        twin(trial.normal(3, 4), trial.normal(*shape))


@check(Level.L1)
def no_dimensions_at_all(trial: Trial) -> None:
    twin = trial.compile(lambda x, y: (x + y, (x * y).relu(), x.unsqueeze(0)))
    twin(trial.normal(), trial.normal())


@check(Level.L1)
def a_rank_that_changes(trial: Trial) -> None:
    twin = trial.compile(trial.made(Mlp))
    for shape in ((8,), (2, 8), (2, 3, 8)):
        twin(trial.normal(*shape))


@check(Level.L1)
def reductions_of_nothing(trial: Trial) -> None:
    twin = trial.compile(lambda x: (x.sum(), x.sum(0), x.sum(1), x * 2), dynamic=False)
    twin(trial.normal(0, 3))
    twin(trial.normal(2, 0))


@check(Level.L2, needs=_SYMBOLS)
def a_convolution_of_any_size(trial: Trial) -> None:
    twin = trial.compile(trial.made(nn.Conv2d, 3, 4, 3, padding=1, stride=2), dynamic=True)
    for shape in ((1, 3, 8, 8), (2, 3, 9, 7), (3, 3, 5, 12)):
        twin(trial.normal(*shape))


@check(Level.L2, needs=_SYMBOLS)
def a_mask_made_from_the_length(trial: Trial) -> None:
    def program(scores: Tensor) -> Tensor:
        length = scores.shape[-1]
        mask = torch.ones(length, length, dtype=torch.bool, device=scores.device).tril()
        return scores.masked_fill(~mask, float("-inf")).softmax(-1)

    twin = trial.compile(program, dynamic=True)
    for length in (3, 6, 1):
        twin(trial.normal(2, length, length))
