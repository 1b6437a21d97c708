"""What the subcommands that read reports share: how a report is given, and how one is checked before it is used."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from fairlead.errors import ArgumentError
from fairlead_conformance._report import Problem, Report, read_report, verify

ReportArgument = typer.Argument(metavar="REPORT", help="A report.json, or the directory it is in.", show_default=False)


def problems_of(path: Path) -> tuple[Report, tuple[Problem, ...]]:
    """A report, and what is wrong with it."""
    report = opened(path)
    return report, verify(_file(path).read_bytes())


def opened(path: Path) -> Report:
    """A report, whoever wrote it, of any version of the suite."""
    return read_report(_file(path))


def verified(path: Path) -> Report:
    """A report that has no problem; raises `fairlead.errors.ArgumentError` for another."""
    report, wrong = problems_of(path)
    if wrong:
        raise untrusted(path, wrong)
    return report


def untrusted(path: Path, wrong: Sequence[Problem]) -> ArgumentError:
    """The error for a report that is not what a run gives."""
    return ArgumentError(
        f"a report that cannot be trusted: {wrong[0].rule}: {wrong[0].what}",
        where=f"{path}, with {len(wrong)} problems",
        next=f"see all of them: fairlead-conformance verify {path}",
    )


def _file(path: Path) -> Path:
    return path / "report.json" if path.is_dir() else path
