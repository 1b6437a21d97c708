"""``fairlead-conformance repro``: one failure as a script of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairlead.errors import ArgumentError
from fairlead_conformance._case import Case, Level
from fairlead_conformance._families import FAMILIES, manifest
from fairlead_conformance._subject import Subject


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command(no_args_is_help=True)(repro)


def repro(
    case: Annotated[str, typer.Argument(metavar="ID", help="The case, as a report names it.", show_default=False)],
    backend: Annotated[str, typer.Option(help="The backend, by the name of its entry point.", show_default=False)],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Where to write.")] = Path("repro"),
    seed: Annotated[int, typer.Option(help="The seed of the run that failed.")] = 0,
    device: Annotated[str, typer.Option(help="The device of the run that failed.")] = "cpu",
) -> None:
    """Run one case and, where it fails, write a script that shows it, with the graph and its inputs shrunk.

    Exit status 1 where it does not fail.
    """
    from fairlead_conformance._repro import write_repro

    written = write_repro(_case(case), Subject(backend, seed=seed, device=device), output)
    for path in written:
        typer.echo(str(path))
    if not written:
        typer.echo(f"{case} does not fail on {backend}")
        raise typer.Exit(1)


def _case(name: str) -> Case:
    """The case of that id; one that is drawn at random is in no manifest."""
    found = next((case for case in manifest(max(Level)) if case.id == name), None)
    if found is None and name.startswith("fuzz/"):
        return Case(id=name, level=Level.L4)
    if found is None:
        raise ArgumentError(
            f"no case is called {name!r}",
            where=f"families: {', '.join(FAMILIES)}",
            next="take the id from a report, or list all: fairlead-conformance run NAME --level L4 --collect",
        )
    return found
