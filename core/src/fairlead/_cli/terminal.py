"""What the subcommands print with: tables for people, JSON for programs, errors in three lines."""

from __future__ import annotations

import sys

import msgspec
import typer
from rich.console import Console, RenderableType
from rich.text import Text

from fairlead._registry import Status
from fairlead.errors import FairleadError

out = Console()
err = Console(stderr=True)

_STYLES = {Status.ready: "green", Status.unavailable: "yellow", Status.broken: "red", Status.unprobed: "dim"}


def print_json(data: object) -> None:
    """Any struct, list or mapping of them, on stdout, indented and without escape codes."""
    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(data), indent=2) + b"\n")
    sys.stdout.flush()


def print_error(error: FairleadError) -> None:
    """The three lines of an error, on stderr."""
    text = Text.assemble((error.code, "bold red"), ": ", (error.what, "bold"))
    text.append("\n  from: ", "dim").append(error.where)
    text.append("\n  next: ", "dim").append(error.next, "green")
    err.print(text, soft_wrap=True)


def show(*items: RenderableType) -> None:
    """Tables fitted to the terminal; text is not broken, so that it can be copied and searched."""
    for item in items:
        out.print(item, soft_wrap=isinstance(item, Text))


def status_text(status: Status) -> Text:
    """A status in its colour."""
    return Text(status.value, _STYLES[status])


def remark(name: str, reason: str, next: str = "") -> Text:  # noqa: A002 - as in the message of an error
    """Why something in a table above is not as it should be, and what to do."""
    text = Text.assemble((name, "bold"), ": ", reason)
    return text.append("\n  next: ", "dim").append(next, "green") if next else text


JsonOption = typer.Option("--json", help="Print JSON instead of a table.")
