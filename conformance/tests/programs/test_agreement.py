"""How far a program's results may be from eager's."""

from __future__ import annotations

import pytest
import torch

from fairlead_conformance._observation import Failed, Observation
from fairlead_conformance._programs._agreement import agree


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
