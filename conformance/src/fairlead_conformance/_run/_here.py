"""Runs cases in this process: for a debugger, and for backends that are trusted."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from types import TracebackType

from fairlead_conformance._case import Case
from fairlead_conformance._execute import execute
from fairlead_conformance._result import Result
from fairlead_conformance._run._messages import Ready
from fairlead_conformance._run._settings import Settings
from fairlead_conformance._status import Status
from fairlead_conformance._subject import Subject

__all__ = ["Here"]


class Here:
    """What `Pool` is, without processes. A crash or a hang is the caller's; so is Ctrl-C."""

    def __init__(self, settings: Settings) -> None:
        self.ready = Ready()
        self._subject = Subject(settings.backend, seed=settings.seed, device=settings.device)
        self._waiting: deque[Case] = deque()

    def __enter__(self) -> Here:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def submit(self, cases: Iterable[Case]) -> None:
        self._waiting.extend(cases)

    def results(self) -> Iterator[Result]:
        while self._waiting:
            yield self._run(self._waiting.popleft())

    def result(self, case_id: str) -> Result:
        case = next(case for case in self._waiting if case.id == case_id)
        self._waiting.remove(case)
        return self._run(case)

    def close(self) -> None:
        self._waiting.clear()

    def _run(self, case: Case) -> Result:
        try:
            return execute(case, self._subject)
        except SystemExit as error:
            detail = f"SystemExit escaped: {error}"
            return Result(id=case.id, status=Status.FAIL_CRASH, check="survives", detail=detail)
