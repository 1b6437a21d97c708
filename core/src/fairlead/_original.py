"""A graph as Dynamo captured it, which torch runs in eager mode: op for op what the program does uncompiled."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch

__all__ = ["Original"]

Plan: TypeAlias = Callable[[Sequence[Any], Callable[..., Any]], bool]
"""Compares a call with these inputs, as compiled, with this graph; false if another call is to be compared instead."""


class Original:
    """What runs in place of a compiled graph once that is found to be slower; until then, what it is compared with.

    While `is_watched` is true, a call of the graph goes through `call`: its inputs are wanted for a trial, or it is run
    as captured. ``forward`` is that of Dynamo's module; ``written`` are the places of the inputs that it writes, once
    `taking` has been told.
    """

    def __init__(self, forward: Callable[..., Any]) -> None:
        self.forward = forward
        self.written: tuple[int, ...] = ()
        self._given = threading.local()
        self._plan: Plan | None = None
        self.is_watched = False
        self.has_taken_over = False

    def call(self, inputs: Sequence[Any], compiled: Callable[..., Any]) -> Any:
        """Run the graph as captured, or as ``compiled`` does, with the inputs kept meanwhile."""
        plan, self._plan = self._plan, None
        if plan is not None:
            if not plan(inputs, compiled):
                self._plan = plan
            self.leave()
        if self.has_taken_over:
            return self.forward(*inputs)
        self._given.inputs = inputs
        try:
            return compiled(*inputs)
        finally:
            del self._given.inputs

    def plan(self, plan: Plan) -> None:
        """Have the next call compared."""
        self._plan, self.is_watched = plan, True

    def watch(self) -> None:
        """From now on a trial may ask for `taking`."""
        self.is_watched = True

    def leave(self) -> None:
        """No trial will ask any more."""
        self.is_watched = self.has_taken_over or self._plan is not None

    def take_over(self) -> None:
        """Run all calls from the next one on."""
        self.has_taken_over = self.is_watched = True

    def taking(self, args: Sequence[Any], written: Sequence[int]) -> Callable[[Sequence[Any]], Any] | None:
        """The captured graph as a function of what the compiled one is called with in this thread, now ``args``.

        None where that cannot be told, or tensors that it writes, which are at ``written``, are not to be found.
        """
        inputs: Sequence[Any] | None = getattr(self._given, "inputs", None)
        if inputs is None:
            return None
        places = {id(x): place for place, x in enumerate(args) if isinstance(x, torch.Tensor)}
        sources = [places.get(id(x)) for x in inputs]
        if not set(written) <= set(sources):
            return None
        self.written = tuple(place for place, p in enumerate(sources) if p in written)
        others = [x if p is None else None for x, p in zip(inputs, sources, strict=True)]

        def run(given: Sequence[Any]) -> Any:
            return self.forward(*(x if p is None else given[p] for x, p in zip(others, sources, strict=True)))

        return run
