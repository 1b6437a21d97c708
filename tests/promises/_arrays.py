"""Promises about NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ._catalogue import Section
from ._through import Through

__all__ = ["PROMISES"]

promise = Section("NumPy")
PROMISES = promise.promises


def scores(x: np.ndarray) -> np.ndarray:
    return np.tanh(x).sum(axis=0) * 2 + x[0]


def numbers() -> np.ndarray:
    return np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


@promise("A NumPy function, arrays in and arrays out", declined={"cudagraphs": "device cpu"})
def function(through: Through) -> None:
    found = through.compile(scores, fullgraph=True)(numbers())
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, scores(numbers()), rtol=1e-5, atol=1e-6)
    assert through.kinds == ["inference"]


@promise("A NumPy function on CUDA, under `torch.device`", device="cuda")
def on_cuda(through: Through) -> None:
    def program(x: np.ndarray) -> np.ndarray:
        # with a Python number, torch before 2.15 traces none of it there, and torch 2.11 no operators of arrays
        return np.multiply(np.tanh(x).sum(axis=0), x[0])

    with torch.device(through.device):
        found = through.compile(program, fullgraph=True)(numbers())
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, program(numbers()), rtol=1e-5, atol=1e-6)
    assert through.kinds == ["inference"]


@promise("`.numpy()` and `from_numpy` in a program of tensors", declined={"cudagraphs": "device cpu"})
def mixed(through: Through) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(np.tanh(x.cpu().numpy())) * 2

    through.agrees(through.compile(program, fullgraph=True), program, through.randn(3, 4))


@promise("`wrap_numpy`: NumPy code on tensors, with gradients")
def wrapped(through: Through) -> None:
    @torch.compiler.wrap_numpy
    def program(x: Any) -> Any:
        return np.sum(np.tanh(x) * x)

    x = through.randn(3, 4, requires_grad=True)
    found = through.compile(program, fullgraph=True)(x)
    assert isinstance(found, torch.Tensor)
    assert found.device == x.device
    expected = (torch.tanh(x) * x).sum()
    through.close(found, expected)
    through.close(*(torch.autograd.grad(each, x) for each in (found, expected)))
    assert through.kinds == ["forward", "backward"]
