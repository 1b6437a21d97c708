"""Threads that have none of the caller's modes."""

from __future__ import annotations

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

    >>> in_clean_thread(torch.is_grad_enabled)
    False
    """
    outcome: Future[R] = Future()

    def work() -> None:
        try:
            with torch.no_grad():
                outcome.set_result(function())
        except BaseException as error:
            outcome.set_exception(error)

    thread = threading.Thread(target=work, name="fairlead-compile", daemon=True)
    thread.start()
    return outcome.result()
