"""What is seen of a run while it goes on: a bar where there is a terminal, a line now and then where there is none."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from fairlead_conformance._report import Report
from fairlead_conformance._result import Result
from fairlead_conformance._run import is_red, summary
from fairlead_conformance._status import Status

__all__ = ["Display", "table"]

EVERY = 10.0
"""Seconds between lines where there is no terminal."""


class Display:
    """Shows progress on stderr, and each failure when it happens, so that stdout is for results alone.

    ``total`` is None where nobody knows how many cases there will be.
    """

    def __init__(self, backend: str, total: int | None) -> None:
        self._console = Console(stderr=True)
        self._total, self._done, self._failed, self._declined = total, 0, 0, 0
        self._begin = self._shown = time.monotonic()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[counts]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task(backend, total=total, counts="")

    def __enter__(self) -> Display:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def show(self, result: Result) -> None:
        """One more."""
        self._done += 1
        self._declined += result.status is Status.DECLINED
        if is_red(result):
            self._failed += 1
            line = Text.assemble((result.status, "bold red"), f" {result.id}", (f"  {result.detail}", "dim"))
            self._console.print(line, soft_wrap=True, highlight=False)
        counts = f"{self._failed} failed, {self._declined} declined"
        self._bar.update(self._task, advance=1, counts=counts)
        if not self._console.is_terminal and time.monotonic() - self._shown > EVERY:
            self._shown = time.monotonic()
            self._console.print(f"{self._progress()}, {counts}")

    def _progress(self) -> str:
        if self._total is None:
            return f"{self._done} cases"
        left = (self._shown - self._begin) / self._done * (self._total - self._done)
        return f"{self._done} of {self._total} cases, about {left:.0f} s left"


def table(report: Report) -> Table:
    """The counts of each family by what became of its cases, and the report's figures."""
    kinds = {"passed": 0, "declined": 0, "known": 0, "failed": 0, "not run": 0}
    families: dict[str, dict[str, int]] = {}
    for result in report.results:
        counts = families.setdefault(result.id.partition("/")[0], dict(kinds))
        counts[_kind(result.status)] += 1
    shown = Table(title=f"{report.backend.name} at {report.run.level.name}", caption="\n".join(summary(report)))
    shown.caption_justify = "left"
    for column in ("family", *kinds):
        shown.add_column(column, justify="left" if column == "family" else "right")
    for family, counts in families.items():
        shown.add_row(family, *(str(n or "") for n in counts.values()))
    return shown


def _kind(status: Status) -> str:
    match status:
        case Status.DECLINED:
            return "declined"
        case Status.KNOWN_FAIL:
            return "known"
        case Status.NOT_RUN:
            return "not run"
    return "passed" if status.passed else "failed"
