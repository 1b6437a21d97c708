"""Sizes that change: one program for each set of them, and never more than the option allows."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
import torch

import fairlead


class Mixing(torch.nn.Module):
    """Mixes the positions of a sequence in ways in which one position too many would show."""

    def __init__(self) -> None:
        super().__init__()
        self.project = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights = torch.softmax(self.project(x) @ x.transpose(1, 2), -1)
        return torch.cumsum(weights @ x, 1) + x.mean(1, keepdim=True) + torch.arange(x.shape[1])[:, None]


@pytest.fixture(autouse=True)
def _fresh_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def test_every_length_is_right_and_the_eighth_warns(caplog: pytest.LogCaptureFixture) -> None:
    model = Mixing().eval()
    compiled = fairlead.compile(model, backend="openxla", dynamic=True, max_fallback=0, options={"executables": 10})
    with torch.no_grad(), caplog.at_level(logging.WARNING, "fairlead"):
        for length in (3, 2, 50, 1, *range(4, 11)):
            x = torch.randn(2, length, 4)
            torch.testing.assert_close(compiled(x), model(x))
    (record,) = (r for r in caplog.records if r.name.startswith("fairlead"))
    assert "compiled for 8 sets of sizes" in record.getMessage()


def test_beyond_what_the_option_allows_the_next_backend_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    model = Mixing().eval()
    compiled = fairlead.compile(model, backend="openxla", dynamic=True, fallback=("eager",), options={"executables": 2})
    with torch.no_grad(), caplog.at_level(logging.WARNING, "fairlead"):
        for length in (3, 4, 5, 6, 3):
            x = torch.randn(2, length, 4)
            torch.testing.assert_close(compiled(x), model(x))
    (record,) = (r for r in caplog.records if r.name.startswith("fairlead"))
    assert "has been compiled for 2 sets of them" in record.getMessage()
    assert "continuing with 'eager'" in record.getMessage()
