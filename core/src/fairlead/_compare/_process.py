"""The parent's side of a worker: start it, ask it, and say why it did not answer."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import msgspec

from fairlead._compare._data import Status
from fairlead._compare._messages import Failed

__all__ = ["LostError", "Process"]

R = TypeVar("R")

NOT_READY = "FL105"

TAIL = 400
"""How many characters are shown of what a process that died had written."""


class LostError(Exception):
    """A request without its reply, as a row's status and reason. ``failure`` is what the worker said of it."""

    def __init__(self, status: Status, reason: str, failure: Failed | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.failure = failure


class Process:
    """A worker with empty caches of its own. Leaving the context ends it and whatever it has started.

    ``worker`` is a module that answers requests with `fairlead._compare._served.serve` when it is run.
    """

    def __init__(
        self, folder: Path, *, threads: int | None, timeout: float, worker: str = "fairlead._compare._worker"
    ) -> None:
        self._timeout = timeout
        self._written = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed by __exit__
        self._caches = tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True)
        self._pending = b""
        self._popen = subprocess.Popen(
            [sys.executable, "-m", worker],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._written,
            env=os.environ | _environment(self._caches.name, threads),
            start_new_session=True,
            bufsize=0,
        )

    def __enter__(self) -> Process:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()
        self._written.close()
        self._caches.cleanup()

    def end(self) -> None:
        """End the worker and whatever it has started; a second time does nothing."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._popen.pid, signal.SIGKILL)
        self._popen.communicate()

    def ask(self, request: Any, reply: type[R], timeout: float | None = None) -> R:
        """The worker's reply; raises `LostError` where it fails, dies, or takes longer than the timeout."""
        assert self._popen.stdin is not None
        try:
            self._popen.stdin.write(msgspec.json.encode(request) + b"\n")
        except BrokenPipeError:
            raise self._died() from None
        line = self._line(type(request).__name__, self._timeout if timeout is None else timeout)
        answer = msgspec.json.decode(line, type=reply | Failed)
        if isinstance(answer, Failed):
            raise _lost(answer)
        assert isinstance(answer, reply)
        return answer

    def _line(self, request: str, timeout: float) -> bytes:
        assert self._popen.stdout is not None
        end = time.monotonic() + timeout
        while b"\n" not in self._pending:
            ready, _, _ = select.select([self._popen.stdout], [], [], max(end - time.monotonic(), 0))
            if not ready:
                raise LostError(Status.timeout, f"no answer to {request.lower()} within {timeout:g} seconds")
            read = self._popen.stdout.read(65536)
            if not read:
                raise self._died()
            self._pending += read
        line, _, self._pending = self._pending.partition(b"\n")
        return line

    def _died(self) -> LostError:
        code = self._popen.wait()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
        self._written.seek(0)
        said = " ".join(self._written.read().decode("utf-8", "replace").split())[-TAIL:]
        return LostError(
            Status.crashed, f"its process ended with {how}" + (f"; it had written: {said}" if said else "")
        )


def _lost(failure: Failed) -> LostError:
    status = Status.not_ready if failure.code == NOT_READY else Status.failed
    return LostError(status, f"{failure.code}: {failure.what}" if failure.code else failure.what, failure)


def _environment(caches: str, threads: int | None) -> dict[str, str]:
    own = {
        "TORCHINDUCTOR_CACHE_DIR": f"{caches}/inductor",
        "TRITON_CACHE_DIR": f"{caches}/triton",
        "HF_HUB_OFFLINE": "1",
        "PYTHONFAULTHANDLER": "1",
    }
    return own | ({"OMP_NUM_THREADS": str(threads)} if threads else {})
