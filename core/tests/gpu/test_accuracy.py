"""On CUDA: eager's random numbers, what a precision makes of products and convolutions, and verified calls."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import fairlead
from fairlead.backend import Precision

pytestmark = pytest.mark.gpu

BACKENDS = ("eager", "inductor", "cudagraphs")


@pytest.fixture(autouse=True)
def _fresh_dynamo() -> None:
    torch._dynamo.reset()


def _noisy(x: torch.Tensor) -> torch.Tensor:
    q = functional.dropout(x, 0.2, True).view(4, 2, 16, 32)
    torch.rand(3, device="cuda")
    y = functional.scaled_dot_product_attention(q, q, q, dropout_p=0.25)
    return y * torch.bernoulli(torch.sigmoid(q)) + torch.rand_like(q) + torch.rand(32).cuda()


@pytest.mark.parametrize("backend", BACKENDS)
def test_random_numbers_and_both_generators_are_eagers(backend: str) -> None:
    compiled = fairlead.compile(_noisy, backend=backend, rng="eager", verify="always")
    for _ in range(3):
        found = []
        for call in (_noisy, compiled):
            x = torch.linspace(-1.0, 1.0, 4096, device="cuda").view(64, 64).requires_grad_()
            torch.manual_seed(3)
            result = call(x)
            result.square().sum().backward()
            found.append((result.detach(), x.grad, torch.cuda.get_rng_state(), torch.get_rng_state()))
        torch.testing.assert_close(found[1], found[0], rtol=1e-3, atol=2e-3)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("precision", "least", "most"), [("highest", 0.0, 1e-5), ("high", 1e-5, 5e-3)])
def test_a_product_is_as_precise_as_it_is_asked_to_be(
    backend: str, precision: Precision, least: float, most: float
) -> None:
    layer = nn.Linear(512, 512).cuda()
    x = torch.randn(256, 512, device="cuda")
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    with torch.no_grad():
        got = fairlead.compile(layer, backend=backend, precision=precision, verify="always")(x).double()
        exact = layer.double()(x.double())
    assert least <= float((got - exact).abs().max() / exact.abs().max()) <= most
    assert (torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32) == before


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_convolution_is_right_as_torch_is_set(backend: str) -> None:
    x = torch.randn(8, 16, 32, 32, device="cuda")
    with torch.no_grad():
        fairlead.compile(nn.Conv2d(16, 16, 3).cuda(), backend=backend, verify="always")(x)
