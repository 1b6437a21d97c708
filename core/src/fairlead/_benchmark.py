"""Which of several backends runs a graph quickest, found out by its first calls."""

from __future__ import annotations

import logging
import statistics
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import torch

from fairlead._messages import cause
from fairlead._precision import devices_of
from fairlead._program import Runnable
from fairlead.ir import Graph, Role
from fairlead.passes import communicates, work

__all__ = ["MARGIN", "BenchmarkedProgram", "Choice", "Trials", "work_of"]

_log = logging.getLogger("fairlead.benchmark")

WARM, ROUNDS = 2, 5
"""So many calls of each backend are not counted, in which it compiles and binds weights, and so many are."""

MARGIN = 1.05
"""Another backend has to be quicker by this factor than the one that was asked for: less is noise."""

_PATIENCE = 10
"""A graph that another is called so often without gives up its turn for a while."""


class Choice(NamedTuple):
    """The backend that runs a graph from now on, and each one's milliseconds; ``of`` what they are."""

    backend: str
    milliseconds: Mapping[str, float]
    of: Literal["a call", "a step"] = "a call"

    def reason(self, asked: str) -> str:
        """Why it is not the one that was asked for."""
        mine, other = self.milliseconds[asked], self.milliseconds[self.backend]
        return f"slower than {self.backend} here: {mine:.3g} ms {self.of} beside {other:.3g}"


class Trials:
    """The graphs of one program are tried out one after another: meanwhile the others run where they always would.

    So what a backward is called with comes from the backend that its forward was left to.
    """

    def __init__(self, is_open: Callable[[], bool]) -> None:
        self._is_open = is_open
        self._waiting: list[BenchmarkedProgram] = []
        self._waited: dict[int, int] = {}

    def join(self, program: BenchmarkedProgram) -> None:
        """Put the program at the end."""
        self._waiting.append(program)

    def leave(self, program: BenchmarkedProgram) -> None:
        """The program is tried out."""
        self._waiting.remove(program)
        self._waited.clear()

    def is_due(self, program: BenchmarkedProgram) -> bool:
        """Whether it is the program's turn, which is being called."""
        if not self._is_open() or not self._waiting:
            return False
        if self._waiting[0] is program:
            self._waited.clear()
            return True
        waited = self._waited[id(program)] = self._waited.get(id(program), 0) + 1
        if waited > _PATIENCE:
            self._waiting.append(self._waiting.pop(0))
            self._waited.clear()
        return False


class BenchmarkedProgram:
    """A graph as each of several backends would run it, until it is known which one does from then on.

    Each call is made once, by one of them, and its result is the caller's. They take turns, and the time of a call is
    divided by the graph's work where sizes vary. ``programs``: by backend, the one that was asked for first.
    ``settled`` is told the choice. Of several threads one tries, and the others call the backend that was asked for.
    """

    def __init__(
        self, graph: Graph, programs: Mapping[str, Runnable], trials: Trials, settled: Callable[[Choice], None]
    ) -> None:
        self._graph = graph
        self._programs = dict(programs)
        self._names = tuple(programs)
        self._trials = trials
        self._settled = settled
        self._devices = sorted(d for d in devices_of(graph) if d.startswith("cuda"))
        self._is_repeatable = not _has_effects(graph)
        self._lock = threading.Lock()
        self._calls = 0
        self._seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in programs}
        """By backend the seconds of each call, and the work that they were for."""
        self._chosen: Runnable | None = None
        trials.join(self)

    def __call__(self, args: list[Any]) -> list[Any]:
        if self._chosen is not None:
            return self._chosen(args)
        if not self._lock.acquire(blocking=False):
            return self._current(args)
        try:
            if self._chosen is not None or not self._trials.is_due(self):
                return self._current(args)
            return self._tried(args)
        finally:
            self._lock.release()

    def bound(self, args: Sequence[Any], places: Sequence[int]) -> Callable[[Sequence[Any]], list[Any]]:
        """As `Program.bound`, of the backend that runs the graph now."""
        return self._current.bound(args, places)

    def refresh(self) -> None:
        """Have every backend read weights anew."""
        for program in self._programs.values():
            program.refresh()

    @property
    def _current(self) -> Runnable:
        return self._chosen or self._programs[self._names[0]]

    def _tried(self, args: list[Any]) -> list[Any]:
        name = self._names[self._calls % len(self._names)]
        amount, given = work_of(self._graph, args), args.copy()
        self._wait()
        start = time.perf_counter()
        try:
            outputs = self._programs[name](args)
        except Exception as error:
            if name == self._names[0] or not self._is_repeatable:
                raise
            self._drop(name, error)
            return self._current(given)
        self._wait()
        if self._calls >= WARM * len(self._names):
            self._seconds[name].append((time.perf_counter() - start, amount))
        self._calls += 1
        if self._calls == (WARM + ROUNDS) * len(self._names):
            self._settle()
        return outputs

    def _drop(self, name: str, error: Exception) -> None:
        """Begin anew without a backend that was not asked for and fails."""
        _log.warning("graph %s: %s is not tried further: %s", self._graph.name, name, cause(error))
        del self._programs[name]
        self._names = tuple(self._programs)
        self._calls = 0
        self._seconds = {each: [] for each in self._names}
        if len(self._names) == 1:
            self._chosen = self._current
            self._trials.leave(self)

    def _settle(self) -> None:
        a_unit = {name: statistics.median(s / amount for s, amount in took) for name, took in self._seconds.items()}
        asked, best = self._names[0], min(self._names, key=a_unit.__getitem__)
        backend = best if a_unit[asked] > MARGIN * a_unit[best] else asked
        usual = statistics.median(amount for took in self._seconds.values() for _, amount in took)
        choice = Choice(backend, {name: 1e3 * usual * seconds for name, seconds in a_unit.items()})
        told = ", ".join(f"{name} {ms:.3g}" for name, ms in choice.milliseconds.items())
        _log.info("graph %s goes to %r; milliseconds a call: %s", self._graph.name, backend, told)
        self._chosen = self._programs[backend]
        self._programs = {backend: self._chosen}  # the others let go of what they hold
        self._trials.leave(self)
        self._settled(choice)

    def _wait(self) -> None:
        for device in self._devices:
            torch.cuda.synchronize(device)


def work_of(graph: Graph, args: Sequence[Any]) -> float:
    """The work of a graph for the sizes that it is called with; 1.0 where they are those that it says."""
    if not graph.symbols:
        return 1.0
    sources = ((s.name, *s.source) for s in graph.symbols)
    sizes = {name: args[i] if axis is None else args[i].shape[axis] for name, i, axis in sources}
    return max(1.0, sum(work(node, sizes) for node in graph.nodes))


def _has_effects(graph: Graph) -> bool:
    """Whether a call that failed may have done something that must not be done again."""
    return any(o.role is Role.mutation for o in graph.outputs) or any(map(communicates, graph.nodes))
