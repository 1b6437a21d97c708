"""Runs cases in worker processes, so that whatever a backend does to its process costs one case.

There is no thread: whoever wants a result moves the pool on until it is there.
"""

from __future__ import annotations

import itertools
import math
import os
import selectors
import shutil
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import msgspec

from fairlead.errors import ToolError
from fairlead_conformance._case import Case
from fairlead_conformance._result import Result
from fairlead_conformance._run._messages import Done, Loading, Message, Ready, Setup
from fairlead_conformance._run._process import Phase, Process
from fairlead_conformance._run._settings import Isolation, Settings, cores
from fairlead_conformance._status import Status

__all__ = ["Pool"]

TICK = 0.05
"""Seconds between looks at the clock and at memory."""

START = 300.0
"""Seconds that Python, torch and the families may take to start; no backend's code runs before."""

LOADS = 2
"""So many workers in a row that end while they import the backend, and no more are started."""

WARM_UP = 3.0
"""So many times its timeout any case may take in the beginning: the caches of the backend's compilers are empty."""

LEAVE = 2.0
"""Seconds that a worker may take to end by itself."""


class _Loss(NamedTuple):
    """Why a worker cannot go on; ``is_shared`` where the cases before the last may have a share in it."""

    status: Status
    why: str
    is_shared: bool = False


