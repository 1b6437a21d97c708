"""What the pages and summaries show of a report: a headline, bars by family, a map of ops and dtypes, groups."""

from __future__ import annotations

import collections
import re
from collections.abc import Iterable, Sequence

import msgspec

from fairlead_conformance._report._data import Report
from fairlead_conformance._result import Result
from fairlead_conformance._status import Status

__all__ = ["KINDS", "WORDS", "Bar", "Cell", "Group", "Heat", "bars", "groups", "headline", "heat", "kind", "level_name"]

KINDS = ("native", "extern", "declined", "known", "failed", "lost")
"""What statuses come down to, in the order of the bars. ``lost`` are cases that were not run or met a harness error."""

WORDS = {
    "native": "native",
    "extern": "with torch's kernels",
    "declined": "declined",
    "known": "known failure",
    "failed": "failed",
    "lost": "not run",
}
"""The same for readers."""

_KIND = {
    Status.PASS_NATIVE: "native",
    Status.PASS_EXTERN: "extern",
    Status.DECLINED: "declined",
    Status.KNOWN_FAIL: "known",
    Status.NOT_RUN: "lost",
    Status.HARNESS_ERROR: "lost",
}


def kind(status: Status) -> str:
    """Which of `KINDS` a status is."""
    return _KIND.get(status, "failed")


def level_name(report: Report) -> str:
    """The claim in words: a level, ``no level``, or ``incomplete``."""
    if not report.complete:
        return "incomplete"
    return report.claim.name if report.claim is not None else "no level"


def headline(report: Report) -> str:
    """The report in one line."""
    figures = f"{report.correct:.1%} correct, {report.coverage:.1%} coverage"
    version = f" {report.backend.version}" if report.backend.version else ""
    return f"{report.backend.name}{version}: {level_name(report)}, {figures} of {report.coverage.whole:,} cases"


class Bar(msgspec.Struct, frozen=True):
    """How many results of one family are of each kind."""

    label: str
    counts: dict[str, int]

    @property
    def passed(self) -> int:
        return self.counts["native"] + self.counts["extern"]

    @property
    def total(self) -> int:
        return sum(self.counts.values())


def bars(results: Iterable[Result]) -> list[Bar]:
    """A bar for each family, in the order in which they come."""
    found: dict[str, collections.Counter[str]] = {}
    for result in results:
        found.setdefault(result.id.partition("/")[0], collections.Counter())[kind(result.status)] += 1
    return [Bar(family, {name: counts[name] for name in KINDS}) for family, counts in found.items()]


class Group(msgspec.Struct, frozen=True):
    """Results that went wrong in one way: the status, the check, and the detail without its numbers, but for lines."""

    status: Status
    check: str
    detail: str
    results: tuple[Result, ...]

    @property
    def subjects(self) -> tuple[str, ...]:
        """What they are about, each once."""
        return tuple(dict.fromkeys(result.id.split("/")[1] for result in self.results))


_NUMBER = re.compile(r"0x[0-9a-f]+|(?<!\.py:)[-+]?\b\d[\d.,]*(?:e[-+]?\d+)?\b|\[[\d, ]*\]|\bnan\b|\binf\b")


def groups(results: Iterable[Result]) -> list[Group]:
    """The results that count against the backend or the suite, largest group first; known failures are not in them."""
    found: dict[tuple[Status, str, str], list[Result]] = {}
    for result in results:
        if result.status.failed or result.status is Status.HARNESS_ERROR:
            key = (result.status, result.check, _NUMBER.sub("#", result.detail))
            found.setdefault(key, []).append(result)
    every = [Group(*key, tuple(members)) for key, members in found.items()]
    return sorted(every, key=lambda group: (-len(group.results), group.status, group.check, group.detail))


class Cell(msgspec.Struct, frozen=True):
    """What became of the cases of one op in one dtype."""

    counts: dict[str, int]

    @property
    def worst(self) -> str:
        """The kind that a reader has to know of first."""
        return next(name for name in ("failed", "known", "lost", "declined", "extern", "native") if self.counts[name])

    @property
    def passed(self) -> int:
        return self.counts["native"] + self.counts["extern"]

    @property
    def total(self) -> int:
        return sum(self.counts.values())


class Heat(msgspec.Struct, frozen=True):
    """The cells of the ops that have any, by op and dtype."""

    dtypes: tuple[str, ...]
    rows: dict[str, dict[str, Cell]]


_INTEGERS = ("bool", "u8", "i8", "i16", "i32", "i64", "u16", "u32", "u64")
DTYPES = (*_INTEGERS, "f8e4m3fn", "f8e5m2", "bf16", "f16", "f32", "f64", "c64", "c128")
"""The order of the columns; others come after these, by name."""


def heat(results: Sequence[Result]) -> Heat:
    """What became of each op in each dtype, from the ids of the family ``ops``."""
    found: dict[str, dict[str, collections.Counter[str]]] = {}
    for result in results:
        family, *parts = result.id.partition("~")[0].split("/")
        if family == "ops" and len(parts) == 3:
            cell = found.setdefault(parts[0], {}).setdefault(parts[1], collections.Counter())
            cell[kind(result.status)] += 1
    seen = {dtype for row in found.values() for dtype in row}
    dtypes = tuple(sorted(seen, key=lambda dtype: (DTYPES.index(dtype) if dtype in DTYPES else len(DTYPES), dtype)))
    rows = {
        op: {dtype: Cell({name: row[dtype][name] for name in KINDS}) for dtype in dtypes if dtype in row}
        for op, row in sorted(found.items())
    }
    return Heat(dtypes, rows)
