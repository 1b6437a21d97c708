"""Numbers that Inductor gets wrong when it is left to, and the backend keeps right."""

from __future__ import annotations

import pytest
import torch

import fairlead


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_cast_to_16_bits_and_back_rounds(dtype: torch.dtype) -> None:
    def rounded(x: torch.Tensor) -> torch.Tensor:
        return (x * 3).to(dtype).to(torch.float32)

    x = torch.linspace(0.1, 1.0, 64)
    assert torch.equal(fairlead.compile(rounded, backend="inductor")(x), rounded(x))
