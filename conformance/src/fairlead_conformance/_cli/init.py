"""``fairlead-conformance init``: adopt the suite in an existing wheel."""

from __future__ import annotations

import typer

from fairlead_conformance._scaffold import commands


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command()(commands.init)
