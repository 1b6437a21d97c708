"""The subcommands, put together."""

from __future__ import annotations

from importlib import metadata
from typing import Annotated

import typer

from fairlead._cli import (
    Invocation,
    backends,
    bisect,
    capture,
    compare,
    diff,
    doctor,
    explain,
    op,
    replay,
    show,
    verify,
)
from fairlead._cli.commands import Commands

app = typer.Typer(
    name="fairlead", cls=Commands, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)
backends.register(app)
doctor.register(app)
for command in (compare, explain, bisect, capture, show, replay, verify, diff, op):
    command.register(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fairlead {metadata.version('fairlead')}")
        raise typer.Exit


@app.callback()
def fairlead(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    traceback: Annotated[bool, typer.Option("--traceback", help="Show where an error was raised.")] = False,
) -> None:
    """One captured PyTorch graph, any compiler backend behind a name."""
    context.ensure_object(Invocation).traceback = traceback
