"""``rng="eager"``: every backend has eager's random numbers, and leaves the generator as eager leaves it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional

import fairlead
from fairlead.errors import ArgumentError


class Noisy(torch.nn.Module):
    """Draws by many ops, some of them in place, in layers, twice alike, and one that nothing uses."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Dropout(0.3), torch.nn.RReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layers(x)
        torch.rand(3)
        y = functional.dropout(y.t(), 0.2, True).t()
        q = y.view(2, 2, 4, 8)
        y = functional.scaled_dot_product_attention(q, q, q, dropout_p=0.25).reshape(8, 16)
        y = y + torch.rand_like(y) - torch.rand(8, 16) + torch.empty_like(y).normal_(0.0, 0.1)
        y = y + torch.randint(0, 5, (8, 16)) + torch.randn(16)[torch.randperm(16)]
        y = y * torch.bernoulli(torch.full_like(y, 0.5))
        return y.gather(1, torch.multinomial(torch.ones(8, 16), 4))


def _step(call: Callable[[torch.Tensor], torch.Tensor], training: bool) -> tuple[torch.Tensor, ...]:
    """Of one call: the result, the gradient, and the generator's state after each."""
    x = torch.linspace(-1.0, 1.0, 128).view(8, 16).requires_grad_(training)
    torch.manual_seed(5)
    with torch.set_grad_enabled(training):
        result = call(x)
    between = torch.get_rng_state()
    if training:
        (result * torch.arange(4)).sum().backward()
    return result.detach(), x.grad if x.grad is not None else torch.ones(()), between, torch.get_rng_state()


@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
def test_numbers_and_the_generator_after_them_are_eagers(backend: str, training: bool) -> None:
    model = Noisy()
    compiled = fairlead.compile(model, backend=backend, rng="eager")
    torch.testing.assert_close(_step(compiled, training), _step(model, training), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(_step(compiled, training), _step(model, training), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["inductor", "tvm"])
def test_a_mask_is_eagers_bit_for_bit_where_a_fallback_would_draw_itself(name: str) -> None:
    dropout = torch.nn.Dropout(0.3)
    compiled = fairlead.compile(dropout, backend=name, rng="eager", fallback="inductor")
    x = torch.ones(1000, requires_grad=True)
    torch.manual_seed(3)
    wanted = dropout(x)
    torch.manual_seed(3)
    assert torch.equal(compiled(x), wanted)
    assert [n.backend for n in compiled.fairlead.placement.graphs[0].nodes if n.why == "random"] == ["eager"]


def test_what_is_drawn_and_not_used_counts_in_place_too() -> None:
    def drop(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        functional.dropout(x, 0.5, True).sin()
        torch.empty(3).uniform_()
        x.mul_(2)
        return x, torch.rand(4)

    compiled = fairlead.compile(drop, backend="eager", rng="eager")
    for _ in range(2):
        torch.manual_seed(0)
        wanted = drop(torch.ones(2))
        torch.manual_seed(0)
        torch.testing.assert_close(compiled(torch.ones(2)), wanted, rtol=0, atol=0)


def test_a_frozen_program_draws_eagers_numbers() -> None:
    model = Noisy().eval()
    compiled = fairlead.compile(model, backend="onnxrt", rng="eager")
    for _ in range(2):
        _step(compiled, False)
    with fairlead.freeze(compiled):
        for _ in range(3):
            torch.testing.assert_close(_step(compiled, False), _step(model, False), rtol=1e-4, atol=1e-5)


def test_torch_compile_takes_it_as_an_option() -> None:
    options = {"rng": "eager", "fallback": ("eager",)}
    compiled: Any = torch.compile(torch.nn.Dropout(0.5), backend="fairlead-inductor", options=options)
    torch.manual_seed(1)
    wanted = functional.dropout(torch.ones(64), 0.5, True)
    torch.manual_seed(1)
    assert torch.equal(compiled(torch.ones(64)), wanted)


@pytest.mark.parametrize("rng", ["torch", True, 0])
def test_anothers_random_numbers_are_an_error(rng: Any) -> None:
    with pytest.raises(
        ArgumentError, match=r"^FL203: rng is .*\n  from: fairlead.compile\n  next: pass \"eager\" for "
    ):
        fairlead.compile(torch.nn.Dropout(), backend="eager", rng=rng)
