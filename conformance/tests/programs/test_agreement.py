"""How far a program's results may be from eager's."""

from __future__ import annotations

import copy

import pytest
import torch

from fairlead_conformance._observation import Failed, Observation
from fairlead_conformance._programs._agreement import agree
from fairlead_conformance._programs._twin import Twin
from fairlead_conformance._subject import Subject


@pytest.mark.parametrize(
    ("value", "times", "agrees"),
    [(1.0, 3.0, True), (1.0, 12.0, False), (1e-18, 12.0, True), (1e-18, 30.0, False), (1e-18, float("nan"), False)],
    ids=["near", "off", "noise", "no noise", "nan"],
)
def test_a_result_is_as_near_as_eagers_and_where_all_terms_cancel_as_small(
    value: float, times: float, agrees: bool
) -> None:
    exact = torch.full((32,), value, dtype=torch.float64)
    error = 1e-5 if value == 1.0 else 1e-10
    eager, got = (exact + error).float(), (exact + times * error).float()
    if agrees:
        agree(got, eager, exact, "the gradient", Observation())
    else:
        with pytest.raises(Failed, match="the gradient"):
            agree(got, eager, exact, "the gradient", Observation())


def test_where_eager_was_lucky_a_result_is_as_near_as_what_it_is_computed_from() -> None:
    eager, got = torch.tensor([0.01, 1e-4]), torch.tensor([0.01, 1e-4 + 1e-6])
    exact = eager.double()
    agree(got, eager, exact, "the gradient", Observation(), spread=lambda: 5e-7)
    for spread in (None, lambda: 1e-7):
        with pytest.raises(Failed, match=r"1 of 2 values are off by up to 1e-06"):
            agree(got, eager, exact, "the gradient", Observation(), spread=spread)


def test_a_gradient_whose_terms_cancel_moves_by_roundings_of_the_terms() -> None:
    class Cancelling(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(()))

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return self.scale * (x - y).sum()

    twin = Twin(Cancelling(), Subject("eager"), Observation())
    x = torch.linspace(1, 2, 64)
    before = copy.deepcopy(twin.exact.state_dict())
    (spread,) = twin._spreads((x, x + 1e-3), {})
    assert 1e-8 < spread < 64 * 2 * torch.finfo(torch.float32).eps * 4
    assert twin.exact.scale.grad is None
    assert torch.equal(before["scale"], twin.exact.scale)
