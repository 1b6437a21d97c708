"""The files of the site: the board, and for each backend its page, its report and its badge."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import msgspec
from markupsafe import Markup

from fairlead_conformance._report import Report, to_badge
from fairlead_conformance._report._html import render, to_html
from fairlead_conformance._report._summary import DTYPES, KINDS
from fairlead_conformance._scoreboard._kills import KillScore
from fairlead_conformance._scoreboard._standing import Standing, standings

__all__ = ["write_site"]


def write_site(reports: Sequence[tuple[Report, str]], directory: Path, kills: KillScore | None = None) -> Path:
    """Write the site, and give the path of its ``index.html``; no file of it refers to another host.

    Each report comes with why it could not be verified here, or ``""``. ``kills``: how good the suite itself is; where
    it is not given, the page says that it is not known.
    """
    directory.mkdir(parents=True, exist_ok=True)
    found = standings(reports)
    for standing in found:
        report = standing.report
        (directory / f"{standing.slug}.html").write_text(to_html(report), "utf-8")
        (directory / f"{standing.slug}.json").write_bytes(msgspec.json.encode(report))
        if report.complete:
            (directory / f"{standing.slug}.svg").write_text(to_badge(report), "utf-8")
    index = directory / "index.html"
    index.write_text(_board(found, kills), "utf-8")
    return index


def _board(found: Sequence[Standing], kills: KillScore | None) -> str:
    families = list(dict.fromkeys(family for standing in found for family in standing.families))
    known = [(standing, entry) for standing in found for entry in standing.report.known]
    return render(
        "_scoreboard/scoreboard.html.jinja",
        own_style=Markup(resources.files(__package__).joinpath("scoreboard.css").read_text("utf-8")),
        standings=found,
        families=families,
        totals={name: sum(standing.whole.counts[name] for standing in found) for name in KINDS},
        dtypes=[dtype for dtype in DTYPES if any(dtype in standing.dtypes for standing in found)],
        known=sorted(known, key=lambda pair: (pair[1].since, pair[1].id)),
        suites=sorted({standing.report.suite.version for standing in found}),
        kills=kills,
        newest=max(standing.report.run.started for standing in found),
    )
