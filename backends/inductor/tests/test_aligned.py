"""Inputs at odd addresses are copied, whether or not they lie where they lay before."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._inductor import compile_fx

from fairlead_inductor._trees import Aligned, Recordings


def same_addresses(tensors: list[Any], addresses: list[int], places: list[int]) -> bool:
    return all(tensors[i].data_ptr() == addresses[i] for i in places)


@pytest.fixture
def aligned(monkeypatch: pytest.MonkeyPatch) -> Aligned:
    """Of the first and third of three inputs. Builds of torch without CUDA do not have the comparison."""
    monkeypatch.setattr(torch._C, "_tensors_data_ptrs_at_indices_equal", same_addresses, raising=False)
    return Aligned(3, [0, 2])


@pytest.fixture
def memory() -> torch.Tensor:
    """Bytes, the first of which is at an even address."""
    found = torch.arange(64, dtype=torch.int8)
    return found[-found.data_ptr() % 16 :]


def test_inputs_at_odd_addresses_are_copied_at_each_call(aligned: Aligned, memory: torch.Tensor) -> None:
    even, odd = memory[:16], memory[1:17]
    for _ in range(2):
        inputs: list[Any] = [even, 5, odd]
        aligned.see_to(inputs)
        assert inputs[0] is even
        assert inputs[2] is not odd
        assert torch.equal(inputs[2], odd)
        assert not aligned.have_stayed([even, 5, odd])
        inputs = [even, 5, even]
        aligned.see_to(inputs)
        assert inputs[2] is even


def test_those_have_stayed_that_lie_where_the_last_ones_lay_that_were_kept(
    aligned: Aligned, memory: torch.Tensor
) -> None:
    here, there = memory[:16], memory[16:32]
    assert not aligned.have_stayed([here, 5, there])
    aligned.see_to([here, 5, there])
    assert aligned.have_stayed([here, 7, there])
    assert not aligned.have_stayed([here, 5, here])
    aligned.see_to([here, 5, here], keep=False)
    assert aligned.have_stayed([here, 5, there])
    assert not aligned.have_stayed([here, 5, here])


def test_what_is_recorded_sees_to_addresses_itself(memory: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads copies of inputs at odd ones, and what it writes to a copy is written where that is of."""
    even, odd, written = memory[:16], memory[17:33], memory[33:49]
    right = [even + 1, odd.clone(), torch.full_like(written, 5)]
    met: list[list[Any]] = []

    def model(inputs: list[Any]) -> Any:
        met.append(list(inputs))
        inputs[2].fill_(5)
        return [inputs[0] + 1, inputs[1].clone()]

    monkeypatch.setattr(compile_fx, "cudagraphify", lambda model, *args, **how: model)
    recordings = Recordings()
    compiled = recordings.within(lambda: compile_fx.cudagraphify(model, (), mutated_input_idxs=(2,)))
    assert not recordings.made
    found = compiled()([even, odd, written])
    assert recordings.made
    assert [x.data_ptr() % 16 for x in met[0]] == [0, 0, 0]
    assert met[0][0] is even
    for mine, theirs in zip([*found, written], right, strict=True):
        assert torch.equal(mine, theirs)
    assert compile_fx.cudagraphify(model) is model
