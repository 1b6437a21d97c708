"""``fairlead-conformance verify``: whether a report is what a run gives."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairlead_conformance._cli.reports import ReportArgument, problems_of
from fairlead_conformance._report import headline


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command(no_args_is_help=True)(verify)


def verify(report: Annotated[Path, ReportArgument]) -> None:
    """Work out anew, offline, what a report states: totals, ids, hashes, shards, evidence and the claim.

    Exit status 1 where something is wrong, a line each; 2 where it is no report. Needs the version of the suite that
    made the report. Its digest shows an edit; it is no signature, and does not say who ran the cases.
    """
    found, wrong = problems_of(report)
    for problem in wrong:
        typer.echo(f"{problem.rule}: {problem.what}")
    if wrong:
        raise typer.Exit(1)
    typer.echo(f"valid: {headline(found)}")
