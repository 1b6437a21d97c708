"""``fairlead-conformance coverage``: what backends say of each op in each dtype."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from fairlead.ir import opset
from fairlead.registry import registry
from fairlead_conformance._coverage import Coverage, cases, gather, to_html
from fairlead_conformance._pack import pack
from fairlead_conformance._subject import Subject


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command()(coverage)


def coverage(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAMES]...", help="Backends; all but eager where none is named.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Where to write the page, as HTML.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Ask backends about every op of PyTorch's samples, forward and backward; compile and run nothing.

    For each op and dtype: how many nodes it runs as they are, or taken apart, and why it declines the others.
    """
    subjects = [Subject(name) for name in names or [name for name in registry.names() if name != "eager"]]
    about = f"{_versions(subjects)}; case pack {pack().manifest.version}."
    found = [_gathered(subject) for subject in subjects]
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(to_html(found, about), "utf-8")
    if json:
        typer.echo(msgspec.json.format(msgspec.json.encode(found), indent=2))
        return
    Console().print(_table(found))
    if output is not None:
        typer.echo(str(output))


def _versions(subjects: list[Subject]) -> str:
    for subject in subjects:
        _ = subject.backend  # raises where it is not there, before the first is asked
    return ", ".join(f"{s.name} {registry.wheel(s.name).version}".rstrip() for s in subjects)


def _gathered(subject: Subject) -> Coverage:
    console = Console(stderr=True)
    steps = iter(track(cases(), subject.name, console=console, disable=not console.is_terminal, transient=True))
    return gather(subject, tell=lambda: next(steps, None))


def _table(found: list[Coverage]) -> Table:
    tiers = [tier for tier in (*opset.tiers(), "custom") if any(tier in one.tiers for one in found)]
    table = Table("backend", "samples", *tiers, box=None, header_style="bold", pad_edge=False)
    for one in found:
        cells = [one.tiers.get(tier) for tier in tiers]
        shares = ["" if cell is None else _share(cell.taken, cell.total) for cell in cells]
        table.add_row(one.backend, _share(*one.samples), *shares)
    return table


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%} of {whole:,}"
