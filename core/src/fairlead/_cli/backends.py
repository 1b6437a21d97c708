"""``fairlead backends``: what is installed, from metadata alone."""

from __future__ import annotations

from typing import Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from fairlead._cli.terminal import JsonOption, print_json, remark, show, status_text
from fairlead._registry import BackendInfo, registry


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command()(backends)


def backends(json: Annotated[bool, JsonOption] = False) -> None:
    """List the backends that are installed. Imports none of them; `fairlead doctor` tries them out."""
    found = registry.describe()
    if json:
        print_json(found)
    else:
        show(_table(found), *(remark(info.name, info.reason) for info in found if info.reason))


def _table(found: list[BackendInfo]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for title in ("name", "wheel", "version", "status", "devices", "dtypes"):
        table.add_column(title, no_wrap=title in ("name", "wheel", "version"))
    for info in found:
        capabilities = info.capabilities
        devices = " ".join(capabilities.devices) if capabilities else ""
        dtypes = " ".join(capabilities.dtypes) if capabilities else ""
        table.add_row(Text(info.name, "bold"), info.wheel, info.version, status_text(info.status), devices, dtypes)
    return table
