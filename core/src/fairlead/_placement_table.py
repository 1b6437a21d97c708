"""A placement report as text."""

from __future__ import annotations

import io
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from fairlead.placement import Placement


def render(placement: Placement, width: int = 120) -> str:
    """The report as a plain table of at most ``width`` columns."""
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(_table(("graph", "backend", "native", "parts"), _graphs(placement)))
    declines = list(_declines(placement))
    if declines:
        console.print(_table(("declined", "nodes", "ran on", "reason", "first at"), declines))
    text = console.file
    assert isinstance(text, io.StringIO), "the console was given a string buffer"
    return "\n".join(map(str.rstrip, text.getvalue().splitlines()))


def _table(columns: Iterable[str], rows: Iterable[tuple[str, ...]]) -> Table:
    table = Table(*columns, box=None, pad_edge=False, header_style="")
    for row in rows:
        table.add_row(*row)
    return table


def _graphs(placement: Placement) -> Iterable[tuple[str, ...]]:
    for graph in placement.graphs:
        parts = ", ".join(f"{p.backend}:{p.nodes}" + (f" ({p.note})" if p.note else "") for p in graph.parts)
        yield f"{graph.name} ({graph.kind})", graph.backend, f"{graph.native}/{graph.total}", parts or "not run yet"


def _declines(placement: Placement) -> Iterable[tuple[str, ...]]:
    for d in placement.declines:
        yield d.op, str(d.count), d.backend, d.reason, str(d.location or "unknown line")
