"""``fairlead diff``: what differs between the graphs of two files, line by line."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.text import Text

from fairlead import ir
from fairlead._cli.files import read_file
from fairlead._cli.terminal import JsonOption, print_json, show

STYLES = {
    ir.Change.added: "green",
    ir.Change.removed: "red",
    ir.Change.moved: "cyan",
    ir.Change.changed: "yellow",
}


class GraphDiff(msgspec.Struct, frozen=True):
    """One pair of graphs, by their names, and what differs; a name is empty where the file has no such graph."""

    graphs: tuple[str, str]
    diff: ir.Diff | None


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command(no_args_is_help=True)(diff)


def diff(
    a: Annotated[Path, typer.Argument(metavar="A", help="A .fir file.", show_default=False)],
    b: Annotated[Path, typer.Argument(metavar="B", help="Another.", show_default=False)],
    json: Annotated[bool, JsonOption] = False,
) -> None:
    """Say what differs between the graphs of two files; names, numbers of values and source lines do not count.

    Exit status 0 where the graphs are equal, 1 where they differ, 2 where a file cannot be read.
    """
    modules = [read_file(path).module for path in (a, b)]
    pairs = [_compared(*pair) for pair in itertools.zip_longest(modules[0].graphs, modules[1].graphs)]
    if json:
        print_json(pairs)
    else:
        for pair in pairs:
            show(*_lines(pair))
    versions = [d for d in ir.diff(*modules).differences if d.what == "version"]
    if not json:
        show(*(Text(str(line), STYLES[line.change]) for line in versions))
    if versions or not all(pair.diff is not None and pair.diff.equal for pair in pairs):
        raise typer.Exit(1)


def _compared(a: ir.Graph | None, b: ir.Graph | None) -> GraphDiff:
    names = (a.name if a else "", b.name if b else "")
    return GraphDiff(names, ir.diff(a, b) if a and b else None)


def _lines(pair: GraphDiff) -> list[Text]:
    title = " | ".join(dict.fromkeys(name or "(no such graph)" for name in pair.graphs))
    if pair.diff is None:
        return [Text(title, "bold red")]
    if pair.diff.equal:
        return [Text.assemble((title, "bold"), ": ", (str(pair.diff), "green"))]
    count = len(pair.diff.differences)
    heading = Text.assemble((title, "bold"), f": {count} difference{'s' if count > 1 else ''}")
    return [heading, *(Text(f"  {line}", STYLES[line.change]) for line in pair.diff.differences)]
