"""``fairlead-conformance badge``: an SVG for a README."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairlead_conformance._cli.reports import ReportArgument, verified
from fairlead_conformance._report import to_badge


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command(no_args_is_help=True)(badge)


def badge(
    report: Annotated[Path, ReportArgument],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="Where to write.")] = Path("badge.svg"),
) -> None:
    """Draw a badge of level, correct and coverage, of a report that verifies and is of a complete run."""
    drawn = to_badge(verified(report))
    output.write_text(drawn, "utf-8")
    typer.echo(str(output))
