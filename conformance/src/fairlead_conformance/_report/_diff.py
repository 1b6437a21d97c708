"""What changed between two runs."""

from __future__ import annotations

import enum

import msgspec

from fairlead_conformance._report._data import Report
from fairlead_conformance._result import Result
from fairlead_conformance._status import Status

__all__ = ["Change", "Difference", "differences", "facts_changed"]


class Change(enum.StrEnum):
    """What happened to a case between two runs."""

    broken = "broken"
    """Passed, and fails."""
    lost = "lost"
    """Passed, and is declined or was not run."""
    fixed = "fixed"
    """Did not pass where the backend took it on, and passes."""
    gained = "gained"
    """Was declined or not run, and passes."""
    other = "other"
    """Passes by other means, or still does not pass, with another status."""
    new = "new"
    gone = "gone"


class Difference(msgspec.Struct, frozen=True):
    """One case that is not as it was; a status is None where the run had no such case."""

    change: Change
    id: str
    before: Status | None
    after: Status | None
    detail: str = ""


def differences(a: Report, b: Report) -> list[Difference]:
    """What changed from ``a`` to ``b``, worst first."""
    before, after = ({result.id: result for result in report.results} for report in (a, b))
    found = []
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name), after.get(name)
        if change := _change(old, new):
            statuses = old.status if old else None, new.status if new else None
            found.append(Difference(change, name, *statuses, new.detail if new else ""))
    return sorted(found, key=lambda difference: list(Change).index(difference.change))


def facts_changed(a: Report, b: Report) -> dict[str, tuple[str, str]]:
    """What the runs themselves differ in, of what may explain a change."""
    before, after = (_facts(report) for report in (a, b))
    return {
        name: (before.get(name, "none"), after.get(name, "none"))
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name)
    }


def _change(before: Result | None, after: Result | None) -> Change | None:
    if before is None:
        return Change.new
    if after is None:
        return Change.gone
    old, new = before.status, after.status
    if old == new:
        return None
    if old.passed == new.passed:
        return Change.other
    untried = (old if new.passed else new) in (Status.DECLINED, Status.NOT_RUN)
    if new.passed:
        return Change.gained if untried else Change.fixed
    return Change.lost if untried else Change.broken


def _facts(report: Report) -> dict[str, str]:
    return {
        "backend": report.backend.name,
        "wheel": f"{report.backend.wheel} {report.backend.version}".strip(),
        **report.backend.versions,
        "suite": f"{report.suite.version} ({report.suite.sha256[:12]})",
        "pack": f"{report.pack.version} ({report.pack.sha256[:12]})" if report.pack else "none",
        **msgspec.structs.asdict(report.machine),
        "level": report.run.level.name,
        "device": report.run.device,
        "seed": str(report.run.seed),
    }
