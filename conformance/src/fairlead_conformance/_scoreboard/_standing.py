"""What the scoreboard shows of one report."""

from __future__ import annotations

import collections
import functools
import re
from collections.abc import Sequence

from fairlead_conformance._report import Report
from fairlead_conformance._report._summary import DTYPES, KINDS, Bar, Heat, bars, heat, kind

__all__ = ["Standing", "standings"]


class Standing:
    """One backend on one device. ``slug`` names its files; ``unverified`` says why nobody checked its report here."""

    def __init__(self, report: Report, slug: str, unverified: str) -> None:
        self.report = report
        self.slug = slug
        self.unverified = unverified

    @property
    def title(self) -> str:
        """The backend's name, with the device where that is not the usual one."""
        device = self.report.run.device
        return self.report.backend.name if device == "cpu" else f"{self.report.backend.name} on {device}"

    @functools.cached_property
    def families(self) -> dict[str, Bar]:
        return {bar.label: bar for bar in bars(self.report.results)}

    @functools.cached_property
    def whole(self) -> Bar:
        """All families in one bar."""
        return Bar("", {name: sum(bar.counts[name] for bar in self.families.values()) for name in KINDS})

    @functools.cached_property
    def heat(self) -> Heat:
        return heat(self.report.results)

    @functools.cached_property
    def dtypes(self) -> dict[str, Bar]:
        """A bar for each dtype of the IR that ids name."""
        found: dict[str, collections.Counter[str]] = {}
        for result in self.report.results:
            dtype = result.id.partition("~")[0].split("/")[2]
            if dtype in DTYPES:
                found.setdefault(dtype, collections.Counter())[kind(result.status)] += 1
        return {
            dtype: Bar(dtype, {name: found[dtype][name] for name in KINDS}) for dtype in sorted(found, key=DTYPES.index)
        }

    @property
    def oldest(self) -> int:
        """Days since its oldest known failure is known."""
        day = self.report.run.started.date()
        return max((entry.age(day) for entry in self.report.known), default=0)


def standings(reports: Sequence[tuple[Report, str]]) -> list[Standing]:
    """Best first: by claim, then correct, then coverage. Each report comes with why it is unverified, or ``""``."""
    taken = collections.Counter[str]()
    found = []
    for report, unverified in reports:
        slug = re.sub(r"[^a-z0-9.]+", "-", f"{report.backend.name}-{report.run.device}".lower()).strip("-.")
        taken[slug] += 1
        found.append(Standing(report, slug if taken[slug] == 1 else f"{slug}-{taken[slug]}", unverified))
    return sorted(found, key=_rank)


def _rank(standing: Standing) -> tuple[object, ...]:
    report = standing.report
    claim = -1 if report.claim is None else int(report.claim)
    return -claim, not report.complete, -report.correct.ratio, -report.coverage.ratio, standing.title
