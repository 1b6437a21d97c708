"""A report that is right in itself and says what no run gives is found out by running some of its cases."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlead_conformance import Level, Status, Subject, execute, manifest
from fairlead_conformance._report import Report, digest, report_of
from fairlead_conformance._run import Isolation, differing, sample

from .fixtures import MACHINE, of_suite, run


@pytest.fixture(scope="module")
def honest() -> Report:
    """What three cases give, and no more."""
    cases, subject = manifest(Level.L1), Subject("eager", seed=7)
    own = [execute(case, subject) for case in cases if case.family == "graph"][:3]
    backend = replace(of_suite().backend, name="eager")
    return report_of(cases, own, backend=backend, machine=MACHINE, run=run(Level.L1))


def test_a_sample_is_of_cases_that_pass_and_of_no_more_than_there_are(honest: Report) -> None:
    passed = {result.id for result in honest.results if result.status.passed}
    assert len(passed) > 1
    (one,) = sample(honest, 1)
    assert one in passed
    assert set(sample(honest, 99)) == passed


def test_cases_that_were_run_have_the_same_outcome_again(honest: Report) -> None:
    there = [what for what in differing(honest, sample(honest, 9), Isolation.none) if " is PASS" in what]
    assert there == []


def test_a_forged_outcome_is_not_there_when_the_case_is_run_again(honest: Report) -> None:
    (first, *_) = sample(honest, 1)
    results = tuple(replace(r, status=Status.FAIL_RNG) if r.id == first else r for r in honest.results)
    forged = replace(honest, results=results, digest="")
    forged = replace(forged, digest=digest(forged))
    (what,) = [line for line in differing(forged, (first,), Isolation.none) if first in line]
    assert what.startswith(f"{first} is FAIL_RNG there, PASS_")


def test_another_version_of_the_wheel_is_said(honest: Report) -> None:
    other = replace(honest, backend=replace(honest.backend, version="0.0.0"))
    what, *rest = differing(other, sample(honest, 1), Isolation.none)
    assert what.startswith("eager is 0.0.0 there, ")
    assert rest == []
