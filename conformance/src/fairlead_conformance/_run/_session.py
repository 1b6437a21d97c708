"""One run against one backend, from the choice of its cases to the report; both front ends are made of it."""

from __future__ import annotations

import datetime
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from fairlead.registry import registry
from fairlead_conformance._case import Case, Level
from fairlead_conformance._device_names import kind_of
from fairlead_conformance._families import OTHER_FAMILIES, manifest
from fairlead_conformance._report import Report, Run, report_of, write_report
from fairlead_conformance._report import Shard as ReportShard
from fairlead_conformance._result import Result
from fairlead_conformance._run._accelerator import require
from fairlead_conformance._run._facts import facts, judged, machine
from fairlead_conformance._run._here import Here
from fairlead_conformance._run._known import KnownFailures, file_of, read_known
from fairlead_conformance._run._log import Log
from fairlead_conformance._run._messages import Ready
from fairlead_conformance._run._pool import Pool
from fairlead_conformance._run._select import select
from fairlead_conformance._run._settings import Isolation, Settings
from fairlead_conformance._run._summary import is_red
from fairlead_conformance._status import Status

__all__ = ["Session", "pool_of"]


class Session:
    """A run: its cases, the results so far, and the report. Leaving the context closes its log.

    ``folder`` is where everything goes; without one nothing is written. ``resume`` takes over what is there. Raises
    `fairlead.errors.ArgumentError` for what cannot be run, such as a file of known failures that is not valid, and
    `fairlead.errors.BackendNotFoundError` for a backend that is not there.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        folder: Path | None = None,
        resume: bool = False,
        known: Path | None = None,
        command: Sequence[str] = (),
    ) -> None:
        registry.wheel(settings.backend)  # before thousands of cases say one by one that there is none
        require(settings.device, settings.backend)
        self.settings = settings
        self.folder = folder
        self.started = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
        self._begin = time.monotonic()
        self._command = tuple(command)
        self.cases = manifest(settings.level)
        self.selected = select(settings)
        listed = [e for e in read_known(known or file_of(settings.backend)) if e.device == kind_of(settings.device)]
        self.known = KnownFailures(listed, manifest(Level.L4), settings.level, self.started.date())
        self.facts = facts(settings)
        self.ready = Ready()
        self._log = Log(folder, self.facts, resume=resume) if folder else None
        self.drawn = 0
        self.beyond: list[Result] = []
        self.results: dict[str, Result] = {}
        for result in self._log.results.values() if self._log else ():
            self.results[result.id] = self.known.judge(result)

    @property
    def open(self) -> tuple[Case, ...]:
        """The cases that are still to be run."""
        return tuple(case for case in self.selected if case.id not in self.results)

    def note(self, result: Result) -> Result:
        """Keep a result; it comes back as the known failures make it."""
        if self._log and result.status is not Status.NOT_RUN:
            self._log.append(result)
        judged = self.results[result.id] = self.known.judge(result)
        return judged

    def draw(self, result: Result) -> None:
        """Count a result of a case that is of no level, and keep it where something is wrong."""
        self.drawn += 1
        if is_red(result) and result.status is not Status.NOT_RUN:
            self.beyond.append(result)

    @property
    def faults(self) -> tuple[str, ...]:
        """What is wrong beside single results."""
        return (*self.known.faults, *self.known.stale(self.results))

    @property
    def red(self) -> bool:
        """Whether anything is wrong with the backend, with the run, or with the suite."""
        return any(map(is_red, self.results.values())) or bool(self.faults) or bool(self.beyond)

    def report(self, incomplete: Iterable[str] = ()) -> Report:
        """The report so far; ``incomplete`` are the caller's reasons why it is not all."""
        settings = self.settings
        narrowed = {"families": settings.families, "-k": settings.expression, "ids": settings.ids}
        reasons = [f"not all cases were selected: {name} {value}" for name, value in narrowed.items() if value]
        if settings.bundle > 1:
            reasons.append(f"cases were judged in bundles of up to {settings.bundle}, not each by itself")
        if os.environ.get(OTHER_FAMILIES):
            reasons.append(f"the families are not the suite's own: {OTHER_FAMILIES}")
        report = report_of(
            self.cases,
            list(self.results.values()),
            backend=judged(settings.backend, self.ready.versions),
            machine=machine(settings.device),
            run=Run(
                level=settings.level,
                seed=settings.seed,
                device=settings.device,
                command=self._command,
                started=self.started,
                seconds=round(time.monotonic() - self._begin, 3),
                shards=(ReportShard(index=settings.shard.index, of=settings.shard.count),),
                incomplete=(*reasons, *incomplete, *self.faults),
            ),
            known=self.known.entries,
            beyond=self.beyond,
        )
        if self.folder:
            write_report(report, self.folder)
        return report

    def close(self) -> None:
        """Everything that was noted is on the disk."""
        if self._log:
            self._log.close()


def pool_of(settings: Settings) -> Pool | Here:
    """Where the cases run."""
    return Here(settings) if settings.isolate is Isolation.none else Pool(settings)
