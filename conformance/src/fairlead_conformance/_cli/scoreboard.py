"""``fairlead-conformance scoreboard``: a static site of several backends' reports."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairlead_conformance._cli.reports import problems_of, untrusted
from fairlead_conformance._report import Report, installed_suite
from fairlead_conformance._scoreboard import read_kills, write_site


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command(no_args_is_help=True)(scoreboard)


def scoreboard(
    reports: Annotated[
        list[Path],
        typer.Argument(metavar="REPORTS...", help="A report of each backend, or its directory.", show_default=False),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Where to write the site.")] = Path(
        "site"
    ),
    kills: Annotated[
        Path | None, typer.Option("--kills", metavar="FILE", help="The kill score that the suite's own tests write.")
    ] = None,
) -> None:
    """Write a static site of all backends: levels, figures, bars, dtypes, known failures, ops.

    Reports are verified first. One of another version of the suite cannot be, and is marked; any other problem is an
    error.
    """
    score = read_kills(kills) if kills else None
    typer.echo(str(write_site([_checked(path) for path in reports], output, score)))


def _checked(path: Path) -> tuple[Report, str]:
    report, wrong = problems_of(path)
    if [problem for problem in wrong if problem.rule != "suite"] or (wrong and _made_here(report)):
        raise untrusted(path, wrong)
    return report, wrong[0].what if wrong else ""


def _made_here(report: Report) -> bool:
    """Whether the suite that is installed is of the version that made the report, and so could verify it."""
    return report.suite.version == installed_suite().version
