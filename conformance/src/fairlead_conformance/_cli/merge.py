"""``fairlead-conformance merge``: the reports of all shards of one run, as one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairlead_conformance._cli.reports import verified
from fairlead_conformance._families import manifest
from fairlead_conformance._report import headline, merged, write_report


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command(no_args_is_help=True)(merge)


def merge(
    shards: Annotated[
        list[Path],
        typer.Argument(metavar="SHARDS...", help="The report of each shard, or its directory.", show_default=False),
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="Where to write the report.", show_default=False)
    ],
) -> None:
    """Make one report of those of all shards, which are verified first.

    The shards are of one run, none is missing and none there twice: anything else is refused, with what differs.
    """
    reports = {str(path): verified(path) for path in shards}
    level = next(iter(reports.values())).run.level
    report = merged(reports, manifest(level))
    typer.echo(f"{write_report(report, output)}: {headline(report)}")
