"""From captured graphs to what AOTAutograd calls in their place."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import torch

from fairlead._capture import Arrangement, Captured
from fairlead._compile import Session
from fairlead._original import Original
from fairlead._program import Runnable
from fairlead._second_call import Step
from fairlead.errors import FairleadError
from fairlead.ir import Kind

__all__ = ["SessionSink", "raising"]

_log = logging.getLogger("fairlead.torch")


class SessionSink:
    """Has a session build what is captured of one graph of Dynamo's; keeps the last program, and how calls fit it.

    ``original`` is that graph, where eager may be given it as it is.
    """

    def __init__(self, session: Session, original: Original | None = None) -> None:
        self._session = session
        self._step = None if original is None else Step(original)
        self.program: Runnable | None = None
        self.fit: Arrangement | None = None

    def graph(self, captured: Captured) -> Callable[[list[Any]], Any]:
        try:
            program = self._session.build(captured, self._step)
            self.program, self.fit = program, captured.fit
            return _boxed(program)
        except FairleadError as error:
            return raising(error)

    def uncapturable(self, gm: torch.fx.GraphModule, kind: Kind, reason: str) -> Callable[[list[Any]], Any]:
        ops = [str(n.target) for n in gm.graph.nodes if n.op == "call_function"]
        try:
            self._session.ran_in_torch(str(kind), kind, ops, reason)
        except FairleadError as error:
            return raising(error)
        _log.warning("the %s graph of %d nodes is left to torch: it has %s", kind, len(ops), reason)
        return _boxed(lambda args: gm.forward(*_taken(args)))


def _boxed(call: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    """A plain function that AOTAutograd passes a list which the callee empties; it knows that by this attribute."""

    def boxed(args: list[Any]) -> Any:
        return call(args)

    boxed._boxed_call = True  # type: ignore[attr-defined]
    return boxed


def raising(error: FairleadError) -> Callable[[list[Any]], Any]:
    """Stands where a program should be, and says at the call why it is not."""

    def fail(args: list[Any]) -> Any:
        raise error

    return _boxed(fail)


def _taken(args: list[Any]) -> list[Any]:
    given = list(args)
    args.clear()
    return given
