"""Whether eager runs a graph quicker than the backend that was asked for, found out in the graph's first call."""

from __future__ import annotations

import logging
import statistics
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import torch

from fairlead._benchmark import MARGIN, Choice, work_of
from fairlead._capture import no_modes
from fairlead._messages import cause
from fairlead._precision import devices_of
from fairlead._program import Runnable
from fairlead._second_call import Step, has_been_forked
from fairlead.interpret import in_clean_thread
from fairlead.ir import Graph, Kind, Role
from fairlead.partition import DRAWS
from fairlead.passes import communicates, work

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

Times: TypeAlias = Mapping[str, float]
"""The seconds of a call in the best turn, of the backend that was asked for and of eager."""


def is_worth_measuring(graph: Graph) -> bool:
    """Whether it may be called several times over, on a CPU alone, and is long enough to be measured, or may be."""
    if has_been_forked() or devices_of(graph) != {"cpu"} or any(map(communicates, graph.nodes)):
        return False
    return bool(graph.symbols) or sum(work(node, {}) for node in graph.nodes) >= _MUCH


class MeasuredProgram:
    """A graph as a backend runs it, or as eager does where that is quicker by `MARGIN`.

    The first call is made several times over by both, on its own inputs. What a trial gives is thrown away, it writes
    to copies, and random numbers are drawn anew: a caller sees one call. ``eager`` makes what is called as the program
    is; ``left_to_eager`` is told what was measured, and makes the program that eager runs. ``step``: the graph that
    Dynamo captured, which is what eager is taken to run where it can be told how, and which takes over from then on. A
    thread that calls meanwhile has the backend's results. Modes see no trial.
    """

    def __init__(
        self,
        graph: Graph,
        asked: str,
        program: Runnable,
        eager: Callable[[], Callable[[list[Any]], Any]],
        left_to_eager: Callable[[Choice], Runnable],
        step: Step | None = None,
    ) -> None:
        self._graph = graph
        self._asked = asked
        self._program = program
        self._eager = eager
        self._left_to_eager = left_to_eager
        self._step = step
        self._written = tuple(o.target for o in graph.outputs if o.role is Role.mutation and o.target is not None)
        self._lock = threading.Lock()
        self._is_settled = False
        self._results: Any = None
        """Of the last trial, which last as long as those of a call do: memory that is free at once is there at once."""
        if step is not None and graph.kind is not Kind.backward:
            step.original.watch()

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

    def leave(self, mine: float, eager: float) -> None:
        """Say that eager runs the step that this is a graph of, which takes it so many seconds."""
        self._program = self._told(Choice(DRAWS, {self._asked: 1e3 * mine, DRAWS: 1e3 * eager}, "a step"))

    def _told(self, choice: Choice) -> Runnable:
        _log.info("graph %s goes to eager: %s", self._graph.name, choice.reason(self._asked))
        return in_clean_thread(lambda: self._left_to_eager(choice))

    def _settle(self, args: Sequence[Any]) -> None:
        if not self._lock.acquire(blocking=False):
            return
        try:
            if self._is_settled:
                return
            if self._is_long_enough(args):
                self._measure(args)
            if self._step is not None and self._graph.kind is not Kind.backward:
                self._step.original.leave()
            self._is_settled = True
        finally:
            self._lock.release()

    def _is_long_enough(self, args: Sequence[Any]) -> bool:
        return not self._graph.symbols or work_of(self._graph, args) >= _MUCH

    def _measure(self, args: Sequence[Any]) -> None:
        state = torch.get_rng_state()
        try:
            with no_modes():
                self._choose(args)
        finally:
            self._results = None
            torch.set_rng_state(state)

    def _choose(self, args: Sequence[Any]) -> None:
        step, kind = self._step, self._graph.kind
        captured = None if step is None else step.original.taking(args, self._written)
        times = self._compared(args, captured if kind is Kind.inference else None)
        if times is None:
            return
        mine, eager = times[self._asked], times[DRAWS]
        goes = mine > MARGIN * eager
        if goes:
            self._program = self._told(Choice(DRAWS, {name: 1e3 * seconds for name, seconds in times.items()}))
        if step is None:
            return
        if kind is Kind.backward:
            step.backward(self, goes=goes)
        elif captured is not None and kind is Kind.forward:
            step.forward(self, goes=goes)
        elif captured is not None and goes:
            step.original.take_over()

    def _compared(self, args: Sequence[Any], captured: Callable[[list[Any]], Any] | None) -> Times | None:
        """What both take; None where nothing is to be gained, or eager cannot do it."""
        patience = max(_PATIENCE, self._seconds(self._program, args))
        asked = self._turn(lambda: self._seconds(self._program, args))
        if asked < _SHORT:
            return None
        start = time.perf_counter()
        try:
            eager = captured or self._eager()
            self._seconds(eager, args)
            other = self._turn(lambda: self._seconds(eager, args))
            if self._graph.kind is not Kind.inference:
                asked = self._turn(lambda: self._seconds_after(eager, args))
            for _ in range(_TURNS - 1):
                if time.perf_counter() - start > patience:
                    break
                asked = min(asked, self._turn(lambda: self._seconds_after(eager, args)))
                other = min(other, self._turn(lambda: self._seconds(eager, args)))
                if max(asked, other) > _CLEAR * min(asked, other):
                    break
        except Exception as error:
            _log.warning("graph %s is not tried in eager mode: %s", self._graph.name, cause(error))
            return None
        return {self._asked: asked, DRAWS: other}

    def _seconds_after(self, eager: Callable[[list[Any]], Any], args: Sequence[Any]) -> float:
        """Of the program, in training with torch's threads still about, as those of a loss and of an update are."""
        if self._graph.kind is not Kind.inference:
            self._seconds(eager, args)
        return self._seconds(self._program, args)

    def _turn(self, seconds_of_a_call: Callable[[], float]) -> float:
        """The median seconds of some calls: what takes a backend longer now and then does so in other calls too."""
        seconds = [seconds_of_a_call()]
        while len(seconds) < _CALLS and sum(seconds) < _LONG:
            seconds.append(seconds_of_a_call())
        return statistics.median(seconds[1:] or seconds)

    def _seconds(self, runs: Callable[[list[Any]], Any], args: Sequence[Any]) -> float:
        given = self._copied(args)
        self._results = None
        with torch.no_grad():
            start = time.perf_counter()
            self._results = runs(given)
            return time.perf_counter() - start

    def _copied(self, args: Sequence[Any]) -> list[Any]:
        given = list(args)
        for place in self._written:
            given[place] = given[place].clone()
        return given
