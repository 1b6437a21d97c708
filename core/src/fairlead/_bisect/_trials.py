"""Graphs given to the backend, one after another, in a process that may crash or hang at each."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import torch

from fairlead import ir
from fairlead._bisect._candidate import Candidate, expected
from fairlead._bisect._messages import Attempt, Attempted, Load, Loaded
from fairlead._compare._data import Status
from fairlead._compare._process import LostError, Process
from fairlead.bisection import Failure
from fairlead.errors import BackendNotReadyError

__all__ = ["EndedError", "Outcome", "Trials"]

START = 120.0
"""Seconds within which a process has to have loaded torch and the backend."""


class EndedError(Exception):
    """The time for the whole search is up."""


class Outcome(NamedTuple):
    """What became of a graph: ``failure`` is None where all is right.

    ``like`` tells failures of one kind apart: the type of an exception, the signal of a crash. ``outputs`` are those
    that are wrong.
    """

    failure: Failure | None = None
    detail: str = ""
    like: str = ""
    outputs: tuple[int, ...] = ()

    def same(self, other: Outcome) -> bool:
        """Whether it is the same failure, as far as one can tell."""
        return self.failure is other.failure and self.like == other.like


class Trials:
    """Runs candidates on one backend. Leaving the context ends the process and removes its files.

    ``seconds`` is from now on until the last of them has to be done, ``timeout`` for each. Once the time is up,
    `EndedError` is raised.
    """

    def __init__(self, backend: str, options: Mapping[str, Any], *, seconds: float, timeout: float) -> None:
        self._load = Load(backend, options)
        self._end = time.monotonic() + seconds
        self._timeout = timeout
        self._stack = contextlib.ExitStack()
        self._folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="fairlead-bisect-")))
        self._process: Process | None = self._started()  # which loads torch while the caller does other things
        self._is_loaded = False
        self.count = 0

    def __enter__(self) -> Trials:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        self._stack.close()

    @property
    def left(self) -> float:
        """Seconds until the time is up; raises `EndedError` where it is."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise EndedError
        return left

    def run(self, candidate: Candidate, share: float = 1.0) -> Outcome:
        """What the backend makes of it within this share of the timeout, compared with what it ought to."""
        timeout = share * self._timeout
        patience = min(timeout, self.left)
        meant = expected(candidate)
        results = self._results(candidate, patience)
        if isinstance(results, Outcome) and results.failure is Failure.hang and patience < timeout:
            raise EndedError
        if isinstance(results, Outcome) or meant is None:
            return results if isinstance(results, Outcome) else Outcome()
        outputs, problem = meant.judge(results)
        return Outcome(Failure.wrong, problem, "", outputs) if problem else Outcome()

    def _results(self, candidate: Candidate, patience: float) -> list[torch.Tensor] | Outcome:
        self.count += 1
        graph, inputs, results = (self._folder / name for name in ("graph.fir", "inputs.pt", "results.pt"))
        ir.write(graph, candidate.graph, locations=False)
        torch.save([x.detach() if isinstance(x, torch.Tensor) else x for x in candidate.inputs], inputs)
        process = self._running()
        attempt = Attempt(str(graph), str(inputs), str(results), tuple(sorted(candidate.constants)))
        try:
            process.ask(attempt, Attempted, patience)
        except LostError as error:
            return self._lost(error, patience)
        found: list[torch.Tensor] = torch.load(results, weights_only=True)
        return found

    def _lost(self, error: LostError, patience: float) -> Outcome:
        if error.status is not Status.failed:
            self._stop()
        if error.status is Status.timeout:
            return Outcome(Failure.hang, f"no answer within {patience:g} seconds")
        failure, separator = Failure.error, ":"
        if error.status is Status.crashed:
            failure, separator = Failure.crash, "; it had written"
        return Outcome(failure, error.reason, error.reason.partition(separator)[0])

    def _running(self) -> Process:
        process = self._process or self._started()
        if not self._is_loaded:
            try:
                process.ask(self._load, Loaded)
            except LostError as error:
                raise _not_loaded(self._load.backend, error) from None
        self._process, self._is_loaded = process, True
        return process

    def _started(self) -> Process:
        process = Process(self._folder, threads=None, timeout=START, worker="fairlead._bisect._worker")
        return self._stack.enter_context(process)

    def _stop(self) -> None:
        if self._process is not None:
            self._process.end()
        self._process, self._is_loaded = None, False


def _not_loaded(backend: str, error: LostError) -> BackendNotReadyError:
    return BackendNotReadyError(
        f"backend {backend!r} does not load in a process of its own: {error.reason}",
        where="the process that bisect runs it in",
        next=f"run: fairlead doctor {backend}; one that was registered at run time has to be a wheel",
    )
