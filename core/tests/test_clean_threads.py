"""Threads that have none of the caller's modes, and what torch keeps of a thread that has ended."""

from __future__ import annotations

import os

import pytest
import torch

from fairlead.interpret import in_clean_thread
from tests import forked


def test_a_clean_thread_has_none_of_the_caller_s_state() -> None:
    with torch.autocast("cpu"), torch.inference_mode():
        found = in_clean_thread(
            lambda: (torch.is_autocast_enabled("cpu"), torch.is_inference_mode_enabled(), torch.is_grad_enabled())
        )
    assert found == (False, False, False)


def test_what_raises_in_a_clean_thread_raises_here() -> None:
    def fail() -> None:
        raise KeyError("sorry")

    with pytest.raises(KeyError, match="sorry"):
        in_clean_thread(fail)


TRACES = """
import threading
from torch._subclasses import FakeTensorMode
import torch
from fairlead.interpret import in_clean_thread

def trace():
    with FakeTensorMode():
        return torch.empty(3).numel()

def traces():
    print(*(in_clean_thread(trace) for _ in range(3)))

def traces_elsewhere():
    caller = threading.Thread(target=traces)
    caller.start()
    caller.join()
"""

CALLERS = {"the main thread": "traces()", "threads that end": "traces_elsewhere()\ntraces_elsewhere()"}


@pytest.mark.parametrize("caller", CALLERS)
def test_one_may_trace_after_another_has_ended(caller: str) -> None:
    run = forked.run(["-c", TRACES + CALLERS[caller]], os.environ)
    assert run.returncode == 0, run.stderr
    assert set(run.stdout.splitlines()) == {"3 3 3"}
