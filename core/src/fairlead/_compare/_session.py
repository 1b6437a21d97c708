"""One comparison: a process for each row, first calls one after the other, steady state in turns.

Turns are what makes ratios honest on a machine that others use: every row is timed for a moment, then the next one,
round and round, and a ratio is taken within a round. While one worker is timed, the others wait on a pipe.
"""

from __future__ import annotations

import contextlib
import math
import random
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import msgspec

from fairlead._compare._data import Comparison, Kind, Row, Settings, Status, Times
from fairlead._compare._messages import (
    First,
    Load,
    Loaded,
    Measured,
    Refer,
    Referred,
    Subject,
    Timed,
    Turn,
    Verified,
    Verify,
)
from fairlead._compare._process import LostError, Process
from fairlead.errors import ArgumentError, FairleadError, ModelNotFoundError

__all__ = ["Entry", "Note", "compare_model", "entries", "steps"]

REST = 0.05
"""Seconds before each turn, in which the threads of the row before come to rest: some spin for twenty ms."""

Note: TypeAlias = Callable[[str], None]
"""Called before each step of the work with what is about to be done."""


class Entry(msgspec.Struct, frozen=True):
    """A row to be: its name and kind in the report, and what its worker runs; or the reason why it cannot."""

    name: str
    kind: Kind
    subject: Subject
    unready: str = ""


def entries(settings: Settings, unready: Mapping[str, str]) -> tuple[Entry, ...]:
    """Eager first, then the baselines, then the backends; ``unready`` has the reason for each that is not."""
    return (
        Entry("eager", Kind.eager, Subject("eager", "eager")),
        *(Entry(name, Kind.baseline, Subject(name, "torch")) for name in settings.baselines),
        *(Entry(name, Kind.backend, Subject(name, "fairlead"), unready.get(name, "")) for name in settings.backends),
    )


def steps(rows: Sequence[Entry], settings: Settings) -> int:
    """How often `compare_model` calls its ``note`` at most."""
    return len(rows) + settings.turns


def compare_model(spec: str, rows: Sequence[Entry], settings: Settings, note: Note) -> Comparison:
    """Measure and verify every row of one model.

    The first row has to be eager: it is the reference. Raises the `FairleadError` that its worker met, as for a MODEL
    that names nothing; what happens to another row is that row's status and reason.
    """
    with contextlib.ExitStack() as stack:
        folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="fairlead-compare-", ignore_cleanup_errors=True))
        )
        session = _Session(spec, settings, folder, stack, note)
        running = [session.start(entry) for entry in rows if not entry.unready]
        session.take_turns(running)
    measured = {each.entry: _row(each, running[0]) for each in running}
    return Comparison(
        model=spec,
        weights=session.loaded.weights,
        inputs=session.loaded.inputs,
        rows=tuple(measured.get(entry) or _unready(entry) for entry in rows),
    )


@dataclass
class _Running:
    """A row in the making."""

    entry: Entry
    process: Process
    row: Row
    turns: list[tuple[float, ...]] = field(default_factory=list)
    cpu: float = 0.0

    def lost(self, error: LostError) -> None:
        self.row = msgspec.structs.replace(self.row, status=error.status, reason=error.reason)
        self.turns.clear()
        self.process.end()

    @property
    def alive(self) -> bool:
        return self.row.status in (Status.ok, Status.wrong)


class _Session:
    def __init__(self, spec: str, settings: Settings, folder: Path, stack: contextlib.ExitStack, note: Note) -> None:
        self._spec = spec
        self._settings = settings
        self._folder = folder
        self._stack = stack
        self._note = note
        self._cases: tuple[str, ...] = ()
        self.loaded = Loaded(0.0, {})

    def start(self, entry: Entry) -> _Running:
        row = Row(name=entry.name, kind=entry.kind, status=Status.ok)
        self._note(f"{self._spec}: {row.key}")
        settings = self._settings
        process = self._stack.enter_context(Process(self._folder, threads=settings.threads, timeout=settings.timeout))
        running = _Running(entry, process, row)
        try:
            self._measure(running)
        except LostError as error:
            if entry.kind is Kind.eager:
                raise _as_fairlead_error(error, self._spec) from None
            running.lost(error)
        return running

    def _measure(self, running: _Running) -> None:
        settings, process = self._settings, running.process
        request = Load(
            subject=running.entry.subject,
            spec=self._spec,
            folder=str(self._folder),
            training=settings.training,
            dynamic=settings.dynamic,
            fallback=settings.fallback,
            threads=settings.threads,
            share_weights=settings.share_weights,
            dtype=settings.dtype,
        )
        loaded = process.ask(request, Loaded)
        measured = process.ask(First(), Measured)
        running.row = msgspec.structs.replace(running.row, first=measured.first, memory=measured.memory)
        if running.entry.kind is Kind.eager:
            self.loaded = loaded
            self._cases = process.ask(Refer(), Referred).cases
        found = process.ask(Verify(self._cases), Verified)
        running.row = msgspec.structs.replace(
            running.row, status=found.status, reason=found.reason, accuracy=found.accuracy, placement=found.placement
        )

    def take_turns(self, running: Sequence[_Running]) -> None:
        settings = self._settings
        request = Turn(settings.seconds / settings.turns, math.ceil(settings.repeat / settings.turns))
        for turn in range(settings.turns):
            self._note(f"{self._spec}: timing, turn {turn + 1} of {settings.turns}")
            alive = [each for each in running if each.alive]
            # In another order each time, so that no row always follows the same one.
            random.Random(turn).shuffle(alive)
            for each in alive:
                self._time(each, request)

    def _time(self, running: _Running, request: Turn) -> None:
        time.sleep(REST)
        try:
            timed = running.process.ask(request, Timed)
        except LostError as error:
            running.lost(error)
            return
        running.turns.append(timed.seconds)
        running.cpu += timed.cpu


def _row(running: _Running, eager: _Running) -> Row:
    if not running.turns:
        return running.row
    times = Times.of(running.turns, running.cpu)
    speedup = times.speedup_over(Times.of(eager.turns, eager.cpu)) if eager.turns else None
    return msgspec.structs.replace(running.row, times=times, speedup=speedup)


def _unready(entry: Entry) -> Row:
    return Row(name=entry.name, kind=entry.kind, status=Status.not_ready, reason=entry.unready)


def _as_fairlead_error(error: LostError, spec: str) -> FairleadError:
    failure = error.failure
    if failure is None or not failure.code:
        return ArgumentError(
            f"the model {spec!r} could not be run in plain PyTorch: {error.reason}",
            where="the process that loads it",
            next="load it and call it in a Python session of your own first",
        )
    kind = ModelNotFoundError if failure.code == ModelNotFoundError.code else ArgumentError
    return kind(failure.what, where=failure.where, next=failure.next)
