"""A report as a Markdown summary: what a CI shows beside a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fairlead_conformance._report._data import Report
from fairlead_conformance._report._summary import KINDS, WORDS, bars, groups, level_name
from fairlead_conformance._result import Result

__all__ = ["to_markdown"]

SHOWN = 20
"""How many groups of failures are listed; the page has all."""


def to_markdown(report: Report) -> str:
    """The summary, in GitHub's Markdown."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    backend, run = report.backend, report.run
    yield f"# {_text(backend.name)}: {level_name(report)}"
    yield ""
    numerics = f", with looser numbers: {_text(', '.join(backend.numerics))}" if backend.numerics else ""
    yield f"**{report.correct:.1%} correct** ({report.correct.part:,} of the {report.correct.whole:,} cases taken on),"
    yield f"**{report.coverage:.1%} coverage** ({report.coverage.part:,} of {report.coverage.whole:,} cases){numerics}."
    yield f"Of core ops {report.core:.1%} are native ({report.core.part:,} of {report.core.whole:,} samples)."
    yield ""
    if report.reasons:
        yield "The run is not complete, so it supports no claim:"
        yield ""
        yield from (f"- {_text(reason)}" for reason in report.reasons)
        yield ""
    wheel = f"{backend.wheel} {backend.version}".strip() or "no wheel"
    yield (
        f"{_text(wheel)}, suite {report.suite.version}, torch {report.machine.torch}, Python {report.machine.python}, "
        f"{_text(report.machine.platform)}, {_device(report)}, level {run.level.name}, seed {run.seed}, "
        f"{run.seconds:,.0f} s"
    )
    yield ""
    yield from _table(("family", *WORDS.values(), "cases"), _rows(report))
    yield from _failures(report.results)
    if report.beyond:
        yield from _failures(report.beyond, "Beyond the levels")
    yield from _known(report)


def _device(report: Report) -> str:
    return f"{report.run.device} ({_text(report.machine.device)})" if report.machine.device else report.run.device


def _rows(report: Report) -> Iterator[tuple[str, ...]]:
    for bar in bars(report.results):
        yield (bar.label, *(str(bar.counts[name] or "") for name in KINDS), str(bar.total))


def _failures(results: Iterable[Result], title: str = "Failures") -> Iterator[str]:
    found = groups(results)
    if not found:
        return
    yield f"## {title}"
    yield ""
    rows = [
        (str(len(g.results)), g.status, _text(g.check), _text(g.detail), f"`{g.results[0].id}`") for g in found[:SHOWN]
    ]
    yield from _table(("cases", "status", "check", "what", "such as"), rows)
    if len(found) > SHOWN:
        yield f"and {len(found) - SHOWN} more groups"
        yield ""


def _known(report: Report) -> Iterator[str]:
    if not report.known:
        return
    day = report.run.started.date()
    yield "## Known failures"
    yield ""
    rows = [
        (f"`{k.id}`", k.status, f"{k.age(day)} days", str(k.expires), _text(k.reason), _link(k.issue))
        for k in report.known
    ]
    yield from _table(("case", "status", "age", "expires", "reason", "issue"), rows)


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    header = tuple(header)
    yield f"| {' | '.join(header)} |"
    yield "|" + "---|" * len(header)
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def _link(address: str) -> str:
    plain = address.startswith(("https://", "http://")) and not set(address) & set(" <>|")
    return f"<{address}>" if plain else _text(address)


def _text(text: str) -> str:
    """As it reads, whatever it has of Markdown, of HTML and of tables."""
    text = " ".join(text.split())
    for mark in "\\`*_[]<>|#~&":
        text = text.replace(mark, f"\\{mark}")
    return text
