"""What changed between two runs: each case in one way, and what the runs differ in."""

from __future__ import annotations

from msgspec.structs import replace

from fairlead_conformance import Level, Status
from fairlead_conformance._report import Change, differences, facts_changed

from .fixtures import CASES, STATUSES, report

BEFORE = (
    Status.PASS_NATIVE,
    Status.PASS_NATIVE,
    Status.FAIL_RUN,
    Status.DECLINED,
    Status.FAIL_RUN,
    Status.PASS_NATIVE,
    Status.PASS_EXTERN,
)
AFTER = (
    Status.FAIL_IMPORT,
    Status.DECLINED,
    Status.PASS_NATIVE,
    Status.PASS_NATIVE,
    Status.FAIL_CRASH,
    Status.PASS_EXTERN,
    Status.PASS_EXTERN,
)


def test_every_case_that_changed_did_so_in_one_way() -> None:
    found = differences(report(BEFORE), report(AFTER))
    changes = [Change.broken, Change.lost, Change.fixed, Change.gained, Change.other, Change.other]
    assert [(d.change, d.id, d.before, d.after) for d in found] == [
        (change, case.id, before, after)
        for change, case, before, after in zip(changes, CASES, BEFORE, AFTER, strict=False)
    ]


def test_cases_of_one_run_alone_are_new_or_gone() -> None:
    low, high = report(level=Level.L2), report()
    assert [(d.change, d.id) for d in differences(low, high)] == [(Change.new, CASES[6].id)]
    assert [(d.change, d.id) for d in differences(high, low)] == [(Change.gone, CASES[6].id)]


def test_a_run_does_not_differ_from_itself() -> None:
    assert differences(report(STATUSES), report(STATUSES)) == []
    assert facts_changed(report(), report()) == {}


def test_what_the_runs_differ_in_is_said() -> None:
    newer = report()
    newer = replace(
        newer,
        backend=replace(newer.backend, version="1.3.0", versions={"acme-sdk": "9.2"}),
        machine=replace(newer.machine, torch="2.14.0"),
        pack=None,
    )
    assert facts_changed(report(), newer) == {
        "wheel": ("fairlead-acme 1.2.0", "fairlead-acme 1.3.0"),
        "acme-sdk": ("9.1", "9.2"),
        "pack": ("1.0 (000000000000)", "none"),
        "torch": ("2.13.0", "2.14.0"),
    }
