"""The file of known failures excuses exactly what it says, until the day that it says."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from fairlead.errors import ArgumentError
from fairlead_conformance import Case, Level, Result, Status
from fairlead_conformance._report import KnownFailure
from fairlead_conformance._run._known import KnownFailures, read_known

DAY = datetime.date(2026, 3, 1)

CASES = (
    Case(id="ops/aten.add.Tensor/f32/s000", level=Level.L1, mandatory=True),
    Case(id="ops/aten.mm.default/f16/s000", level=Level.L1),
    Case(id="ops/aten.mm.default/f16/s001", level=Level.L1),
    Case(id="training/linear/f32/s000", level=Level.L3, mandatory=True),
)

ENTRY = """
[[failure]]
id = "{id}"
status = "FAIL_MISMATCH"
reason = "accumulates in float16"
issue = "https://example.org/issues/1"
since = 2026-01-01
expires = {expires}
"""


def known(id: str = CASES[1].id, *, expires: str = "2026-12-31") -> KnownFailures:  # noqa: A002 - the entry's
    entry = KnownFailure(
        id=id,
        status=Status.FAIL_MISMATCH,
        reason="accumulates in float16",
        issue="https://example.org/issues/1",
        since=datetime.date(2026, 1, 1),
        expires=datetime.date.fromisoformat(expires),
    )
    return KnownFailures([entry], CASES, Level.L1, DAY)


def judged(file: KnownFailures, status: Status, case: Case = CASES[1]) -> Status:
    return file.judge(Result(id=case.id, status=status, detail="output 0")).status


def test_a_failure_that_is_listed_is_known() -> None:
    file = known()
    assert judged(file, Status.FAIL_MISMATCH) is Status.KNOWN_FAIL
    assert judged(file, Status.FAIL_MISMATCH, CASES[2]) is Status.FAIL_MISMATCH
    assert file.faults == []


def test_one_that_passes_is_a_failure() -> None:
    assert judged(known(), Status.PASS_NATIVE) is Status.FAIL_XPASS
    assert judged(known(), Status.PASS_EXTERN) is Status.FAIL_XPASS


@pytest.mark.parametrize("status", [Status.FAIL_CRASH, Status.FAIL_DTYPE, Status.HARNESS_ERROR, Status.NOT_RUN])
def test_another_failure_than_the_one_listed_is_not_excused(status: Status) -> None:
    assert judged(known(), status) is status


def test_an_expired_entry_excuses_nothing() -> None:
    file = known(expires="2026-02-28")
    assert judged(file, Status.FAIL_MISMATCH) is Status.FAIL_MISMATCH
    assert file.faults == [f"known failure {CASES[1].id}: expired on 2026-02-28"]
    assert known(expires="2026-03-01").faults == []


def test_a_mandatory_case_of_the_level_is_never_excused() -> None:
    file = known(CASES[0].id)
    assert judged(file, Status.FAIL_MISMATCH, CASES[0]) is Status.FAIL_MISMATCH
    assert "is mandatory for L1" in file.faults[0]


def test_a_case_above_the_level_may_be_listed_and_is_not_this_runs_concern() -> None:
    file = known(CASES[3].id)
    assert (file.faults, file.entries) == ([], ())


def test_an_id_that_no_case_has_is_a_fault() -> None:
    assert known("ops/aten.mul.Tensor/f32/s000").faults == [
        "known failure ops/aten.mul.Tensor/f32/s000: no case of the suite is called so"
    ]


def test_a_prefix_stands_for_each_case_that_it_matches() -> None:
    file = known("ops/aten.mm.default/*")
    assert [entry.id for entry in file.entries] == [CASES[1].id, CASES[2].id]
    assert judged(file, Status.FAIL_MISMATCH, CASES[2]) is Status.KNOWN_FAIL
    assert judged(file, Status.PASS_NATIVE, CASES[2]) is Status.FAIL_XPASS
    assert judged(file, Status.FAIL_RUN, CASES[1]) is Status.FAIL_RUN


def test_an_entry_for_a_case_that_is_declined_is_stale() -> None:
    declined = Result(id=CASES[1].id, status=Status.DECLINED)
    file = known()
    assert file.judge(declined) == declined
    assert list(file.stale({declined.id: declined})) == [
        f"known failure {CASES[1].id}: it is declined, and fails no longer"
    ]


def test_the_file_says_what_the_entries_are(tmp_path: Path) -> None:
    path = tmp_path / "known-failures.toml"
    path.write_text(ENTRY.format(id=CASES[1].id, expires="2026-12-31"))
    (entry,) = read_known(path)
    assert (entry.id, entry.status, entry.expires.year) == (CASES[1].id, Status.FAIL_MISMATCH, 2026)


def test_what_is_in_no_tracker_names_a_program_that_shows_it(tmp_path: Path) -> None:
    path = tmp_path / "known-failures.toml"
    text = ENTRY.format(id=CASES[1].id, expires="2026-12-31")
    path.write_text(text.replace("https://example.org/issues/1", "backends/acme/defects/sum.py"))
    assert [entry.issue for entry in read_known(path)] == ["backends/acme/defects/sum.py"]


def test_the_programs_that_our_own_backends_name_are_there() -> None:
    root = Path(__file__).parents[3]
    named = [entry.issue for path in root.glob("backends/*/src/*/known-failures.toml") for entry in read_known(path)]
    assert [issue for issue in named if not issue.startswith("https://") and not (root / issue).is_file()] == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (ENTRY.format(id="ops/*/f32", expires="2026-12-31"), "an id, or the beginning of one"),
        (ENTRY.format(id="*", expires="2026-12-31"), "an id, or the beginning of one"),
        (ENTRY.format(id=CASES[1].id, expires="2025-12-31"), "expires before it begins"),
        (
            ENTRY.format(id=CASES[1].id, expires="2026-12-31").replace("https://", ""),
            "neither the address of one issue",
        ),
        (ENTRY.format(id=CASES[1].id, expires="2026-12-31").replace("issues/1", "issues"), "neither the address of"),
        (
            ENTRY.format(id=CASES[1].id, expires="2026-12-31").replace("https://example.org/issues/1", "sum.py"),
            "neither",
        ),
        (ENTRY.format(id=CASES[1].id, expires="2026-12-31").replace("accumulates in float16", " "), "no reason"),
        (ENTRY.format(id=CASES[1].id, expires="2026-12-31").replace("FAIL_MISMATCH", "DECLINED"), "is no failure"),
        (ENTRY.format(id=CASES[1].id, expires="2026-12-31").replace("FAIL_MISMATCH", "FAIL"), "Invalid enum value"),
        (ENTRY.format(id=CASES[1].id, expires="2026-12-31") + "flaky = true", "unknown field `flaky`"),
        ("[[failure]]\nid = 'ops/a/f32/s000'", "missing required field"),
        ("[[failure]", "Expected"),
    ],
)
def test_a_file_that_is_not_as_it_has_to_be_is_refused(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "known-failures.toml"
    path.write_text(text)
    with pytest.raises(ArgumentError, match="no valid file of known failures") as refusal:
        read_known(path)
    assert why in refusal.value.what
    assert refusal.value.where == str(path)
