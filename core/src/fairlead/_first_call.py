"""Whether eager runs a graph quicker than the backend that was asked for, found out in the graph's first call."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from fairlead._benchmark import MARGIN, Choice, work_of
from fairlead._messages import cause
from fairlead._precision import devices_of
from fairlead._program import Runnable
from fairlead.interpret import in_clean_thread
from fairlead.ir import Graph, Role
from fairlead.partition import DRAWS
from fairlead.passes import communicates, draws, work

__all__ = ["MeasuredProgram", "is_worth_measuring"]

_log = logging.getLogger("fairlead.benchmark")

_MUCH = 2.0**20
"""A graph with less work than this is done in less time than `_SHORT`."""

_SHORT = 1e-3
"""The seconds of a call below which a backend keeps its graph, whatever eager takes: much of it is the call itself."""

_TURNS = 3
"""So many turns each has at the most."""

_CALLS, _LONG = 4, 0.25
"""The calls of a turn, and the seconds after which it has no further one. The first does not count where there are
others: threads of the other are still about, and the first of all make what a backend has made only once.
"""

_PATIENCE = 0.5
"""The seconds after which there is no further turn; or those that the first call took, which compiles, if more."""

_CLEAR = 1.3
"""Where one is quicker by this factor after two turns, there is no third."""


_parents: list[int] = []
os.register_at_fork(after_in_child=lambda: _parents.append(os.getppid()))
"""The processes that this one was forked from. Threads do not come along, and who lets go of a session there may wait
for its threads to end.
"""


def is_worth_measuring(graph: Graph) -> bool:
    """Whether it may be called several times over, on a CPU alone, and is long enough to be measured, or may be."""
    if _parents or devices_of(graph) != {"cpu"} or any(map(communicates, graph.nodes)):
        return False
    return bool(graph.symbols) or sum(work(node, {}) for node in graph.nodes) >= _MUCH


class MeasuredProgram:
    """A graph as a backend runs it, or as eager does where that is quicker by `MARGIN`.

    The first call is made several times over by both, on its own inputs. What a trial gives is thrown away, it writes
    to copies, and random numbers are drawn anew: a caller sees one call. ``eager`` makes what is called as the program
    is; ``left_to_eager`` is told what was measured, and makes the program that eager runs. A thread that calls
    meanwhile has the backend's results.
    """

    def __init__(
        self,
        graph: Graph,
        asked: str,
        program: Runnable,
        eager: Callable[[], Callable[[list[Any]], Any]],
        left_to_eager: Callable[[Choice], Runnable],
    ) -> None:
        self._graph = graph
        self._asked = asked
        self._program = program
        self._eager = eager
        self._left_to_eager = left_to_eager
        self._draws = any(map(draws, graph.nodes))
        self._written = tuple(o.target for o in graph.outputs if o.role is Role.mutation and o.target is not None)
        self._lock = threading.Lock()
        self._is_settled = False
        self._kept: Runnable | None = None
        """The backend's, after all: OpenVINO crashes in a forked child of a process that has let go of a model."""

    def __call__(self, args: list[Any]) -> list[Any]:
        if not self._is_settled:
            self._settle(args)
        return self._program(args)

    def bound(self, args: Sequence[Any], places: Sequence[int]) -> Callable[[Sequence[Any]], list[Any]]:
        """As `Program.bound`, of the backend that runs the graph now."""
        return self._program.bound(args, places)

    def refresh(self) -> None:
        """Read all weights anew at the next call."""
        self._program.refresh()

    def _settle(self, args: Sequence[Any]) -> None:
        if not self._lock.acquire(blocking=False):
            return
        try:
            if self._is_settled:
                return
            choice = self._measured(args) if self._is_long_enough(args) else None
            if choice is not None and choice.backend != self._asked:
                _log.info("graph %s goes to eager: %s", self._graph.name, choice.reason(self._asked))
                self._kept = self._program
                self._program = in_clean_thread(lambda: self._left_to_eager(choice))
            self._is_settled = True
        finally:
            self._lock.release()

    def _is_long_enough(self, args: Sequence[Any]) -> bool:
        return not self._graph.symbols or work_of(self._graph, args) >= _MUCH

    def _measured(self, args: Sequence[Any]) -> Choice | None:
        state = torch.get_rng_state() if self._draws else None
        try:
            return self._compared(args)
        finally:
            if state is not None:
                torch.set_rng_state(state)

    def _compared(self, args: Sequence[Any]) -> Choice | None:
        """What the least times of both say; None where nothing is to be gained, or eager cannot do it."""
        patience = max(_PATIENCE, self._seconds(self._program, args))
        asked = self._turn(self._program, args)
        if asked < _SHORT:
            return None
        start = time.perf_counter()
        try:
            eager = self._eager()
            self._seconds(eager, args)
            other = self._turn(eager, args)
            for _ in range(_TURNS - 1):
                if time.perf_counter() - start > patience:
                    break
                asked = min(asked, self._turn(self._program, args))
                other = min(other, self._turn(eager, args))
                if max(asked, other) > _CLEAR * min(asked, other):
                    break
        except Exception as error:
            _log.warning("graph %s is not tried in eager mode: %s", self._graph.name, cause(error))
            return None
        times = {self._asked: 1e3 * asked, DRAWS: 1e3 * other}
        return Choice(DRAWS if asked > MARGIN * other else self._asked, times)

    def _turn(self, runs: Callable[[list[Any]], Any], args: Sequence[Any]) -> float:
        """The least seconds of some calls."""
        seconds = [self._seconds(runs, args)]
        while len(seconds) < _CALLS and sum(seconds) < _LONG:
            seconds.append(self._seconds(runs, args))
        return min(seconds[1:] or seconds)

    def _seconds(self, runs: Callable[[list[Any]], Any], args: Sequence[Any]) -> float:
        given = list(args)
        for place in self._written:
            given[place] = given[place].clone()
        with torch.no_grad():
            start = time.perf_counter()
            runs(given)
            return time.perf_counter() - start
