"""``fairlead doctor``: what works on this machine, each backend tried out in a process of its own."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from typing import Annotated

import msgspec
import typer
from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fairlead import _settings
from fairlead._cli.children import ChildError, run_probe
from fairlead._cli.probe import BackendFinding, PluginsFinding
from fairlead._cli.terminal import JsonOption, err, print_json, remark, show, status_text
from fairlead._registry import BackendInfo, Status, registry


class Row(msgspec.Struct, frozen=True):
    """One backend and what its probe found: `BackendFinding`'s fields beside those of the wheel."""

    name: str
    wheel: str
    version: str
    status: Status
    reason: str
    next: str
    devices: tuple[str, ...]
    versions: dict[str, str]


class Diagnosis(msgspec.Struct, frozen=True):
    """Everything that ``fairlead doctor`` shows."""

    system: dict[str, str]
    environment: dict[str, str]
    backends: tuple[Row, ...]
    plugins: PluginsFinding


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command()(doctor)


def doctor(
    name: Annotated[str | None, typer.Argument(help="The one backend to try out.", show_default="all")] = None,
    json: Annotated[bool, JsonOption] = False,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds that each probe may take.")] = 60.0,
) -> None:
    """Try out the installed backends, each in its own process. Exit status 1 where the one named is not ready."""
    found = [info for info in registry.describe() if name in (None, info.name)]
    if not found and name is not None:
        registry.wheel(name)  # raises the error that says what is installed
    with err.status(f"probing {len(found)} backends"):
        diagnosis = _diagnose(found, timeout)
    if json:
        print_json(diagnosis)
    else:
        show(*_tables(diagnosis))
    if name is not None and any(row.status is not Status.ready for row in diagnosis.backends):
        raise typer.Exit(1)


def _diagnose(found: Sequence[BackendInfo], timeout: float) -> Diagnosis:
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        plugins = pool.submit(_plugins, timeout)
        rows = tuple(pool.map(lambda info: _row(info, timeout), found))
    return Diagnosis(_system(), dict(_settings.present()), rows, plugins.result())


def _row(info: BackendInfo, timeout: float) -> Row:
    try:
        finding = run_probe(["backend", info.name], BackendFinding, timeout)
    except ChildError as error:
        finding = BackendFinding(
            status=Status.broken, reason=str(error), next=f"report it to the makers of {info.wheel}"
        )
    return Row(info.name, info.wheel, info.version, **msgspec.structs.asdict(finding))


def _plugins(timeout: float) -> PluginsFinding:
    try:
        return run_probe(["plugins"], PluginsFinding, timeout)
    except ChildError as error:
        return PluginsFinding(problem=f"loading the plugins: {error}")


def _system() -> dict[str, str]:
    return {
        "fairlead": metadata.version("fairlead"),
        "python": platform.python_version(),
        "torch": _version("torch"),
        "platform": platform.platform(),
        "cpus": str(os.cpu_count()),
    }


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not installed"


def _tables(diagnosis: Diagnosis) -> Iterator[RenderableType]:
    yield _pairs("system", diagnosis.system)
    yield _pairs("environment", diagnosis.environment)
    yield _backends(diagnosis.backends)
    yield from (remark(row.name, row.reason, row.next) for row in diagnosis.backends if row.reason)
    if diagnosis.plugins.plugins:
        plugins = {p.name: f"{p.distribution} {p.version}: {p.error or 'ready'}" for p in diagnosis.plugins.plugins}
        yield _pairs("plugins", plugins)
    for title, rows in diagnosis.plugins.sections.items():
        yield _pairs(title, rows)
    if diagnosis.plugins.problem:
        yield Text(diagnosis.plugins.problem, "red")


def _backends(rows: Sequence[Row]) -> Table:
    table = Table("backend", "wheel", "status", box=box.SIMPLE_HEAD)
    table.add_column("devices", overflow="fold")
    table.add_column("versions", overflow="fold")
    for row in rows:
        wheel = Text(f"{row.wheel} {row.version}".rstrip())
        versions = "\n".join(f"{sdk} {version}" for sdk, version in row.versions.items())
        table.add_row(Text(row.name, "bold"), wheel, status_text(row.status), "\n".join(row.devices), versions)
    return table


def _pairs(title: str, rows: dict[str, str]) -> RenderableType:
    if not rows:
        return Text(end="")
    table = Table(title, "", box=box.SIMPLE_HEAD)
    for name, value in rows.items():
        table.add_row(name, Text(value))
    return table
