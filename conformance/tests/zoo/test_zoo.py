"""The suite catches every faulty backend, and no honest one."""

from __future__ import annotations

import pytest
import torch

from conformance.tests.zoo import _score
from conformance.tests.zoo._fault import Fault
from conformance.tests.zoo._judged import aimed, case_of, killed, killed_by, passed_together, results
from conformance.tests.zoo._zoo import ZOO
from fairlead_conformance import Level, manifest

pytestmark = pytest.mark.filterwarnings("ignore")

AT_L1 = 0.6

SAID = {verdict.fault.name: verdict for verdict in _score.read(ZOO)}
"""What the committed page says of each; ``make zoo`` looks for it anew."""

BESIDE = [case for case in manifest(Level.L1) if case.family == "ops"][3::800]
"""Cases that stand beside the one that kills."""


@pytest.mark.parametrize("fault", ZOO, ids=lambda fault: fault.name)
def test_every_faulty_backend_is_caught(fault: Fault) -> None:
    torch.set_num_threads(1)
    said = SAID.get(fault.name)
    assert said is not None, "not on the page, or survived: python -m conformance.tests.zoo --new"
    assert said.killer is not None
    found = killed_by(fault, said.killer.id) or killed(fault, Level[said.level], seconds=40)
    assert found is not None, fault.wrong
    if said.at_l1 is not None:
        case = case_of(said.at_l1.id)
        assert case.level <= Level.L1
        assert case.id not in passed_together(fault, [*BESIDE, case]), "it hides among others"


def test_most_are_caught_by_core_inference_alone() -> None:
    assert sum(verdict.at_l1 is not None for verdict in SAID.values()) >= AT_L1 * len(ZOO)


def test_there_are_enough_of_them_and_each_is_told() -> None:
    assert len(ZOO) >= 120
    assert len({fault.name for fault in ZOO}) == len(ZOO)
    assert all(fault.wrong.endswith(".") or fault.wrong.endswith(")") for fault in ZOO)


@pytest.mark.parametrize(
    "fault", [fault for fault in ZOO if fault.sole], ids=lambda fault: f"{fault.sole}-{fault.name}"
)
def test_what_one_check_is_for_no_other_finds(fault: Fault) -> None:
    found = {r.check for r in results(fault, fault.level, most=6, seconds=20) if r.status.failed}
    assert found == {fault.sole}


def test_memory_that_is_kept_is_seen_where_much_was_freed() -> None:
    fault = next(fault for fault in ZOO if fault.name == "its_memory_grows")
    freed = [bytearray(500_000) for _ in range(1000)]
    above = bytearray(500_000)  # so that the system does not get the others back
    del freed
    assert {r.check for r in results(fault, fault.level, most=6, seconds=20) if r.status.failed} == {"resident-memory"}
    assert above


def test_every_fault_has_cases() -> None:
    assert [fault.name for fault in ZOO if not aimed(fault.aims, fault.level)] == []
