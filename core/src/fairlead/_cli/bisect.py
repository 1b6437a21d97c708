"""``fairlead bisect``: which rung of the ladder breaks, and the smallest graph that shows it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from fairlead._cli.pairs import OptionPairs, SizePairs
from fairlead._cli.terminal import JsonOption, err, print_json, show
from fairlead._models import check_spec
from fairlead._pairs import given_options, given_sizes
from fairlead._registry import registry
from fairlead.errors import ArgumentError


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
    option: OptionPairs = [],  # noqa: B006 - typer's
    size: SizePairs = [],  # noqa: B006
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
    options, sizes = given_options(option), given_sizes(size)
    if sizes and not model.endswith(".fir"):
        raise ArgumentError(f"{model} has no symbols", where="fairlead bisect --size", next="name a .fir file")
    registry.wheel(backend)  # raises the error that says what is installed
    if output.exists() and not output.is_dir():
        raise ArgumentError(f"{output} is not a folder", where="fairlead bisect --output", next="name a folder")
    with err.status("loading") as status:
        from fairlead._bisect import Limits, bisect_file, bisect_model
        from fairlead._models._load import load

        limits = Limits(seconds, timeout, output)
        if model.endswith(".fir"):
            found = bisect_file(Path(model), backend, options, limits, status.update, sizes=sizes)
        else:
            loaded = load(model, training=train)
            found = bisect_model(loaded, backend, options, limits, status.update, training=train)
    if json:
        print_json(found)
    else:
        show(Text(str(found)))
    if found.rung is not None:
        raise typer.Exit(1)
