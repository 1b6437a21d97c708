"""Medians, quartiles and ratios."""

from __future__ import annotations

import pytest

from fairlead._compare import Comparison, Kind, Report, Row, Settings, Status
from fairlead._compare._data import Machine, Times


def report(**speedups: tuple[float | None, ...]) -> Report:
    def row(name: str, speedup: float | None) -> Row:
        return Row(name=name, kind=Kind.backend, status=Status.ok, speedup=speedup)

    count = len(next(iter(speedups.values())))
    comparisons = [
        Comparison(
            model=f"m{i}", weights=0.0, inputs={}, rows=tuple(row(name, values[i]) for name, values in speedups.items())
        )
        for i in range(count)
    ]
    machine = Machine("cpu", 2, 0.0, "Linux", {})
    return Report(date="2026-01-01", machine=machine, settings=Settings(), comparisons=tuple(comparisons))


def test_a_ratio_is_taken_within_each_turn_so_that_drift_cancels() -> None:
    eager = Times.of([[1.0], [10.0], [100.0]], 0.0)
    twice_as_fast = Times.of([[0.5], [5.0], [50.0]], 0.0)
    assert twice_as_fast.speedup_over(eager) == 2.0


def test_times_are_summarised_over_all_calls() -> None:
    times = Times.of([[1.0, 2.0], [3.0, 4.0, 5.0]], 10.0)
    assert (times.median, times.calls, times.cpu, times.turns) == (3.0, 5, 2.0, (1.5, 4.0))
    assert times.lower < times.median < times.upper


def test_one_call_is_its_own_quartiles() -> None:
    times = Times.of([[2.0]], 2.0)
    assert (times.lower, times.median, times.upper) == (2.0, 2.0, 2.0)


def test_the_mean_of_speedups_is_geometric() -> None:
    (found,) = report(x=(0.5, 8.0)).speedups()
    assert found[2] == pytest.approx(2.0)


def test_a_row_that_is_missing_somewhere_has_no_mean() -> None:
    (found,) = report(x=(2.0, None)).speedups()
    assert found == ("x", (2.0, None), None)
