"""Inputs at odd addresses are copied, whether or not they lie where they lay before."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fairlead_inductor._trees import Aligned


def same_addresses(tensors: list[Any], addresses: list[int], places: list[int]) -> bool:
    return all(tensors[i].data_ptr() == addresses[i] for i in places)


def test_inputs_at_odd_addresses_are_copied_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Builds of torch without CUDA do not have the comparison."""
    monkeypatch.setattr(torch._C, "_tensors_data_ptrs_at_indices_equal", same_addresses, raising=False)
    aligned, memory = Aligned(3, [0, 2]), torch.arange(64, dtype=torch.int8)
    start = -memory.data_ptr() % 16
    even, odd = memory[start : start + 16], memory[start + 1 : start + 17]
    for _ in range(2):
        inputs: list[Any] = [even, 5, odd]
        aligned.see_to(inputs)
        assert inputs[0] is even
        assert inputs[2] is not odd
        assert torch.equal(inputs[2], odd)
        inputs = [even, 5, even]
        aligned.see_to(inputs)
        assert inputs[2] is even
