"""``fairlead-conformance run``: the cases of a level against a backend."""

from __future__ import annotations

import typer

from fairlead_conformance._case import Level
from fairlead_conformance._execute import execute
from fairlead_conformance._families import manifest
from fairlead_conformance._subject import Subject


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command(no_args_is_help=True)(run)


def run(name: str, level: str = "L1", seed: int = 0) -> None:
    """Run the cases of a level against a backend."""
    subject = Subject(name, seed=seed)
    for case in manifest(Level[level]):
        result = execute(case, subject)
        typer.echo(f"{result.status} {result.id} {result.detail}")
