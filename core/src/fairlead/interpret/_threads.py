"""Threads that have none of the caller's modes."""

from __future__ import annotations

import contextlib
import functools
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
    _keep_guard()

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


@functools.cache
def _keep_guard() -> None:
    """Let torch's stand-in for a CUDA device be of a thread that stays.

    Where torch is built with CUDA and finds no device, the first thread that traces leaves one in its own memory, for
    all threads; once that thread has ended, whoever traces next crashes the process (torch 2.11; not 2.8, not 2.12).
    """
    make = getattr(torch._C, "_ensureCUDADeviceGuardSet", None)
    if make is None or not torch.cuda._is_compiled() or torch.cuda.is_available():
        return
    if threading.current_thread() is threading.main_thread():
        make()
        return
    is_made = threading.Event()

    def stay() -> None:
        try:
            make()
        finally:
            is_made.set()
        threading.Event().wait()

    threading.Thread(target=stay, name="fairlead-cuda-guard", daemon=True).start()
    is_made.wait()
