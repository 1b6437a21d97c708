"""What ONNX Runtime rounds, fuses or folds wrongly when it is left to, and the lowering keeps right."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import fairlead

ZEROS = torch.tensor([-0.0, 0.0, -0.4, 0.4])


def run(function: Callable[..., torch.Tensor], *args: torch.Tensor) -> torch.Tensor:
    return fairlead.compile(function, backend="onnxrt")(*args)


@pytest.mark.parametrize("mode", ["floor", "trunc"])
def test_division_keeps_the_sign_of_zero(mode: str) -> None:
    found = run(lambda x: torch.div(x, 1.0, rounding_mode=mode), ZEROS)
    assert torch.equal(found.signbit(), torch.div(ZEROS, 1.0, rounding_mode=mode).signbit())


@pytest.mark.parametrize("op", [torch.trunc, torch.log1p, torch.expm1, torch.floor, torch.ceil, torch.round])
def test_a_function_keeps_the_sign_of_zero(op: Callable[[torch.Tensor], torch.Tensor]) -> None:
    assert torch.equal(run(op, ZEROS).signbit(), op(ZEROS).signbit())


@pytest.mark.parametrize("op", [torch.remainder, torch.fmod])
def test_a_remainder_keeps_the_sign_of_zero(op: Callable[..., torch.Tensor]) -> None:
    x = torch.tensor([-0.0, 0.0, -4.0, 4.0])
    assert torch.equal(run(lambda x: op(x, 2.0), x).signbit(), op(x, 2.0).signbit())


def test_the_factor_of_a_product_in_f64_is_not_rounded_to_f32() -> None:
    a, b = torch.randn(3, 4, dtype=torch.float64), torch.randn(4, 5, dtype=torch.float64)
    torch.testing.assert_close(run(lambda a, b: a @ b * 0.1, a, b), a @ b * 0.1, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("centred", [False, True])
def test_a_norm_keeps_an_epsilon_that_is_an_input(centred: bool) -> None:
    def norm(x: torch.Tensor, epsilon: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        x = x - x.mean(-1, keepdim=True) if centred else x
        return x / torch.sqrt(x.pow(2).mean(-1, keepdim=True) + epsilon) * weight

    args = torch.randn(2, 8) * 1e-3, torch.tensor(1e-6), torch.ones(8)
    torch.testing.assert_close(run(norm, *args), norm(*args))


def test_a_small_sigmoid_is_not_zero() -> None:
    x = torch.tensor([-40.0, -20.0, -8.0, -1.0, 0.0, 8.0, 40.0])
    torch.testing.assert_close(run(torch.sigmoid, x), torch.sigmoid(x), rtol=1e-6, atol=0.0)
