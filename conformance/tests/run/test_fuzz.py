"""What is drawn at random is run until the time is up, and reported beside the figures."""

from __future__ import annotations

from pathlib import Path

from fairlead_conformance import Status
from fairlead_conformance._families.fuzz import endless
from fairlead_conformance._report import read_report
from fairlead_conformance._run import Isolation, Settings, Shard, fuzzed

from .conftest import Conform

FAILURES = {"fuzz/base/any/s000005003": Status.FAIL_MISMATCH, "fuzz/base/any/s000005004": Status.FAIL_CRASH}


def test_failures_of_drawn_graphs_are_reported_and_count_for_no_level(conform: Conform, tmp_path: Path) -> None:
    ended = conform(("behave",), "--fuzz", "1s", "--seed", "5", "--workers", "1")
    assert (ended.returncode, "graphs of seed 5, 2 failed" in ended.stderr) == (1, True), ended.stderr
    report = read_report(tmp_path / "out/report.json")
    assert {result.id: result.status for result in report.beyond} == FAILURES
    assert {status: n for status, n in report.counts.items() if n} == {Status.PASS_NATIVE: 1}


def test_a_backend_that_cannot_be_loaded_is_not_asked_until_the_time_is_up(conform: Conform) -> None:
    ended = conform(("behave",), "--fuzz", "1h", "--workers", "1", source="import os; os._exit(9)")
    assert (ended.returncode, "fuzz: 2 graphs" in ended.stderr) == (1, True), ended.stderr


def test_graphs_are_drawn_from_the_seed_and_by_each_shard_others() -> None:
    def ids(seed: int, shard: str) -> list[str]:
        settings = Settings(backend="eager", seed=seed, shard=Shard.parse(shard), isolate=Isolation.none, workers=2)
        return [result.id for result in fuzzed(settings, 0)]

    first, second, third, fourth = [case.id for case, _ in zip(endless(3), range(4), strict=False)]
    assert ids(3, "1/1") == [first, second, third, fourth]
    assert ids(3, "2/2")[:2] == [second, fourth]
