"""``fairlead-conformance diff``: what changed between two runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from fairlead_conformance._cli.reports import ReportArgument, opened
from fairlead_conformance._report import Change, Difference, differences, facts_changed

SHOWN = 50
"""How many cases of a change are listed."""


class Diff(msgspec.Struct, frozen=True):
    """What ``--json`` prints. ``facts``: what the runs differ in, before and after."""

    facts: dict[str, tuple[str, str]]
    differences: list[Difference]


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command(no_args_is_help=True)(diff)


def diff(
    a: Annotated[Path, ReportArgument],
    b: Annotated[Path, ReportArgument],
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what changed from one run to another: broken, lost, fixed, gained, other, new and gone.

    Exit status 1 where a case that passed does not any more.
    """
    before, after = opened(a), opened(b)
    found = Diff(facts_changed(before, after), differences(before, after))
    if json:
        typer.echo(msgspec.json.format(msgspec.json.encode(found), indent=2))
    else:
        _print(found)
    if any(one.change in (Change.broken, Change.lost) for one in found.differences):
        raise typer.Exit(1)


def _print(found: Diff) -> None:
    for name, (old, new) in found.facts.items():
        typer.echo(f"{name}: {old} -> {new}")
    for change in Change:
        members = [one for one in found.differences if one.change is change]
        if members:
            typer.echo(f"\n{change}: {len(members)}")
        for one in members[:SHOWN]:
            typer.echo(f"  {one.id}  {one.before or 'none'} -> {one.after or 'none'}  {one.detail}".rstrip())
        if len(members) > SHOWN:
            typer.echo(f"  and {len(members) - SHOWN} more; see --json")
    if not found.differences:
        typer.echo("no case has another status")
