"""The ``fairlead-conformance`` command."""

from __future__ import annotations

import typer

from fairlead_conformance._case import Level
from fairlead_conformance._execute import execute
from fairlead_conformance._families import manifest
from fairlead_conformance._subject import Subject

app = typer.Typer(name="fairlead-conformance", no_args_is_help=True, add_completion=False)


@app.callback()
def conformance() -> None:
    """What a backend wheel has to do right."""


@app.command()
def run(name: str, level: str = "L1", seed: int = 0) -> None:
    """Run the cases of a level against a backend."""
    subject = Subject(name, seed=seed)
    for case in manifest(Level[level]):
        result = execute(case, subject)
        typer.echo(f"{result.status} {result.id} {result.detail}")


def main() -> None:
    """Run the command."""
    app()
