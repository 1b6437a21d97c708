"""What is asked of a wheel, here and in a fresh interpreter."""

from __future__ import annotations

import dataclasses
import functools
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import psutil

from fairlead.registry import registry
from fairlead_conformance._case import Level
from fairlead_conformance._observation import Declined, Failed, Observation
from fairlead_conformance._status import Status
from fairlead_conformance._subject import Subject

__all__ = ["Question", "asked", "fresh", "question", "wheel_of"]

_SECONDS = 120


@dataclasses.dataclass(frozen=True)
class Question:
    """One thing that a wheel has to get right; ``body`` raises where it does not."""

    body: Callable[[Subject, Observation], None]
    level: Level
    cost: float

    @property
    def name(self) -> str:
        """The function's name, as ids have it."""
        return self.body.__name__.replace("_", "-")


def question(level: Level, cost: float = 0.05) -> Callable[[Callable[[Subject, Observation], None]], Question]:
    """Make a function of a subject and an observation a question."""
    return lambda body: Question(body, level, cost)


def asked(holds: bool, seen: Observation, status: Status, check: str, detail: str) -> None:
    """Count one comparison, and raise `Failed` unless the claim holds."""
    seen.compared += 1
    if not holds:
        raise Failed(status, check, detail)


def wheel_of(subject: Subject) -> tuple[str, str]:
    """The wheel's name and the module of its entry point; declines for a backend that no wheel provides."""
    wheel = registry.wheel(subject.name)
    if not wheel.version:
        raise Declined({"wheel": "the backend is registered at run time, so that there is no wheel to look at"})
    return wheel.distribution, wheel.entry_point.partition(":")[0]


@functools.cache
def fresh(code: str, *arguments: str) -> Any:
    """What the code prints as JSON in its last line, run by an interpreter of its own.

    Its environment is that with which this process began, before any backend was imported here. The same is run once.
    Raises `Failed` where it ends otherwise, hangs, or says anything besides.
    """
    command = [sys.executable, "-c", code, *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, env=psutil.Process().environ())
    except subprocess.TimeoutExpired as error:
        raise Failed(Status.FAIL_TIMEOUT, "fresh-process", f"no answer within {_SECONDS} s") from error
    if done.returncode < 0:
        raise Failed(Status.FAIL_CRASH, "fresh-process", f"the process died of signal {-done.returncode}")
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise Failed(Status.FAIL_IMPORT, "fresh-process", f"the process failed: {last}")
    *said, answer = done.stdout.strip().splitlines() or [""]
    if said:
        raise Failed(Status.FAIL_STATE, "silent", f"it printed: {said[0]:.100}")
    return json.loads(answer)
