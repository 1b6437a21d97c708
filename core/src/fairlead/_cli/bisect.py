"""``fairlead bisect``: which rung of the ladder breaks, and the smallest graph that shows it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from fairlead._cli.terminal import JsonOption, err, print_json, show
from fairlead._models import check_spec
from fairlead._registry import registry
from fairlead.errors import ArgumentError

if TYPE_CHECKING:
    from fairlead.bisection import Bisection


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command(no_args_is_help=True)(bisect)


def bisect(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="A bundled name, module:factory, file.py:factory, or a .fir file.", show_default=False
        ),
    ],
    backend: Annotated[str, typer.Option(help="Name of the backend that fails.", show_default=False)],
    train: Annotated[bool, typer.Option("--train", help="A training step: forward, loss and backward.")] = False,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for what is written.")] = Path(),
    seconds: Annotated[float, typer.Option(min=1, help="After which no further graph is tried.")] = 600.0,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds after which a Part hangs.")] = 120.0,
    json: Annotated[bool, JsonOption] = False,
) -> None:
    """Find out why a model fails on a backend, and write the smallest graph and script that show it.

    Exit status 0 where nothing fails, 1 where something does, 2 where nothing could be tried. Ctrl-C ends the search
    and prints what is known.
    """
    check_spec(model)
    registry.wheel(backend)  # raises the error that says what is installed
    if output.exists() and not output.is_dir():
        raise ArgumentError(f"{output} is not a folder", where="fairlead bisect --output", next="name a folder")
    with err.status("loading") as status:
        found = _found(model, backend, train, (seconds, timeout, output), status.update)
    if json:
        print_json(found)
    else:
        show(Text(str(found)))
    if found.rung is not None:
        raise typer.Exit(1)


def _found(
    spec: str, backend: str, train: bool, limits: tuple[float, float, Path], note: Callable[[str], None]
) -> Bisection:
    from fairlead._bisect import Limits, bisect_file, bisect_model
    from fairlead._models._load import load

    if spec.endswith(".fir"):
        return bisect_file(Path(spec), backend, {}, Limits(*limits), note)
    return bisect_model(load(spec, training=train), backend, {}, Limits(*limits), note, training=train)
