"""What a run says at its end, in lines."""

from __future__ import annotations

from collections.abc import Iterator

from fairlead_conformance._report import Report
from fairlead_conformance._result import Result
from fairlead_conformance._status import Status

__all__ = ["is_red", "summary"]


def is_red(result: Result) -> bool:
    """Whether a run with this result ends badly: something failed, or cannot be told."""
    return result.status.failed or result.status in (Status.HARNESS_ERROR, Status.NOT_RUN)


def summary(report: Report) -> Iterator[str]:
    """The report's figures."""
    yield f"correct {report.correct:.1%}, coverage {report.coverage:.1%} of {len(report.results)} cases"
    yield f"core ops {report.core:.1%} native of {report.core.whole} samples"
    yield ", ".join(f"{n} {status}" for status, n in report.counts.items() if n)
    yield f"seed {report.run.seed}, claim {report.claim.name if report.claim is not None else 'none'}"
    for reason in report.reasons:
        yield f"incomplete: {reason}"
