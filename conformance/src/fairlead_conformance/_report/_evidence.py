"""What each result has to show for its status, and what capabilities and known failures have to do with it."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence

from fairlead_conformance._case import Case
from fairlead_conformance._report._data import KnownFailure, Report
from fairlead_conformance._result import Result
from fairlead_conformance._status import Status

__all__ = ["capabilities", "evidence", "known"]


def evidence(report: Report, cases: Mapping[str, Case]) -> Iterator[str]:
    """What the results say beside their status, and may not, or do not say, and must."""
    for result in report.results:
        for what in _contradictions(result, cases[result.id]):
            yield f"{result.id} is {result.status}, and {what}"


def _contradictions(result: Result, case: Case) -> Iterator[str]:
    status = result.status
    if status.passed:
        if not result.compared:
            yield "nothing was compared"
        if result.check or result.declined:
            yield "says that it failed or was declined"
    if status is Status.PASS_NATIVE and result.extern:
        yield f"torch computed {', '.join(result.extern)}"
    if status is Status.PASS_NATIVE and case.ops and not result.native:
        yield "the backend ran no op"
    if status is Status.PASS_EXTERN and not result.extern:
        yield "torch computed nothing"
    if status is Status.DECLINED and not result.declined:
        yield "no reason is given"
    if (status.failed or status in (Status.KNOWN_FAIL, Status.HARNESS_ERROR)) and not (result.check or result.detail):
        yield "nothing says what is wrong"
    if status is Status.NOT_RUN and (result.native or result.extern or result.declined or result.compared):
        yield "it ran"


def capabilities(report: Report, cases: Mapping[str, Case]) -> Iterator[str]:
    """Passes that the backend's capabilities rule out."""
    declared = report.backend.capabilities
    dtypes, lent = declared.get("dtypes", ()), _lent(declared.get("extern_aten", ()))
    for result in report.results:
        case = cases[result.id]
        if not result.status.passed:
            continue
        if lacking := [need for need in case.needs if not declared.get(need)]:
            yield f"{result.id} passes, and needs {', '.join(lacking)}, which the capabilities lack"
        if lacking := [dtype for dtype in case.dtypes if dtype not in dtypes]:
            yield f"{result.id} passes in {', '.join(lacking)}, which the capabilities lack"
        if lacking := [op for op in result.extern if "*" not in lent and not _relatives(op) & lent]:
            yield f"{result.id} passes with torch's {', '.join(lacking)}, which extern_aten lacks"


def _lent(kernels: Sequence[str]) -> set[str]:
    """The names of torch's operators that a backend which declares these kernels may borrow."""
    return {name for kernel in kernels for name in (kernel, *_relatives(kernel.replace("::", ".")))}


def known(report: Report, cases: Mapping[str, Case]) -> Iterator[str]:
    """Known failures that are none, and failures called known that are not listed."""
    results = {result.id: result for result in report.results}
    listed = {entry.id for entry in report.known}
    for result in report.results:
        if result.status is Status.KNOWN_FAIL and result.id not in listed:
            yield f"{result.id} is KNOWN_FAIL, and is not among the known failures"
        if result.status is Status.KNOWN_FAIL and cases[result.id].mandatory:
            yield f"{result.id} is KNOWN_FAIL, and mandatory"
    if len(listed) != len(report.known):
        yield "a known failure is listed twice"
    for entry in report.known:
        if entry.id not in cases:
            yield f"known failure {entry.id}: no such case"
        elif entry.id in results:
            for what in _faults(entry, results[entry.id], report.run.started.date()):
                yield f"known failure {entry.id}: {what}"


def _faults(entry: KnownFailure, result: Result, day: datetime.date) -> Iterator[str]:
    if result.status.passed:
        yield "passes, which is FAIL_XPASS"
    if result.status is not Status.KNOWN_FAIL:
        return
    if not entry.status.failed:
        yield f"{entry.status} is no failure"
    if entry.expires < day:
        yield f"expired on {entry.expires}, before the run of {day}"
    if entry.since > day:
        yield f"known since {entry.since}, after the run of {day}"
    if not (entry.reason and entry.is_traceable):
        yield "without a reason and the address of an issue, or the path of a program that shows it"


def _relatives(op: str) -> frozenset[str]:
    from fairlead_conformance._witness._relatives import relatives  # its package imports torch, which a report need not

    return relatives(op)
