"""``fairlead compare``: models through every backend, verified against eager and measured."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from fairlead._cli.children import ChildError, run_probe
from fairlead._cli.dtypes import FloatType
from fairlead._cli.probe import BackendFinding
from fairlead._cli.terminal import err, out, show
from fairlead._compare import Report, Settings, compare, entries, require_report, steps, tables, to_html, to_json
from fairlead._models import CATALOG, check_spec
from fairlead._registry import Status, registry
from fairlead.errors import ArgumentError
from fairlead.ir import DType

STDOUT = Path("-")


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command(name="compare", no_args_is_help=True)(compare_models)


def compare_models(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="MODEL...",
            help="Bundled names, module:factory, file.py:factory, or .fir files.",
            show_default=False,
        ),
    ] = None,
    backends: Annotated[str, typer.Option(help="Names, separated by commas.", show_default="all that are ready")] = "",
    baseline: Annotated[
        str,
        typer.Option(
            help="Backends of torch.compile to compare with, or 'none'.", show_default="inductor, with a C++ compiler"
        ),
    ] = "",
    dynamic: Annotated[
        bool, typer.Option("--dynamic", help="Mark the dimensions that may vary, run three sizes.")
    ] = False,
    train: Annotated[bool, typer.Option("--train", help="Forward, loss and backward; gradients are verified.")] = False,
    no_fallback: Annotated[bool, typer.Option("--no-fallback", help="A declined node is a failure.")] = False,
    share_weights: Annotated[
        bool, typer.Option("--share-weights", help="Backends read weights where torch has them, and hold no copy.")
    ] = False,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads of each backend.", show_default="torch's choice")
    ] = None,
    dtype: Annotated[FloatType | None, typer.Option(help="Turn weights and inputs into this type first.")] = None,
    seconds: Annotated[float, typer.Option(min=0.0, help="Time each row for at least so long.")] = 2.0,
    repeat: Annotated[int, typer.Option(min=1, help="Time each row for at least so many calls.")] = 20,
    timeout: Annotated[float, typer.Option(min=1.0, help="Seconds that one step of a row may take.")] = 600.0,
    json: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the result as JSON; '-' is stdout.")] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a self-contained report with plots.")] = None,
    list_models: Annotated[bool, typer.Option("--list", help="List the bundled models.")] = False,
) -> None:
    """Run models through every ready backend, verify the results and measure.

    Each row has a process of its own. Exit status 1 where a row is not verified.
    """
    if list_models:
        show(_catalog())
        return
    settings = Settings(
        backends=_backends(backends),
        baselines=_baselines(baseline),
        training=train,
        dynamic=dynamic,
        fallback=not no_fallback,
        share_weights=share_weights,
        threads=threads,
        dtype=None if dtype is None else DType(dtype.value),
        seconds=seconds,
        repeat=repeat,
        timeout=timeout,
    )
    chosen = _models(models)
    for file in (json, html):
        _check_writable(file)
    if html:
        require_report()
    report = _measure(chosen, settings)
    if json != STDOUT:
        show(*tables(report, out.width))
    if json:
        _write(json, to_json(report))
    if html:
        _write(html, to_html(report).encode())
    if not report.verified or (backends and not report.all_ready):
        raise typer.Exit(1)


def _check_writable(file: Path | None) -> None:
    """Before minutes of measuring, not after."""
    if (
        file is None
        or file == STDOUT
        or (file.parent.is_dir() and os.access(file.parent, os.W_OK) and not file.is_dir())
    ):
        return
    raise ArgumentError(
        f"{file} cannot be written", where="fairlead compare", next="name a file in a folder that exists"
    )


def _write(file: Path, data: bytes) -> None:
    if file == STDOUT:
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
    else:
        file.write_bytes(data)


def _models(given: Sequence[str] | None) -> tuple[str, ...]:
    if not given:
        raise ArgumentError(
            "no model was given",
            where="fairlead compare",
            next="name one; 'fairlead compare --list' lists the bundled ones",
        )
    for spec in given:
        check_spec(spec)
    return tuple(given)


def _backends(given: str) -> tuple[str, ...]:
    names = tuple(name for name in given.split(",") if name) or registry.names()
    for name in names:
        registry.wheel(name)  # raises the error that says what is installed
    return names


def _baselines(given: str) -> tuple[str, ...]:
    if given:
        return tuple(name for name in given.split(",") if name not in ("", "none"))
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    return ("inductor",) if compiler else ()


def _unready(names: Sequence[str]) -> dict[str, str]:
    """The reason of each backend that is not ready, found in processes of their own."""
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        return {name: reason for name, reason in zip(names, pool.map(_reason, names), strict=True) if reason}


def _reason(name: str) -> str:
    try:
        finding = run_probe(["backend", name], BackendFinding, timeout=60.0)
    except ChildError as error:
        return str(error)
    return "" if finding.status is Status.ready else finding.reason or "it gives no reason"


def _measure(models: Sequence[str], settings: Settings) -> Report:
    with err.status(f"probing {len(settings.backends)} backends"):
        unready = _unready(settings.backends)
    rows = entries(settings, unready)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task("starting", total=len(models) * steps(rows, settings), completed=-1)
        return compare(models, rows, settings, lambda text: progress.update(task, description=text, advance=1))


def _catalog() -> Table:
    table = Table("bundled model", "", box=box.SIMPLE_HEAD)
    for name, description in CATALOG.items():
        table.add_row(name, description)
    return table
