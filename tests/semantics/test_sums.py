"""Many numbers, added up: no backend adds them one after the other."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import fairlead


@pytest.mark.parametrize(
    ("total", "shape"),
    [
        (lambda x: x.sum(), (1_000_000,)),
        (lambda x: x.sum(0, keepdim=True), (300_000, 3)),
        (lambda x: x.mean((2, 3), keepdim=True), (1, 3, 500, 600)),
    ],
    ids=["whole", "columns", "picture"],
)
def test_many_numbers_add_up(
    backend: str, total: Callable[[torch.Tensor], torch.Tensor], shape: tuple[int, ...]
) -> None:
    x = torch.full(shape, 0.1)
    found, right = fairlead.compile(total, backend=backend)(x), total(x.double())
    torch.testing.assert_close(found, right.float(), rtol=1e-5, atol=0.0)
