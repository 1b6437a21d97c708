"""Threads that have none of the caller's modes."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

import torch

R = TypeVar("R")


def in_clean_thread(function: Callable[[], R]) -> R:
    """What ``function`` returns or raises, run in a thread of its own, without gradients.

    Compilers are called while a program runs, under whatever the caller has on: autocast, inference mode, a default
    device, dispatch keys that autograd excludes. Torch keeps all of that per thread, so a new thread has none of it.
    Where work is put in order is no mode: the caller's current CUDA device and stream are the new thread's as well.

    >>> in_clean_thread(torch.is_grad_enabled)
    False
    """
    outcome: Future[R] = Future()
    ordered = _in_order()

    def work() -> None:
        try:
            with torch.no_grad(), ordered:
                outcome.set_result(function())
        except BaseException as error:
            outcome.set_exception(error)

    thread = threading.Thread(target=work, name="fairlead-compile", daemon=True)
    thread.start()
    return outcome.result()


def _in_order() -> contextlib.AbstractContextManager[object]:
    """The current CUDA device and its current stream, to be made those of another thread."""
    if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return contextlib.nullcontext()
    stream: contextlib.AbstractContextManager[object] = torch.cuda.stream(torch.cuda.current_stream())
    return stream
