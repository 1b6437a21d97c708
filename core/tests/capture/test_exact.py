"""Ops that torch's own table takes apart with other results than their kernels have."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from .conftest import Compile

FAR = [
    -(2**31),
    -400,
    -277,
    -253,
    -252,
    -200,
    -149,
    -127,
    -126,
    -24,
    -1,
    0,
    1,
    14,
    126,
    127,
    200,
    252,
    277,
    400,
    2**31 - 1,
]
NUMBERS = [0.0, -0.0, 1.0, -1.9, 1e-45, -3e-39, 1e-30, 1e30, -3e38, float("inf"), float("-inf"), float("nan")]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("kind", [torch.int64, torch.int32, torch.int16], ids=str)
def test_a_number_is_scaled_as_far_as_it_goes(dtype: torch.dtype, kind: torch.dtype, program: Compile) -> None:
    x = torch.tensor(NUMBERS, dtype=dtype)[:, None].repeat(1, len(FAR))
    most = torch.iinfo(kind).max
    exponents = torch.tensor(FAR).clamp(-most, most).to(kind).repeat(len(NUMBERS), 1)
    found = program(torch.ldexp)(x, exponents)
    assert found.dtype is dtype
    torch.testing.assert_close(found, torch.ldexp(x, exponents), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize(
    ("x", "exponent"),
    [
        (torch.arange(5), torch.tensor(2.0, dtype=torch.half)),
        (torch.arange(5), torch.tensor([2.0], dtype=torch.half)),
        (torch.arange(5), torch.tensor(3)),
        (torch.tensor([True]), torch.tensor(2.0, dtype=torch.bfloat16)),
        (torch.tensor([1e-30]), torch.tensor([200.0])),
        (torch.tensor([0.5], dtype=torch.half), torch.tensor([2.0], dtype=torch.float64)),
        (torch.tensor([0.5], dtype=torch.half), torch.tensor(2.0, dtype=torch.float64)),
        (torch.tensor([0.5], dtype=torch.float64), torch.tensor([2])),
        (torch.tensor([1e-30 + 1j]), torch.tensor([20])),
    ],
)
def test_any_other_operands_are_multiplied_in_the_dtype_that_eager_has(
    x: Tensor, exponent: Tensor, program: Compile
) -> None:
    found, expected = program(torch.ldexp)(x, exponent), torch.ldexp(x, exponent)
    assert found.dtype is expected.dtype
    assert torch.equal(found, expected)
