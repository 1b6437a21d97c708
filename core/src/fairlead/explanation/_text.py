"""An explanation as text."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from fairlead.explanation import Break, CompileTimes, Explanation, Frame

__all__ = ["headline", "render", "renderables", "table_of_times"]

OPS = 4
"""So many ops of a graph are named, the most frequent."""


def render(explanation: Explanation, width: int = 120) -> str:
    """All of it as plain text of at most ``width`` columns."""
    return _plain(Group(*renderables(explanation)), width)


def table_of_times(times: CompileTimes, width: int = 120) -> str:
    """The stages, as plain text."""
    return _plain(_times(times.stages, sum(times.stages.values())), width)


def _plain(item: RenderableType, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(item)
    text = console.file
    assert isinstance(text, io.StringIO), "the console was given a string buffer"
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def headline(explanation: Explanation) -> str:
    """The findings in one line.

    >>> from fairlead.placement import Placement
    >>> headline(Explanation("model", "eager", (), Placement(()), (), 0.5))
    'model on eager: 0 graphs, 0 ops, 0 graph breaks; 100 % of the nodes native; 0.50 s'
    """
    again = len(explanation.recompilations)
    counts = [
        _count(len(explanation.graphs), "graph"),
        _count(explanation.ops, "op"),
        _count(len(explanation.breaks), "graph break"),
        *([_count(again, "recompilation")] if again else ()),
    ]
    share = f"{100 * explanation.placement.native_share:.4g} % of the nodes native"
    return f"{explanation.subject} on {explanation.backend}: {', '.join(counts)}; {share}; {explanation.seconds:.2f} s"


def renderables(explanation: Explanation) -> Iterator[RenderableType]:
    """What to print, from top to bottom."""
    yield Text(headline(explanation), "bold")
    yield _graphs(explanation)
    for number, each in enumerate(explanation.breaks, 1):
        yield _break(number, each)
    for frame in explanation.recompilations:
        yield Text.assemble(("compiled again ", "yellow"), f"{frame.line}: ", frame.recompiled)
    yield Text("\nWhere the nodes ran", "bold")
    yield Text(str(explanation.placement))
    yield Text("\nTime to the first result", "bold")
    yield _times(explanation.times, explanation.seconds)
    yield Text("\nGuards: " + (", ".join(f"{n} {kind}" for kind, n in explanation.guards.items()) or "none"))


def _graphs(explanation: Explanation) -> Table:
    table = Table("frame", box=None, header_style="dim")
    table.add_column("function", overflow="fold")
    for name in ("ops", "most frequent", "guards", "seconds"):
        table.add_column(name)
    for frame in explanation.frames:
        ops = sum(frame.ops.values())
        cells = (str(ops), _frequent(frame)) if ops else ("-", frame.failed or "no graph")
        table.add_row(frame.id, str(frame.line), *cells, str(len(frame.guards)), f"{frame.seconds:.2f}")
    return table


def _frequent(frame: Frame) -> str:
    named = [f"{op.rpartition('.')[2] or op} x{count}" for op, count in list(frame.ops.items())[:OPS]]
    return ", ".join(named) + (", ..." if len(frame.ops) > OPS else "")


def _break(number: int, each: Break) -> RenderableType:
    table = Table.grid(padding=(0, 1))
    table.add_column(style="dim")
    for line in each.stack:
        table.add_row("  at", Text(str(line) + (f": {line.text}" if line.text else ""), overflow="fold"))
    if each.explanation:
        table.add_row("  why", Text(each.explanation))
    for hint in each.hints:
        table.add_row("  hint", Text(hint, "green"))
    return Group(Text.assemble((f"\nGraph break {number}: ", "bold yellow"), each.reason), table)


def _times(times: Mapping[str, float], whole: float) -> Table:
    table = Table("stage", "seconds", "share", box=None, header_style="dim")
    for stage, seconds in times.items():
        share = seconds / whole if whole else 0.0
        table.add_row(stage, f"{seconds:.3f}", f"{100 * share:.0f} %")
    return table


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
