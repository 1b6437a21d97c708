"""``fairlead op``: what an op of the IR takes, gives and means."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text

from fairlead._cli.terminal import JsonOption, print_json, show
from fairlead._messages import nearest
from fairlead.errors import ArgumentError
from fairlead.ir import opset


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command()(op)


def op(
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="An op, such as aten.gelu.default, or a part of its name.")
    ] = "",
    pages: Annotated[Path | None, typer.Option(help="Write a Markdown page for each op into this folder.")] = None,
    json: Annotated[bool, JsonOption] = False,
) -> None:
    """Show what an op of the IR takes, gives and means; without NAME, list all of them."""
    from fairlead._cli import op_pages  # the rules for dtypes and shapes, which it shows, take a while to import

    if pages is not None:
        typer.echo(f"{op_pages.write_pages(pages)} pages in {pages}")
        return
    found = _named(name)
    if json:
        print_json(found)
    elif len(found) == 1:
        show(Markdown(op_pages.page(found[0])))
    else:
        show(_table(found), Text(f"{len(found)} of the {len(opset.specs())} ops of opset {opset.OPSET_VERSION}"))


def _named(name: str) -> list[opset.OpSpec]:
    """The op of that name, or else all whose names contain it."""
    specs = opset.specs()
    if name in specs:
        return [specs[name]]
    named = [s for s in specs.values() if name in s.id]
    exact = [s for s in named if f".{name}." in f".{s.id}."] if name else named
    if named:
        return exact or named
    near = nearest(name, specs) or nearest(f"aten.{name}.default", specs)
    hint = f"did you mean {near!r}? " if near else ""
    raise ArgumentError(
        f"no op of the IR is called {name!r}",
        where=f"opset {opset.OPSET_VERSION}, {len(specs)} ops; what a program registers itself is not among them",
        next=f"{hint}'fairlead op' lists them all",
    )


def _table(found: list[opset.OpSpec]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for title in ("op", "tier", "compared", "is"):
        table.add_column(title, no_wrap=title in ("op", "tier"))
    for spec in found:
        table.add_row(Text(spec.id, "bold"), spec.tier, spec.comparison, spec.meaning)
    return table
