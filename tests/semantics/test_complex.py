"""Complex numbers in backends whose runtimes have none: nothing is declined, and results are eager's."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

import fairlead
from fairlead.backend import Backend, Refittable
from fairlead.ir import Builder, Graph, Role
from fairlead.registry import registry


@pytest.fixture(params=["onnxrt", "openvino"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Rotary(torch.nn.Module):
    """Attention whose queries and keys are turned by complex numbers of absolute value 1, as in the first Llama."""

    def __init__(self, width: int = 16, heads: int = 2, longest: int = 32) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = torch.nn.Linear(width, 3 * width)
        half = width // heads // 2
        angles = torch.outer(torch.arange(longest), 100.0 ** -(torch.arange(half) / half))
        self.register_buffer("turns", torch.polar(torch.ones_like(angles), angles))

    def turned(self, x: torch.Tensor) -> torch.Tensor:
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * self.turns[: x.shape[1], None]).flatten(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1) for part in self.qkv(x).split(width, -1))
        parts = (part.transpose(1, 2) for part in (self.turned(q), self.turned(k), v))
        mixed = torch.nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
        return mixed.transpose(1, 2).reshape(x.shape)


class Mixing(torch.nn.Module):
    """A Fourier transform of rows and columns in the place of attention, as in FNet."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.scale = torch.nn.Parameter(torch.randn(width, dtype=torch.complex64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mixed = torch.fft.fft(torch.fft.fft(x, dim=-1) * self.scale, dim=-2).real
        return self.norm(x + mixed)


@pytest.mark.parametrize(("kind", "lengths"), [(Rotary, (5, 9)), (Mixing, (66,))])
def test_layers_of_complex_numbers_train_natively_as_lengths_change(
    backend: str, kind: type[torch.nn.Module], lengths: tuple[int, ...]
) -> None:
    model = kind()
    reference = copy.deepcopy(model)
    compiled = fairlead.compile(model, backend=backend, max_fallback=0, dynamic=len(lengths) > 1)
    for length in lengths:
        x = torch.randn(2, length, 16 if kind is Rotary else 24)
        results = []
        for run, own in ((compiled, model), (reference, reference)):
            own.zero_grad()
            out = run(x)
            out.square().sum().backward()
            results.append((out.detach(), *(p.grad for p in own.parameters())))
        torch.testing.assert_close(*results, rtol=1e-3, atol=1e-4)


def program(z: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = z * 2j + x
    return y, y.conj().imag, y / z, y, z.real


def test_complex_inputs_and_outputs_may_be_conjugated_strided_and_views(backend: str) -> None:
    z = torch.randn(4, 6, dtype=torch.complex64)
    compiled = fairlead.compile(program, backend=backend, max_fallback=0)
    for given in (z[:, ::2], z.t().conj()):
        x = torch.randn(given.shape)
        torch.testing.assert_close(compiled(given, x), program(given, x))


def affine() -> Graph:
    """``x @ weight.T`` of b complex rows, and its absolute values."""
    b = Builder("affine")
    x, w = b.input("c64[b, 4]"), b.input("c64[3, 4]", "weight", Role.parameter)
    y = b.op("aten.linear.default", x, w)
    b.output(y)
    b.output(b.op("aten.abs.default", y))
    return b.graph()


def test_an_executable_with_complex_weights_is_stored_and_takes_new_ones(backend: str) -> None:
    found: Backend[Any] | Any = registry.ready(backend)
    options, weight = found.options_type(), torch.randn(3, 4, dtype=torch.complex64)
    stored = found.dump(found.compile(affine(), options, {1: weight}))
    run = found.load(stored, affine(), options, {1: weight})
    assert isinstance(run, Refittable)
    for rows, value in ((2, weight), (5, weight), (5, weight.conj() * 2)):
        run.refit({1: value})
        x = torch.randn(rows, 4, dtype=torch.complex64)
        y, size = run([x])
        torch.testing.assert_close(y, x @ value.T)
        torch.testing.assert_close(size, (x @ value.T).abs())
