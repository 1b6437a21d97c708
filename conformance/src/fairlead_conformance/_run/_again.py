"""Some cases of a report once more: what no arithmetic on a report can show, running its cases can."""

from __future__ import annotations

import random
from collections.abc import Iterator

from fairlead_conformance._report import Report
from fairlead_conformance._run._session import Session, pool_of
from fairlead_conformance._run._settings import Isolation, Settings

__all__ = ["differing", "sample"]


def sample(report: Report, count: int) -> tuple[str, ...]:
    """Ids of so many cases that pass by the report, or of all, chosen anew each time."""
    passed = [result.id for result in report.results if result.status.passed]
    return tuple(random.SystemRandom().sample(passed, min(count, len(passed))))


def differing(report: Report, ids: tuple[str, ...], isolate: Isolation = Isolation.auto) -> Iterator[str]:
    """Run these cases of the report with its seed, against the backend that is installed here; what differs."""
    settings = Settings(
        backend=report.backend.name,
        level=report.run.level,
        seed=report.run.seed,
        device=report.run.device,
        ids=ids,
        isolate=isolate,
    )
    stated = {result.id: result.status for result in report.results}
    session = Session(settings)
    version = session.report().backend.version
    if version != report.backend.version:
        yield f"{report.backend.name} is {report.backend.version or 'of no version'} there, {version} here"
    with pool_of(settings) as pool:
        pool.submit(session.open)
        for result in map(session.note, pool.results()):
            if result.status is not stated[result.id]:
                yield f"{result.id} is {stated[result.id]} there, {result.status} here: {result.detail}"
