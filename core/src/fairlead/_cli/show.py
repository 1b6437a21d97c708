"""``fairlead show``: the graphs of a file, as text or as a page to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.highlighter import RegexHighlighter
from rich.text import Text
from rich.theme import Theme

from fairlead import ir
from fairlead._cli.files import FileArgument, chosen, read_file, writable
from fairlead._cli.terminal import out
from fairlead._page import page
from fairlead._registry import registry
from fairlead.errors import ArgumentError


class _IR(RegexHighlighter):
    base_style = "ir."
    highlights = [
        r"^\s*(?P<keyword>in|out|symbol|graph|region|op|producer|fairlead-ir)\b",
        r"(?P<value>%\d+)",
        r"= (?P<op>[\w.]+)\(",
        r"(?P<type>\b(?:bool|[uif]\d+\w*|bf16|c\d+)\[[^\]]*\])",
        r"(?P<location>loc\(.*\)$)",
        r"(?P<text>\"[^\"]*\")",
    ]


_THEME = Theme(
    {
        "ir.keyword": "bold",
        "ir.value": "cyan",
        "ir.op": "bold green",
        "ir.type": "yellow",
        "ir.location": "dim",
        "ir.text": "magenta",
    }
)


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command(no_args_is_help=True)(show)


def show(
    file: FileArgument,
    graph: Annotated[int | None, typer.Option(min=0, help="Number of the one graph.", show_default="all")] = None,
    locations: Annotated[bool, typer.Option("--locations", help="End each node with its source line.")] = False,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page to look at the graph, which needs no network.")
    ] = None,
    backend: Annotated[
        str, typer.Option(help="In the page, say of each node whether this backend takes it.", show_default=False)
    ] = "",
) -> None:
    """Show the graphs of a file: as text, or with --html as one page to zoom, search and unfold."""
    if backend and html is None:
        raise ArgumentError("--backend colours the page", where="fairlead show", next="add --html FILE")
    if html is not None:
        writable(html, "fairlead show --html")
    if backend:
        registry.wheel(backend)  # raises the error that says what is installed
    opened = read_file(file)
    graphs = chosen(opened, file, graph)
    if html is not None:
        html.write_text(page(file.name, opened.module, graphs, backend), "utf-8")
        nodes = sum(len(list(g.walk())) for g in graphs)
        typer.echo(
            f"{html}: {len(graphs)} graph{'s' * (len(graphs) != 1)}, {nodes} nodes, {html.stat().st_size:,} bytes"
        )
        return
    text = (
        ir.to_text(opened.module, locations=locations) if graph is None else ir.to_text(graphs[0], locations=locations)
    )
    with out.use_theme(_THEME):
        out.print(_coloured(text), soft_wrap=True)


def _coloured(text: str) -> RenderableType:
    shown = Text(text)
    if out.is_terminal:
        _IR().highlight(shown)
    return shown
