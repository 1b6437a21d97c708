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


def verify(
    report: Annotated[Path, ReportArgument],
    rerun: Annotated[
        int, typer.Option(min=0, help="Run so many of the cases that pass again, chosen at random; needs the backend.")
    ] = 0,
) -> None:
    """Work out anew, offline, what a report states: totals, ids, hashes, shards, evidence and the claim.

    Exit status 1 where something is wrong, a line each; 2 where it is no report. Needs the version of the suite that
    made the report. Its digest shows an edit; it is no signature, and does not say who ran the cases: --rerun looks.
    """
    found, problems = problems_of(report)
    wrong = [f"{problem.rule}: {problem.what}" for problem in problems]
    ids: tuple[str, ...] = ()
    if rerun and not wrong:
        from fairlead_conformance._run import differing, sample

        if ids := sample(found, rerun):
            wrong = [f"rerun: {what}" for what in differing(found, ids)]
    for line in wrong:
        typer.echo(line)
    if wrong:
        raise typer.Exit(1)
    typer.echo(f"valid: {headline(found)}" + (f"; {len(ids)} run again, with the same outcome" if ids else ""))
