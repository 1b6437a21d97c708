"""A worker: imports the families, and so torch, and the backend once, then runs the cases that it is given, itself.

``python -m fairlead_conformance._run._worker REQUESTS RESULTS``, two descriptors. Whatever the backend prints goes
elsewhere.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

import msgspec

from fairlead.registry import registry
from fairlead_conformance._case import Case
from fairlead_conformance._execute import execute
from fairlead_conformance._families import family
from fairlead_conformance._result import Result
from fairlead_conformance._run._messages import LOST_CHANNEL, Bundle, Done, Loading, Message, Ready, Setup
from fairlead_conformance._status import Status
from fairlead_conformance._subject import Subject

__all__ = ["main", "outcome"]

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def main(requests: int, results: int) -> None:
    """Serve until the session closes ``requests``."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    own = os.getpid()
    with open(requests, "rb", closefd=False) as lines:
        setup = msgspec.json.decode(lines.readline(), type=Setup)
        subject = Subject(setup.backend, seed=setup.seed, device=setup.device)
        for name in setup.families:  # once, before any case is timed
            with contextlib.suppress(Exception):  # each case says so for itself
                family(name)
        _say(results, Loading())
        with contextlib.suppress(Exception):  # each case says so for itself
            prepare(subject, setup.memory)
        _say(results, Ready(_versions(subject)))
        for line in lines:
            cases = msgspec.json.decode(line, type=Bundle).cases
            said = _alone(cases[0], subject) if len(cases) == 1 else _together(cases, subject)
            if os.getpid() != own:  # a process that the backend forked and let return into our code
                os._exit(0)
            if not all(result.status.passed for result in said.results):
                _flush()
            _say(results, said)
            if said.lost:
                return


def _versions(subject: Subject) -> dict[str, str]:
    try:
        _ = subject.backend
        return dict(registry.probe(subject.name).versions)
    except BaseException:  # foreign code; each case says so for itself
        return {}


def _alone(case: Case, subject: Subject) -> Done:
    result, lost = judged(outcome(case, subject), subject)
    return Done((result,), lost)


def _together(cases: Sequence[Case], subject: Subject) -> Done:
    from fairlead_conformance._together import execute_together  # with torch, which families of others may do without

    passed = execute_together(cases, subject)
    return Done((), lost=True) if _lost(subject) else Done(passed)


def outcome(case: Case, subject: Subject) -> Result:
    """The result of one case, even where the backend tries to end the process from Python."""
    try:
        return execute(case, subject)
    except BaseException as error:
        what = type(error).__name__
        return Result(id=case.id, status=Status.FAIL_CRASH, check="survives", detail=f"{what} escaped: {error}")


def prepare(subject: Subject, memory: int) -> None:
    """Bound what torch takes of the device's memory; on the CPU the session watches the whole process."""
    if memory and subject.place != "cpu":
        from fairlead_conformance._device import limit_memory

        limit_memory(subject.place, memory)


def judged(result: Result, subject: Subject) -> tuple[Result, bool]:
    """The result, and whether the case has cost this process the device: it passes for nothing then."""
    why = _lost(subject)
    if not why:
        return result, False
    detail = f"the device is lost to its process: {why}"
    if result.status.failed:
        return msgspec.structs.replace(result, detail=f"{result.detail}; {detail}"), True
    return Result(id=result.id, status=Status.FAIL_CRASH, check="survives", detail=detail), True


def _lost(subject: Subject) -> str:
    """Why this process can use the device no more; empty where it can."""
    if subject.place == "cpu":
        return ""
    from fairlead_conformance._device import lost

    return lost(subject.place)


def _flush() -> None:
    """What was printed so far leaves the buffers, C's as well, so that it is shown with this case."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    ctypes.CDLL(None).fflush(None)


def _say(results: int, message: Message) -> None:
    data = msgspec.json.encode(message) + b"\n"
    try:
        while data:
            data = data[os.write(results, data) :]
    except OSError:
        _give_up()


def _give_up() -> NoReturn:
    os._exit(LOST_CHANNEL)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
