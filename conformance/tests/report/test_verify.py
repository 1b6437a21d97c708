"""A report that was edited is rejected: by its digest, or, where that was made anew, by the rule that it breaks."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from fairlead_conformance import Level, Result, Status
from fairlead_conformance._report import Figure, Report, Shard, Suite, digest, installed_suite
from fairlead_conformance._report._verify import problems, verify

from .fixtures import CASES, KNOWN, PACK, STATUSES, report, run

FAILING = (*STATUSES[:2], Status.FAIL_STRIDE, *STATUSES[3:])
"""A run with a failure that its vendor would rather not have."""


def with_result(found: Report, index: int, **changes: Any) -> Report:
    results = list(found.results)
    results[index] = replace(results[index], **changes)
    return replace(found, results=tuple(results))


def with_run(found: Report, **changes: Any) -> Report:
    return replace(found, run=replace(found.run, **changes))


def with_known(found: Report, **changes: Any) -> Report:
    return replace(found, known=(replace(KNOWN, **changes),))


def with_counts(found: Report, **changes: int) -> Report:
    return replace(found, counts={**found.counts, **{Status[name]: n for name, n in changes.items()}})


def added(found: Report) -> Report:
    extra = Result(id="ops/aten.invented.default/f32/s000", status=Status.PASS_NATIVE, native=("aten",), compared=1)
    return replace(found, results=(*found.results, extra))


EDITS: dict[str, tuple[str, Callable[[Report], Report]]] = {
    "a failure is called a pass": (
        "counts",
        lambda r: with_result(r, 2, status=Status.PASS_NATIVE, native=("aten.add.Tensor",), compared=1, check=""),
    ),
    "a failure is called a pass, and keeps what the check said": (
        "evidence",
        lambda r: with_result(r, 2, status=Status.PASS_NATIVE, native=("aten.add.Tensor",), compared=1),
    ),
    "a failure is called declined, for no reason": ("evidence", lambda r: with_result(r, 2, status=Status.DECLINED)),
    "a failure is called not run": ("complete", lambda r: with_result(r, 2, status=Status.NOT_RUN, check="")),
    "a failure says nothing": ("evidence", lambda r: with_result(r, 2, check="", detail="")),
    "a failure is dropped": ("ids", lambda r: replace(r, results=r.results[:2] + r.results[3:])),
    "a result is added": ("ids", added),
    "a result stands twice": ("ids", lambda r: replace(r, results=(*r.results, r.results[0]))),
    "a result takes another's id": ("ids", lambda r: with_result(r, 2, id=CASES[1].id)),
    "a result has an id of no case": ("ids", lambda r: with_result(r, 2, id="ops/aten.add.Tensor/f32/s999")),
    "the results are in another order": ("ids", lambda r: replace(r, results=r.results[::-1])),
    "a case of a level is set apart": ("ids", lambda r: replace(r, beyond=(r.results[2],))),
    "a count is raised": ("counts", lambda r: with_counts(r, PASS_NATIVE=6)),
    "a count is moved": ("counts", lambda r: with_counts(r, PASS_NATIVE=5, FAIL_STRIDE=0)),
    "a count is dropped": (
        "counts",
        lambda r: replace(r, counts={s: n for s, n in r.counts.items() if s is not Status.FAIL_STRIDE}),
    ),
    "correct is raised": ("figures", lambda r: replace(r, correct=Figure(part=7, whole=7))),
    "correct leaves out the known failure": ("figures", lambda r: replace(r, correct=Figure(part=5, whole=6))),
    "coverage is raised": ("figures", lambda r: replace(r, coverage=Figure(part=7, whole=7))),
    "core is raised": ("figures", lambda r: replace(r, core=Figure(part=5, whole=5))),
    "the claim is raised": ("claim", lambda r: replace(r, claim=Level.L3)),
    "the claim is dropped": ("claim", lambda r: replace(r, claim=None)),
    "the level is raised": ("ids", lambda r: replace(with_run(r, level=Level.L4), claim=Level.L4)),
    "the level is lowered": ("ids", lambda r: with_run(r, level=Level.L0)),
    "another pack": ("suite", lambda r: replace(r, pack=replace(PACK, sha256="f" * 64))),
    "no pack": ("suite", lambda r: replace(r, pack=None)),
    "another version of the suite": ("suite", lambda r: replace(r, suite=replace(r.suite, version="9.9"))),
    "other files of the suite": ("suite", lambda r: replace(r, suite=replace(r.suite, sha256="0" * 64))),
    "another format": ("format", lambda r: replace(r, format=2)),
    "a native pass without native ops": ("evidence", lambda r: with_result(r, 1, native=())),
    "a native pass with a kernel of torch's": ("evidence", lambda r: with_result(r, 1, extern=("aten.add",))),
    "a pass that compared nothing": ("evidence", lambda r: with_result(r, 1, compared=0)),
    "a pass that was declined": ("evidence", lambda r: with_result(r, 1, declined={"aten.add.Tensor": "no"})),
    "an extern pass called native": (
        "evidence",
        lambda r: with_result(r, 5, status=Status.PASS_NATIVE, native=("aten.sort.default",)),
    ),
    "an extern pass without a kernel": ("evidence", lambda r: with_result(r, 5, extern=())),
    "an extern pass with an undeclared kernel": ("capabilities", lambda r: with_result(r, 5, extern=("aten.mm",))),
    "a pass in a dtype that is not declared": (
        "capabilities",
        lambda r: replace(r, backend=replace(r.backend, capabilities={**r.backend.capabilities, "dtypes": []})),
    ),
    "a pass of training, which is not declared": (
        "capabilities",
        lambda r: replace(r, backend=replace(r.backend, capabilities={**r.backend.capabilities, "training": False})),
    ),
    "a case that was not run has ops": (
        "evidence",
        lambda r: with_result(r, 2, status=Status.NOT_RUN, native=("aten",)),
    ),
    "a case took no time and more": ("facts", lambda r: with_result(r, 1, seconds=-0.5)),
    "less than nothing was compared": ("facts", lambda r: with_result(r, 1, compared=-1)),
    "the run took no time and more": ("facts", lambda r: with_run(r, seconds=-1.0)),
    "the run is of no time zone": ("facts", lambda r: with_run(r, started=datetime.datetime(2026, 3, 1))),
    "the device is not named": ("facts", lambda r: replace(r, run=replace(r.run, device="cuda"))),
    "torch is not said": ("facts", lambda r: replace(r, machine=replace(r.machine, torch=""))),
    "an incomplete run is called complete": (
        "complete",
        lambda r: with_run(r, incomplete=("selected: -k add",)),
    ),
    "the reason is dropped": ("complete", lambda r: with_run(r, shards=(Shard(index=1, of=2),))),
    "a complete run is called incomplete": ("complete", lambda r: replace(r, complete=False)),
    "a shard stands twice": ("shards", lambda r: with_run(r, shards=(Shard(index=1, of=1),) * 2)),
    "a shard that is none": ("shards", lambda r: with_run(r, shards=(Shard(index=1, of=1), Shard(index=2, of=1)))),
    "no shards": ("shards", lambda r: with_run(r, shards=())),
    "shards of two divisions": (
        "shards",
        lambda r: with_run(r, shards=(*(Shard(index=i, of=2) for i in (1, 2)), Shard(index=1, of=1))),
    ),
    "a failure is called known": ("known", lambda r: with_result(r, 2, status=Status.KNOWN_FAIL)),
    "a mandatory failure is called known": (
        "known",
        lambda r: replace(with_result(r, 3, status=Status.KNOWN_FAIL, check="values"), known=(*r.known, OTHER)),
    ),
    "a known failure expired": ("known", lambda r: with_known(r, expires=datetime.date(2026, 2, 28))),
    "a known failure of tomorrow": ("known", lambda r: with_known(r, since=datetime.date(2026, 3, 2))),
    "a known failure without an issue": ("known", lambda r: with_known(r, issue="")),
    "a known failure of a whole tracker": ("known", lambda r: with_known(r, issue="https://example.org/acme/issues")),
    "a known failure of no failure": ("known", lambda r: with_known(r, status=Status.DECLINED)),
    "a known failure of no case": ("known", lambda r: replace(r, known=(*r.known, replace(KNOWN, id="ops/x/f32/s0")))),
    "a known failure twice": ("known", lambda r: replace(r, known=(KNOWN, KNOWN))),
    "a known failure that passes": ("known", lambda r: replace(r, known=(*r.known, replace(KNOWN, id=CASES[5].id)))),
}
"""What a vendor in a hurry could do to a report, and the rule that is to see it."""

OTHER = replace(KNOWN, id=CASES[3].id)


def found_in(edited: Report) -> set[str]:
    return {problem.rule for problem in problems(edited, CASES, installed_suite(), PACK)}


def sealed(edited: Report) -> Report:
    return replace(edited, digest=digest(edited))


@pytest.mark.parametrize("statuses", [STATUSES, FAILING, STATUSES[:4], [Status.DECLINED] * 7, [Status.HARNESS_ERROR]])
def test_an_honest_report_has_no_problem(statuses: list[Status]) -> None:
    known = [KNOWN] if Status.KNOWN_FAIL in statuses else []
    assert problems(report(statuses, known=known), CASES, installed_suite(), PACK) == ()


def test_an_honest_report_of_a_lower_level_has_no_problem() -> None:
    assert problems(report(level=Level.L1), CASES, installed_suite(), PACK) == ()


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_is_seen(name: str) -> None:
    rule, edit = EDITS[name]
    edited = edit(report(FAILING))
    assert edited != report(FAILING)
    assert rule in found_in(sealed(edited))
    assert found_in(edited) & {"digest", "format", "suite"}


def test_every_rule_is_the_only_one_to_see_some_edit() -> None:
    seen = [found_in(sealed(edit(report(FAILING)))) for _, edit in EDITS.values()]
    alone = {next(iter(rules)) for rules in seen if len(rules) == 1}
    assert alone == {rule for rule, _ in EDITS.values()}
    assert found_in(replace(report(), backend=replace(report().backend, version="1.2.1"))) == {"digest"}


RAW: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "cut off": ("Unterminated", lambda text: text[: len(text) // 2]),
    "a field that is none": (
        "unknown field `score`",
        lambda text: text.replace(b'{"format"', b'{"score":1,"format"', 1),
    ),
    "a field of a result that is none": (
        "unknown field",
        lambda text: text.replace(b'"status"', b'"note":"","status"', 1),
    ),
    "a status that is none": ("Invalid enum value 'SKIPPED'", lambda text: text.replace(b"FAIL_STRIDE", b"SKIPPED")),
    "a field is missing": ("missing required field", lambda text: text.replace(b'"complete":true,', b"", 1)),
    "a field twice": ("given twice", lambda text: text.replace(b'"claim":0', b'"claim":3,"claim":0', 1)),
    "a level that is none": ("Invalid enum value 9", lambda text: text.replace(b'"claim":0', b'"claim":9', 1)),
    "a text for a number": ("Expected `int`", lambda text: text.replace(b'"seed":7', b'"seed":"7"', 1)),
    "not a number": ("", lambda text: text.replace(b'"seconds":1.0', b'"seconds":NaN', 1)),
}


@pytest.mark.parametrize("name", RAW)
def test_a_file_of_another_form_is_refused(name: str) -> None:
    message, edit = RAW[name]
    content = msgspec.json.encode(report(FAILING))
    edited = edit(content)
    assert edited != content
    (problem,) = verify(edited)
    assert problem.rule == "form"
    assert message in problem.what


def test_a_report_of_another_version_is_left_to_that_version() -> None:
    other = Suite(version="0.0.1", sha256="0" * 64)
    (problem,) = problems(sealed(replace(added(report()), suite=other)), CASES, installed_suite(), PACK)
    assert problem.what.startswith("made by version 0.0.1 of the suite, not by ")


def test_a_forgery_that_is_right_in_itself_is_beyond_what_can_be_seen() -> None:
    assert found_in(report(STATUSES)) == set()


def test_the_run_decides_the_day_by_which_known_failures_expire() -> None:
    late = replace(run(), started=datetime.datetime(2027, 1, 1, tzinfo=datetime.UTC))
    assert found_in(report(facts=late)) == {"known"}
