"""A suite whose eyes are shut catches nothing: every comparison that is made to hold lets a faulty backend live."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.tests.zoo._judged import killed
from conformance.tests.zoo._zoo import ZOO
from fairlead_conformance import Level
from fairlead_conformance import _calls as calls
from fairlead_conformance._oracle._compare import Comparison
from fairlead_conformance._witness import Witness

pytestmark = pytest.mark.filterwarnings("ignore")

BY_NAME = {fault.name: fault for fault in ZOO}


def _nothing(*args: Any, **named: Any) -> None:
    return None


BLINDFOLDS = {
    "values": ("add_without_alpha", calls, "compare", lambda got, *_, **__: Comparison(1, "")),
    "witness": ("torch_computes_one_op", Witness, "check", _nothing),
    "state": ("another_default_dtype", calls, "changed", lambda *_, **__: ""),
    "results kept": ("the_first_result_is_overwritten", calls.Checked, "_kept", _nothing),
    "inputs": ("an_input_is_written", calls.Checked, "_inputs_unchanged", _nothing),
    "types": ("results_in_float64", calls.Checked, "_types", _nothing),
    "aliases": ("the_results_share_memory", calls.Checked, "_aliases", _nothing),
    "bits": ("constants_are_written", calls, "_same_bits", lambda a, b: True),
}


@pytest.mark.parametrize("check", BLINDFOLDS)
def test_a_comparison_that_always_holds_is_noticed(check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, place, attribute, blind = BLINDFOLDS[check]
    fault = BY_NAME[name]
    before = killed(fault, Level.L1, most=1)
    assert before is not None
    monkeypatch.setattr(place, attribute, blind)
    after = killed(fault, Level.L1, most=1)
    assert after is None or after.check != before.check
