"""What is counted of results, and which level they support."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from fairlead.errors import ArgumentError
from fairlead_conformance import Level, Status
from fairlead_conformance._report import Figure, Shard, read_report, report_of, write_report
from fairlead_conformance._report._totals import core_coverage

from . import fixtures
from .fixtures import CASES, STATUSES, report


def test_the_two_figures_are_counted_apart() -> None:
    found = report()
    assert found.correct == Figure(part=6, whole=7)
    assert found.coverage == Figure(part=6, whole=7)
    declined = report([*STATUSES[:5], Status.DECLINED, Status.DECLINED])
    assert declined.correct == Figure(part=4, whole=5)
    assert declined.coverage == Figure(part=4, whole=7)


def test_core_coverage_is_of_samples_whose_ops_are_all_core_and_of_native_passes() -> None:
    found = report()
    assert found.core == Figure(part=3, whole=5)  # one is a known failure, one has torch's kernels


@pytest.mark.parametrize("other", ["aten.special_erfcx.default", "acme.own.default"])
def test_a_sample_with_an_op_of_another_tier_is_none_of_core(other: str) -> None:
    mixed = msgspec.structs.replace(CASES[1], ops=("aten.mm.default", other))
    own = {case.id: fixtures.result(case, Status.PASS_NATIVE) for case in (mixed, CASES[2])}
    assert core_coverage([mixed, CASES[2]], own) == Figure(part=1, whole=1)


def test_every_status_is_counted_and_all_of_them_add_up() -> None:
    counts = report().counts
    assert tuple(counts) == tuple(Status)
    assert sum(counts.values()) == 7


def test_a_known_failure_that_is_not_mandatory_leaves_the_claim() -> None:
    assert report().claim is Level.L3


@pytest.mark.parametrize(
    ("index", "status", "reached"),
    [
        (0, Status.FAIL_IMPORT, None),
        (1, Status.DECLINED, Level.L0),
        (1, Status.KNOWN_FAIL, Level.L0),
        (2, Status.DECLINED, Level.L3),
        (2, Status.FAIL_STRIDE, Level.L0),
        (4, Status.FAIL_FALLBACK, Level.L1),
        (5, Status.DECLINED, Level.L1),
        (6, Status.DECLINED, Level.L2),
        (6, Status.FAIL_GRAD, Level.L2),
        (2, Status.NOT_RUN, None),
        (2, Status.HARNESS_ERROR, None),
    ],
)
def test_the_claim_ends_below_the_level_that_is_not_right(index: int, status: Status, reached: Level | None) -> None:
    statuses = list(STATUSES)
    statuses[index] = status
    found = report(statuses)
    assert found.claim is reached
    assert found.complete is (status not in (Status.NOT_RUN, Status.HARNESS_ERROR))


def test_a_backend_that_does_nothing_scores_nothing() -> None:
    found = report([Status.DECLINED] * 7, known=())
    assert (found.claim, found.correct.part, found.coverage.part) == (None, 0, 0)


@pytest.mark.parametrize("elsewhere", [Status.DECLINED, Status.FAIL_SHAPE])
def test_what_is_right_by_chance_counts_for_nothing(elsewhere: Status) -> None:
    found = report([Status.PASS_NATIVE, Status.FAIL_MISMATCH, Status.PASS_NATIVE, elsewhere, *STATUSES[4:]])
    assert found.counts[Status.PASS_NATIVE] == 3
    assert (found.claim, found.correct.part, found.coverage.part) == (Level.L0, 0, 0)


def test_who_takes_on_no_mandatory_case_is_not_judged_by_them() -> None:
    found = report([Status.PASS_NATIVE, Status.DECLINED, Status.PASS_NATIVE, Status.DECLINED, *STATUSES[4:]])
    assert found.correct == Figure(part=4, whole=5)


def test_no_claim_is_higher_than_what_was_run() -> None:
    assert report(STATUSES[:4], level=Level.L1, known=()).claim is Level.L1


def test_a_case_without_a_result_was_not_run() -> None:
    found = report(STATUSES[:5])
    assert [r.status for r in found.results[5:]] == [Status.NOT_RUN] * 2
    assert found.reasons == ("2 of 7 cases were not run",)


def test_what_the_runner_knows_to_be_missing_makes_it_incomplete() -> None:
    facts = msgspec.structs.replace(fixtures.run(), shards=(Shard(index=2, of=3),), incomplete=("selected: -k add",))
    found = report(facts=facts)
    assert found.reasons == ("selected: -k add", "shards missing: 1/3, 3/3")
    assert not found.complete
    assert found.claim is None


def test_results_of_no_case_or_two_of_one_are_refused() -> None:
    right = fixtures.result(CASES[0], Status.PASS_NATIVE)
    whole = report()
    for wrong in ([right, right], [msgspec.structs.replace(right, id="ops/none/f32/s000")]):
        with pytest.raises(ValueError, match="one of each case"):
            report_of(CASES, wrong, backend=whole.backend, machine=whole.machine, run=whole.run)


def test_a_report_is_read_as_it_was_written_with_a_result_on_each_line(tmp_path: Path) -> None:
    path = write_report(report(), tmp_path)
    assert read_report(path) == report()
    lines = path.read_text("utf-8").splitlines()
    assert [sum(f'"id":"{case.id}"' in line for line in lines) for case in CASES] == [1] * 7 + [0]


def test_a_file_that_is_no_report_is_three_lines(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text('{"format": 1, "colour": "red"}')
    with pytest.raises(ArgumentError) as caught:
        read_report(path)
    assert str(caught.value).splitlines() == [
        "FL203: not a report of conformance: Object contains unknown field `colour`",
        f"  from: {path}",
        "  next: give the report.json of a run, in format 1; see: fairlead-conformance schema",
    ]
