"""Whether eager has a training step done sooner than what was compiled of it, found out in the step's second call."""

from __future__ import annotations

import logging
import os
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch.utils import _pytree as pytree

from fairlead._capture import no_modes, within_a_backward
from fairlead._messages import cause
from fairlead._original import Original

__all__ = ["Step", "has_been_forked"]

_log = logging.getLogger("fairlead.benchmark")

_PAIRS, _PATIENCE = 9, 1.0
"""The steps of each that are compared at the most, and the seconds after which there are no more."""

_AROUND = 5e-4
"""The seconds that a compiled step takes longer in a program than one right after another: what it is called through,
AOTAutograd's wrapper and autograd's node, is no longer in the caches after an update of the weights.
"""

_parents: list[int] = []
os.register_at_fork(after_in_child=lambda: _parents.append(os.getppid()))
"""The processes that this one was forked from. Threads do not come along, and who lets go of a session there may wait
for its threads to end.
"""


def has_been_forked() -> bool:
    """Whether this is another process than the one that was started: nothing is measured there."""
    return bool(_parents)


class Leaves(Protocol):
    """The program of a graph that eager may take over."""

    def leave(self, mine: float, eager: float) -> None:
        """Say that eager runs the step that this is a graph of, which takes it so many seconds."""


class Step:
    """The graphs of a training step, forward and backward, once their own first calls have found out who runs them.

    Both are called as AOTAutograd has them, which takes time of its own, and together they take another time than one
    by one. So the next forward runs whole steps on its inputs, in turns as compiled and as captured in eager mode, and
    leaves both graphs to eager if that is quicker. A caller sees one call.
    """

    def __init__(self, original: Original) -> None:
        self.original = original
        self._forward: tuple[Leaves, bool] | None = None

    def forward(self, program: Leaves, *, goes: bool) -> None:
        """The forward is known: it ``goes`` to eager, or not."""
        self._forward = program, goes

    def backward(self, program: Leaves, *, goes: bool) -> None:
        """So is the backward. If each went there, both run as they were captured; otherwise the next call compares."""
        known, self._forward = self._forward, None
        if known is None:
            return
        forward, went = known
        if went and goes:
            self.original.take_over()
        else:
            self.original.plan(lambda inputs, compiled: self._compare((forward, program), inputs, compiled))

    def _compare(self, programs: Sequence[Leaves], inputs: Sequence[Any], compiled: Callable[..., Any]) -> bool:
        """Whether this is the time for it, after which it is done."""
        if has_been_forked():
            return True
        if within_a_backward() or not torch.is_grad_enabled():  # a checkpoint's: what it saves has been settled
            return False
        state = torch.get_rng_state()
        try:
            with no_modes():
                mine, eager = self._seconds_of_both(inputs, compiled)
            if mine > eager:
                for program in programs:
                    program.leave(mine, eager)
                self.original.take_over()
        except Exception as error:
            _log.info("a step is not tried in eager mode: %s", cause(error))
        finally:
            torch.set_rng_state(state)
        return True

    def _seconds_of_both(self, inputs: Sequence[Any], compiled: Callable[..., Any]) -> tuple[float, float]:
        """The median seconds of a step, as compiled, with what a program makes of it, and as captured."""
        ways = compiled, self.original.forward
        last: list[Any] = []
        pairs: list[list[float]] = []
        start = time.perf_counter()
        while len(pairs) <= 1 or (len(pairs) <= _PAIRS and time.perf_counter() - start < _PATIENCE):
            pairs.append([self._seconds(way, inputs, last) for way in ways])
        mine, eager = map(statistics.median, zip(*pairs[1:], strict=True))  # the first makes what is made once
        return mine + _AROUND, eager

    def _seconds(self, way: Callable[..., Any], inputs: Sequence[Any], last: list[Any]) -> float:
        """Of one step. ``last`` has its tensors until the next: their gradients last as long as those of weights do.

        Without that much of a step is the system's, which is given all memory back and asked for it again.
        """
        last[:] = self._copied(inputs)
        with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(_same, _same):  # in place of the caller's
            start = time.perf_counter()
            results = _differentiable(way(*last))
            forward = time.perf_counter() - start
            gradients = list(map(torch.ones_like, results))
            start = time.perf_counter()
            torch.autograd.backward(results, gradients)
            return forward + time.perf_counter() - start

    def _copied(self, inputs: Sequence[Any]) -> list[Any]:
        """The inputs, of which those that are written are copies, and whose gradients are nobody else's."""
        anew: dict[int, Any] = {}
        for place, x in enumerate(inputs):
            if isinstance(x, torch.Tensor):
                copy = x.detach().clone() if place in self.original.written else x.detach()
                anew[id(x)] = copy.requires_grad_(x.requires_grad)
        return [anew.get(id(x), x) for x in inputs]


def _differentiable(results: Any) -> list[torch.Tensor]:
    return [x for x in pytree.tree_leaves(results) if isinstance(x, torch.Tensor) and x.requires_grad]


def _same(tensor: torch.Tensor) -> torch.Tensor:
    return tensor
