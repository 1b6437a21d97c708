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


def test_a_small_slope_of_silu_is_right() -> None:
    x = torch.tensor([-40.0, -20.0, -9.0, -1.0, 0.5], requires_grad=True)
    expected = torch.autograd.grad(torch.nn.functional.silu(x).sum(), x)[0]
    found = torch.autograd.grad(run(torch.nn.functional.silu, x).sum(), x)[0]
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=0.0)


def same_bits(found: torch.Tensor, expected: torch.Tensor) -> bool:
    same = (found == expected) & (found.signbit() == expected.signbit())
    return bool((same | (found.isnan() & expected.isnan())).all())


@pytest.mark.parametrize(
    ("yes", "no"),
    [(ZEROS, torch.tensor(1.0)), (ZEROS, -ZEROS), (torch.tensor(-0.0), ZEROS), (ZEROS, ZEROS * torch.inf)],
)
def test_a_choice_keeps_the_sign_of_zero(yes: torch.Tensor, no: torch.Tensor) -> None:
    for condition in torch.tensor([[True, False, True, False], [False, True, False, True]]):
        assert same_bits(run(torch.where, condition, yes, no), torch.where(condition, yes, no))


@pytest.mark.parametrize("mode", ["floor", "trunc"])
@pytest.mark.parametrize("divisors", [1, 200])
def test_a_division_of_halves_is_rounded_before_it_is_made_whole(mode: str, divisors: int) -> None:
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(n, generator=generator).mul(9).bfloat16() for n in (200, divisors))
    assert torch.equal(run(lambda x, y: torch.div(x, y, rounding_mode=mode), x, y), torch.div(x, y, rounding_mode=mode))


@pytest.mark.parametrize("place", [0, 4, 8])
def test_pooling_keeps_a_nan_in_its_windows(place: int) -> None:
    x = torch.arange(81.0).reshape(1, 1, 9, 9)
    x[0, 0, place, place] = torch.nan
    for op in (lambda x: torch.max_pool2d(x, 3), lambda x: torch.nn.functional.adaptive_avg_pool2d(x, (5, 4))):
        torch.testing.assert_close(run(op, x), op(x), equal_nan=True)


@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf, -1.0])
def test_pooling_of_what_is_not_negative_keeps_it_too(value: float, padding: int) -> None:
    x = torch.randn(2, 3, 9, 9)
    x[:, 0, 4, 4] = x[1, :, 0, 8] = value
    x[0, 1, 5, 5], x[0, 1, 6, 6] = torch.inf, -torch.inf

    def pool(x: torch.Tensor) -> torch.Tensor:
        return torch.max_pool2d(x.relu(), 3, 2, padding, ceil_mode=True)

    torch.testing.assert_close(run(pool, x), pool(x), equal_nan=True)


def test_the_place_of_a_nan_is_that_of_the_last_in_its_window() -> None:
    x = torch.zeros(1, 2, 3, 6)
    x[0, :, 0, 1] = x[0, 1, 1, 0] = torch.nan
    x.requires_grad_()

    def slope(function: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        return torch.autograd.grad(function(x), x, torch.ones(1, 2, 1, 2))[0]

    def pool(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.max_pool2d(x, 3)

    assert torch.equal(slope(lambda x: run(pool, x)), slope(pool))


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_a_row_of_doubles_with_a_nan_has_no_logarithm(value: float) -> None:
    x = torch.randn(3, 9, dtype=torch.float64)
    x[1, 4] = value
    torch.testing.assert_close(run(lambda x: x.log_softmax(-1), x), x.log_softmax(-1), equal_nan=True)


def test_attention_in_f64_is_not_scaled_in_f32() -> None:
    args = [torch.randn(2, 2, 5, 8, dtype=torch.float64) for _ in range(3)]
    attention = torch.nn.functional.scaled_dot_product_attention
    torch.testing.assert_close(run(attention, *args), attention(*args), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(
    ("start", "end", "step", "dtype"),
    [
        (2.1, -2.9, -1.0, torch.float32),
        (0, -8, -4, torch.float32),
        (0.0, -1.0, -0.3, torch.float32),
        (-1, 2, 2, torch.uint8),
    ],
)
def test_a_count_is_rounded_once(start: float, end: float, step: float, dtype: torch.dtype) -> None:
    def count(x: torch.Tensor) -> torch.Tensor:
        return torch.arange(start, end, step, dtype=dtype) + x

    torch.compiler.reset()  # else the numbers of the second case are taken for symbols
    assert same_bits(run(count, torch.zeros((), dtype=dtype)), count(torch.zeros((), dtype=dtype)))


def test_a_number_wraps_in_a_byte() -> None:
    x = torch.tensor([0, 1, 255], dtype=torch.uint8)
    assert torch.equal(run(lambda x: x * -1, x), x * -1)
