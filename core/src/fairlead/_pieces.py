"""What Dynamo calls: one compiled graph of a program, and which of them a call has run."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from fairlead._capture import Arrangement, InputSource
from fairlead._program import Program


class Piece(NamedTuple):
    """A graph of Dynamo's, as compiled.

    ``function`` takes its inputs, which have ``sources``. ``fit`` is there where ``program`` may be called past
    AOTAutograd, with the inputs in the order that it says.
    """

    function: Callable[..., Any]
    sources: Sequence[InputSource]
    program: Program | None
    fit: Arrangement | None


class Ran(NamedTuple):
    """A piece that has run: the function that Dynamo called, and with what."""

    piece: Piece
    called: Callable[..., Any]
    inputs: tuple[Any, ...]


class _Recording(threading.local):
    runs: list[Ran] | None = None


_recording = _Recording()


def recorded(piece: Piece) -> Callable[..., Any]:
    """The piece's function, which tells `recording` of each run."""
    function = piece.function

    def run(*inputs: Any) -> Any:
        runs = _recording.runs
        if runs is not None:
            runs.append(Ran(piece, run, inputs))
        return function(*inputs)

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