class Pool:
    """Workers for one subject. Leaving the context ends them, and removes their temporary files.

    They share one folder for these, as all processes of a user do: what a compiler keeps there, such as its own
    headers, is made once, and is there for the workers that replace others.

    Where the settings say so, several cases of one family are first tried as one graph. Those that do not pass then,
    for whatever reason, are run by themselves. So is a case in which a process outgrows its memory that had others
    before, in a process that had none: compilers keep what they have made.

    `submit` cases; then iterate over `results` or ask for one by its id. Every case that was submitted gets one.
    ``ready`` is what the last worker said of the backend.
    """

    def __init__(self, settings: Settings) -> None:
        self.ready = Ready()
        self._settings = settings
        self._folder = Path(tempfile.mkdtemp(prefix="fairlead-conformance-"))
        self._selector = selectors.DefaultSelector()
        self._processes: list[Process] = []
        self._waiting: deque[Case] = deque()
        self._alone: deque[Case] = deque()
        self._first: deque[Case] = deque()
        self._results: dict[str, Result] = {}
        self._failed_loads = self._losses = 0
        self._cold_until: float | None = None

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def submit(self, cases: Iterable[Case]) -> None:
        """More cases to run, after those that wait."""
        self._waiting.extend(cases)

    def results(self) -> Iterator[Result]:
        """The results as they come, until no case is left."""
        while self._results or self._open:
            while not self._results:
                self._move()
            yield self._results.pop(next(iter(self._results)))

    def result(self, case_id: str) -> Result:
        """The result of a case that was submitted."""
        while case_id not in self._results:
            self._move()
        return self._results.pop(case_id)

    def close(self) -> None:
        """End all workers. What was not run has no result."""
        for process in self._processes:
            if process.phase is Phase.idle:
                process.retire()
        for process in self._processes:
            process.kill(after=LEAVE if process.phase is Phase.ending else 0)
        self._processes.clear()
        self._selector.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _open(self) -> int:
        """How many cases wait, and workers have some: more workers than that have nothing to do."""
        busy = sum(process.phase is Phase.busy for process in self._processes)
        return len(self._waiting) + len(self._alone) + len(self._first) + busy

    def _move(self) -> None:
        """Start what is missing, give out cases, and wait for news, no longer than a tick."""
        self._start()
        for key, _ in self._selector.select(TICK):
            key.data.read(key.fd)
        for key in list(self._selector.get_map().values()):
            if key.fd not in key.data.descriptors:
                self._selector.unregister(key.fd)
        for process in list(self._processes):
            for message in process.messages:
                self._note(process, message)
            process.messages.clear()
            if loss := self._loss(process):
                self._remove(process)
                self._charge(process, loss)

    def _start(self) -> None:
        """As many workers as there is work for, and a case for each that has none."""
        present = sum(process.phase is not Phase.ending for process in self._processes)
        for _ in range(min(self._settings.processes, self._open) - present):
            process = Process(self._setup(), self._folder, self._environment())
            self._processes.append(process)
            for descriptor in process.descriptors:
                self._selector.register(descriptor, selectors.EVENT_READ, process)
        for process in self._processes:
            if process.phase is not Phase.idle:
                continue
            if bundle := self._next(process):
                process.give(bundle)
                self._cold_until = self._cold_until or process.since + WARM_UP * self._settings.timeout
            elif self._first:  # for a process that has run nothing, which is to take the place of this one
                process.retire()

    def _next(self, process: Process) -> tuple[Case, ...]:
        """The cases for the process to run next: one, or several of a family; none where none is left for it."""
        if self._first and not process.cases:
            return (self._first.popleft(),)
        if self._alone:
            return (self._alone.popleft(),)
        bundle = list(itertools.islice(self._waiting, self._settings.bundle))
        own = tuple(itertools.takewhile(lambda case: case.family == bundle[0].family, bundle))
        for _ in own:
            self._waiting.popleft()
        return own

    def _setup(self) -> Setup:
        settings = self._settings
        waiting = [*self._first, *self._alone, *self._waiting]
        cases = waiting[:1] if settings.isolate is Isolation.case else waiting
        families = dict.fromkeys(case.family for case in cases)
        return Setup(settings.backend, settings.seed, settings.device, settings.memory, tuple(families))

    def _environment(self) -> dict[str, str]:
        threads = self._settings.threads or max(cores() // self._settings.processes, 1)
        return {"OMP_NUM_THREADS": str(threads), "HF_HUB_OFFLINE": "1", **os.environ, "PYTHONFAULTHANDLER": "1"}

    def _note(self, process: Process, message: Message) -> None:
        match message:
            case Loading():
                process.phase, process.since = Phase.loading, time.monotonic()
            case Ready():
                process.phase, self._failed_loads = Phase.idle, 0
                self.ready = message
            case Done(results, lost) if _answers(results, process.bundle):
                self._losses = 0
                for result in results:
                    passed = result.status.passed
                    self._settle(result if passed else msgspec.structs.replace(result, output=process.output))
                known = {result.id for result in results}
                self._alone.extend(case for case in process.bundle if case.id not in known)
                process.phase, process.bundle = Phase.idle, ()
                if lost or self._settings.isolate is Isolation.case:
                    process.retire()
            case Done():
                process.end = process.end or "it answered what it was not asked"

    def _loss(self, process: Process) -> _Loss | None:
        """Why the worker cannot go on, if so."""
        late = time.monotonic() - process.since
        if process.end:
            return _Loss(Status.FAIL_CRASH, process.end + process.place)
        if late > (limit := self._limit(process)):
            return _Loss(Status.FAIL_TIMEOUT, f"took longer than {round(limit, 1):g} seconds")
        if (held := process.memory()) > self._settings.memory:
            why = f"memory: its process grew to {held / 2**30:.1f} GiB"
            return _Loss(Status.FAIL_CRASH, why, is_shared=process.cases > 1)
        return None

    def _limit(self, process: Process) -> float:
        """Seconds that the worker may take for what it is doing."""
        timeout = self._settings.timeout
        match process.phase:
            case Phase.starting:
                return START
            case Phase.loading:
                return timeout
            case Phase.idle:
                return math.inf
            case Phase.busy:
                assert self._cold_until is not None
                cost = sum(case.cost for case in process.bundle)
                return max(timeout * max(cost, 1.0), self._cold_until - process.since)
            case Phase.ending:
                return LEAVE

    def _remove(self, process: Process) -> None:
        for descriptor in process.descriptors:
            self._selector.unregister(descriptor)
        self._processes.remove(process)
        process.kill()

    def _charge(self, process: Process, loss: _Loss) -> None:
        """What follows from the loss of a worker: for its case, or for all cases where it is no single one's doing."""
        status, why, is_shared = loss
        if process.phase is Phase.starting:
            raise ToolError(
                f"a worker does not start: {why}",
                where=process.output or sys.executable,
                next=f"run: {sys.executable} -c 'import torch, fairlead_conformance'",
            )
        if process.phase is Phase.loading:
            self._failed_loads += 1
            if self._failed_loads == LOADS:
                self._abandon(Status.FAIL_IMPORT, "loads", f"importing it: {why}", process.output)
            return
        if len(process.bundle) > 1:  # nobody knows whose doing it is
            self._alone.extend(process.bundle)
        elif is_shared:
            self._first.extend(process.bundle)
        elif process.bundle:
            (case,) = process.bundle
            before = f", after {process.cases - 1} other cases in it" if process.cases > 1 else ""
            self._settle(
                Result(
                    id=case.id,
                    status=status,
                    check="survives",
                    detail=why + (before if status is Status.FAIL_CRASH else ""),
                    output=process.output,
                    seconds=time.monotonic() - process.since,
                )
            )
            self._losses += 1
            if self._losses == self._settings.losses:
                self._abandon(Status.NOT_RUN, "", f"{self._losses} cases in a row ended their process")

    def _settle(self, result: Result) -> None:
        self._results[result.id] = result

    def _abandon(self, status: Status, check: str, detail: str, output: str = "") -> None:
        for case in (*self._first, *self._alone, *self._waiting):
            self._settle(Result(id=case.id, status=status, check=check, detail=detail, output=output))
        self._first.clear()
        self._alone.clear()
        self._waiting.clear()


def _answers(results: Sequence[Result], bundle: Sequence[Case]) -> bool:
    """Whether a worker that was given these cases may say so."""
    known, asked = {result.id for result in results}, {case.id for case in bundle}
    return known == asked if len(asked) == 1 else bool(asked) and known <= asked
