"""``fairlead-conformance schema``: the JSON Schema of a report."""

from __future__ import annotations

import typer

from fairlead_conformance._report import published


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command()(schema)


def schema() -> None:
    """Print the JSON Schema of ``report.json``."""
    typer.echo(published(), nl=False)
