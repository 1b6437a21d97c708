"""Numbers that Inductor gets wrong when it is left to, and the backend keeps right."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

import fairlead
from fairlead.ir import Builder
from fairlead_inductor import InductorBackend, InductorOptions


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_cast_to_16_bits_and_back_rounds(dtype: torch.dtype) -> None:
    def rounded(x: torch.Tensor) -> torch.Tensor:
        return (x * 3).to(dtype).to(torch.float32)

    x = torch.linspace(0.1, 1.0, 64)
    assert torch.equal(fairlead.compile(rounded, backend="inductor")(x), rounded(x))


F = torch.nn.functional


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("op", [torch.expm1, F.elu, lambda x: F.celu(x, 0.7), F.selu])
def test_an_exponential_less_one_is_exact_near_zero(
    op: Callable[[torch.Tensor], torch.Tensor], dtype: torch.dtype
) -> None:
    edges = [0.0, -0.0, 1e-10, -1e-10, -1e-7, 1e-3, 88.0, 1e4, -100.0, float("inf"), -float("inf"), float("nan")]
    x = torch.cat([torch.tensor(edges, dtype=dtype), torch.linspace(-1e-5, 1e-5, 37, dtype=dtype)])
    found, right = fairlead.compile(op, backend="inductor")(x), op(x)
    torch.testing.assert_close(found, right, rtol=4 * torch.finfo(dtype).eps, atol=0.0, equal_nan=True)
    assert torch.equal(found.signbit() & ~found.isnan(), right.signbit() & ~right.isnan())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_an_inverse_hyperbolic_tangent_is_exact_near_zero(dtype: torch.dtype) -> None:
    edges = [0.0, -0.0, 1e-10, -1e-10, 1.0, -1.0, 0.999, 2.0, -2.0, float("inf"), float("nan")]
    x = torch.cat([torch.tensor(edges, dtype=dtype), torch.linspace(-1e-3, 1e-3, 37, dtype=dtype)])
    found, right = fairlead.compile(torch.atanh, backend="inductor")(x), torch.atanh(x)
    torch.testing.assert_close(found, right, rtol=4 * torch.finfo(dtype).eps, atol=0.0, equal_nan=True)
    assert torch.equal(found.signbit() & ~found.isnan(), right.signbit() & ~right.isnan())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("to", [torch.int8, torch.uint8, torch.int16])
def test_a_half_beyond_a_narrow_integer_is_converted_as_torch_does(dtype: torch.dtype, to: torch.dtype) -> None:
    edges = [float("inf"), -float("inf"), float("nan"), 6e4, 300.0, -300.0, 200.0, -1.5]
    x = torch.tensor(edges, dtype=dtype).repeat(9)
    assert torch.equal(fairlead.compile(lambda x: x.to(to), backend="inductor")(x), x.to(to))


@pytest.mark.parametrize("order", [1, -1])
def test_what_is_added_to_a_product_keeps_its_factor(order: int) -> None:
    def decayed(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        return torch.add(*(x @ y, z)[::order], alpha=0.01)

    given = torch.randn(3, 4, 4).unbind()
    found = fairlead.compile(decayed, backend="inductor", fallback=())(*given)
    torch.testing.assert_close(found, decayed(*given))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_an_inverse_error_function_has_all_its_digits_near_one(dtype: torch.dtype) -> None:
    x = 1 - torch.logspace(-6, -2, 50, dtype=dtype)
    found, right = fairlead.compile(torch.erfinv, backend="inductor")(x), torch.erfinv(x)
    torch.testing.assert_close(found, right, rtol=4 * torch.finfo(dtype).eps, atol=0.0)


def test_functions_without_stated_digits_have_those_of_torch() -> None:
    x = torch.linspace(-3, 3, 99, dtype=torch.float64)
    found = fairlead.compile(torch.special.shifted_chebyshev_polynomial_v, backend="inductor")(x, torch.tensor(7))
    assert torch.equal(
        found.nan_to_num(), torch.special.shifted_chebyshev_polynomial_v(x, torch.tensor(7)).nan_to_num()
    )
    whole = torch.arange(-9, 10)
    assert torch.equal(fairlead.compile(torch.special.airy_ai, backend="inductor")(whole), torch.special.airy_ai(whole))


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("shape", [(0,), (3, 0)])
def test_nothing_has_no_variance(shape: tuple[int, ...]) -> None:
    for function in (torch.var, torch.std):
        found = fairlead.compile(lambda x, f=function: f(x, dim=-1), backend="inductor")(torch.zeros(shape))
        assert found.isnan().all()


@pytest.mark.parametrize(
    ("total", "shape"),
    [
        (lambda x: x.sum(1), (3, 1_000_003)),
        (lambda x: x.sum((0, 2, 3), keepdim=True), (8, 3, 400, 400)),
        (lambda x: x.mean((0, -1)), (100, 3, 10_000)),
        (lambda x: x.to(torch.float64).mean(dtype=torch.float32), (1_000_000,)),
    ],
    ids=["rows", "channels", "mean", "dtype"],
)
def test_many_numbers_add_up(total: Callable[[torch.Tensor], torch.Tensor], shape: tuple[int, ...]) -> None:
    x = torch.full(shape, 0.1)
    found, right = fairlead.compile(total, backend="inductor")(x), total(x.double())
    assert found.dtype is torch.float32
    torch.testing.assert_close(found, right.float(), rtol=1e-5, atol=0.0)


@pytest.mark.parametrize(
    ("pool", "shape"),
    [
        (lambda x: F.avg_pool2d(x, 3, stride=(3, 4), padding=(0, 1), ceil_mode=True), (2, 8, 5)),
        (lambda x: F.avg_pool3d(x, (1, 3, 2), stride=(3, 4, 2), padding=(0, 0, 1), ceil_mode=True), (2, 4, 6, 5)),
    ],
    ids=["2d", "3d"],
)
def test_averages_have_the_gradients_of_torch(
    pool: Callable[[torch.Tensor], torch.Tensor], shape: tuple[int, ...]
) -> None:
    x = torch.randn(shape, requires_grad=True)
    weights = torch.randn_like(pool(x))
    found, right = (torch.autograd.grad(f(x), x, weights) for f in (fairlead.compile(pool, backend="inductor"), pool))
    torch.testing.assert_close(found, right)


def test_lists_of_one_length_stand_for_all_dimensions() -> None:
    b = Builder("gradient")
    grad, x = b.input("f32[1, 2, 2]", "grad"), b.input("f32[1, 4, 4]", "x")
    b.output(b.op("aten.avg_pool2d_backward.default", grad, x, [2], [], [0], False, True, None))
    run = InductorBackend().compile(b.graph(), InductorOptions(), {})
    (found,) = run([torch.ones(1, 2, 2), torch.zeros(1, 4, 4)])
    assert torch.equal(found, torch.full((1, 4, 4), 0.25))


def test_halves_are_pooled_in_the_windows_that_torch_finds_for_them() -> None:
    pool = lambda x, samples: torch.ops.aten.fractional_max_pool2d(x, [3, 3], [19, 17], samples)[0]  # noqa: E731
    x, samples = torch.randn(2, 3, 37, 41).bfloat16(), torch.rand(2, 3, 2).bfloat16()
    assert torch.equal(fairlead.compile(pool, backend="inductor")(x, samples), pool(x, samples))


@pytest.mark.parametrize("place", [torch.argmax, torch.argmin, lambda x: torch.argmax(x, None, True)])
def test_a_place_counts_in_the_order_of_dimensions_whatever_the_strides(
    place: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    x, mask = torch.randn(7, 5).t(), (torch.rand(7, 5) > 0.5).t()
    least = lambda x, mask: place(torch.where(mask, x, 0.0))  # noqa: E731
    assert torch.equal(fairlead.compile(least, backend="inductor")(x, mask), least(x, mask))


@pytest.mark.parametrize("op", [torch.any, torch.all, lambda x: x.any(1), lambda x: x.all(0, keepdim=True)])
def test_any_and_all_of_bytes_are_bytes(op: Callable[[torch.Tensor], torch.Tensor]) -> None:
    x = torch.tensor([[0, 1, 7], [0, 0, 2]], dtype=torch.uint8)
    found = fairlead.compile(op, backend="inductor")(x)
    assert found.dtype is torch.uint8
    assert torch.equal(found, op(x))


def test_a_quotient_by_a_number_that_is_rounded_down_is_right_at_infinity() -> None:
    x = torch.tensor([float("inf"), -float("inf"), 7.0, -7.0, float("nan")])
    for op in (lambda x: torch.div(x, -2.5, rounding_mode="floor"), lambda x: x % -2.5):
        torch.testing.assert_close(fairlead.compile(op, backend="inductor")(x), op(x), equal_nan=True)


def test_a_quotient_of_two_numbers_is_rounded_down() -> None:
    b = Builder("numbers")
    b.output(b.op("aten.div.Tensor_mode", -8.5, -1.75, "floor", to="f32[]"))
    executable = InductorBackend().compile(b.graph(), InductorOptions(), {})
    assert [x.item() for x in executable([])] == [4.0]


def test_strides_count_from_where_the_storage_begins() -> None:
    storage = torch.arange(40.0)
    for view in (storage[5:30], storage[:24].view(4, 6).t()):
        for op in (lambda x: x.as_strided((3, 4), (4, 1), 2) + 1, lambda x: x.as_strided((3, 4), (5, 1)) + 1):
            assert torch.equal(fairlead.compile(op, backend="inductor")(view), op(view))
        scatter = lambda x: torch.as_strided_scatter(x, torch.zeros(2, 2), (2, 2), (7, 3))  # noqa: E731
        assert torch.equal(fairlead.compile(scatter, backend="inductor")(view), scatter(view))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("op", [torch.remainder, torch.floor_divide])
def test_a_remainder_and_a_quotient_rounded_down_are_right_at_infinity(
    op: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], dtype: torch.dtype
) -> None:
    edges = torch.tensor([0.0, -0.0, 1.0, -1.0, 5.5, -7.25, float("inf"), -float("inf"), float("nan")], dtype=dtype)
    x, y = torch.cartesian_prod(edges, edges).unbind(1)
    found, right = fairlead.compile(op, backend="inductor")(x, y), op(x, y)
    torch.testing.assert_close(found, right, rtol=0.0, atol=0.0, equal_nan=True)
    assert torch.equal(found.signbit() & ~found.isnan(), right.signbit() & ~right.isnan())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("op", [lambda x, y: torch.div(x, y, rounding_mode="trunc"), torch.nextafter])
def test_a_half_is_rounded_where_torch_rounds_it(
    op: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], dtype: torch.dtype
) -> None:
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(2000, generator=generator).mul(size).to(dtype) for size in (9, 3))
    assert torch.equal(fairlead.compile(op, backend="inductor")(x, y), op(x, y))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_nan_times_the_integer_zero_is_nan(dtype: torch.dtype) -> None:
    x = torch.tensor([1.0, float("nan"), float("inf"), -2.0], dtype=dtype)
    for program in (F.softshrink, lambda x: x * 0):
        found, right = fairlead.compile(program, backend="inductor")(x), program(x)
        torch.testing.assert_close(found, right, rtol=0.0, atol=0.0, equal_nan=True)


def test_windows_of_unequal_sizes_are_those_of_torch() -> None:
    def pool(x: torch.Tensor, samples: torch.Tensor) -> torch.Tensor:
        return F.fractional_max_pool3d(x, 2, output_size=3, _random_samples=samples)

    x, samples = torch.randn(1, 2, 7, 8, 9), torch.rand(1, 2, 3)
    assert torch.equal(fairlead.compile(pool, backend="inductor")(x, samples), pool(x, samples))


def test_programs_may_be_compiled_at_once() -> None:
    """Torch's compilers patch and restore what all threads use."""
    x = torch.randn(8)
    programs = [fairlead.compile(lambda x, n=n: torch.sin(x * n) + n, backend="inductor") for n in range(6)]
    start = threading.Barrier(len(programs))

    def called(program: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        start.wait()
        return program(x)

    with ThreadPoolExecutor(len(programs)) as pool:
        found = list(pool.map(called, programs))
    for n, result in enumerate(found):
        torch.testing.assert_close(result, torch.sin(x * n) + n)


@pytest.mark.parametrize("shape", [(1000, 32), (1000, 1), (32,)])
def test_many_rows_are_added_each_time_from_either_end(shape: tuple[int, ...]) -> None:
    torch._dynamo.reset()
    places, values = torch.randint(-50, 50, (1000,)), torch.randn(shape)

    def add(x: torch.Tensor, places: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        return x.index_put((places,), values, accumulate=True)

    found = fairlead.compile(add, backend="inductor", fallback=())(torch.ones(50, 32), places, values)
    right = add(torch.ones(50, 32, dtype=torch.float64), places, values.double())
    torch.testing.assert_close(found.double(), right, rtol=1e-5, atol=1e-5)


def test_a_place_among_many_that_is_not_there_is_an_error() -> None:
    torch._dynamo.reset()
    add = fairlead.compile(lambda x, places: x.index_add(0, places, x[:1].expand(1000, 32)), backend="inductor")
    with pytest.raises(Exception, match="out of bounds"):
        add(torch.ones(50, 32), torch.full((1000,), 50))
