"""What Dynamo calls: one compiled graph of a program, and which of them a call has run."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from torch import is_grad_enabled

from fairlead._capture import Arrangement, InputSource
from fairlead._capture._dynamo import in_forward_mode
from fairlead._original import Original
from fairlead._program import Runnable


class Piece(NamedTuple):
    """A graph of Dynamo's, as compiled.

    ``function`` takes its inputs, which have ``sources``. ``fit`` is there where ``program`` may be called past
    AOTAutograd, which makes nothing of its results, with the inputs in the order that it says. ``original`` is what may
    take over from it.
    """

    function: Callable[..., Any]
    sources: Sequence[InputSource]
    program: Runnable | None
    fit: Arrangement | None
    original: Original | None = None

    def past_autograd(self) -> Callable[..., Sequence[Any]] | None:
        """The program as a function of the same inputs, to be called without gradients; None where it may not be."""
        program, fit = self.program, self.fit
        if program is None or fit is None:
            return None
        if self.original is not None and self.original.has_taken_over:
            return self.original.forward
        if fit.is_identity:
            return lambda *inputs: program(list(inputs))
        order, outputs = fit.inputs, fit.outputs

        def call(*inputs: Any) -> list[Any]:
            results = program([inputs[i] for i in order])
            return [results[i] for i in outputs]

        return call


class Ran(NamedTuple):
    """A piece that has run: the function that Dynamo called, and with what."""

    piece: Piece
    called: Callable[..., Any]
    inputs: tuple[Any, ...]


class _Recording(threading.local):
    runs: list[Ran] | None = None


_recording = _Recording()


def recorded(piece: Piece, with_tangents: Callable[..., Any]) -> Callable[..., Any]:
    """The piece as one function, which tells `recording` of each run; in forward mode ``with_tangents`` is called."""
    function, original = piece.function, piece.original
    direct = piece.past_autograd() or function

    def run(*inputs: Any) -> Any:
        if in_forward_mode():
            return with_tangents(*inputs)
        runs = _recording.runs
        if runs is not None:
            runs.append(Ran(piece, run, inputs))
        if original is not None and original.is_watched:
            return original.call(inputs, function if is_grad_enabled() else direct)
        if is_grad_enabled():  # AOTAutograd's wrapper knows for how long not to
            return function(*inputs)
        return direct(*inputs)

    return run


@contextlib.contextmanager
def recording() -> Iterator[list[Ran]]:
    """The pieces that run in this thread meanwhile."""
    before, runs = _recording.runs, list[Ran]()
    _recording.runs = runs
    try:
        yield runs
    finally:
        _recording.runs = before
