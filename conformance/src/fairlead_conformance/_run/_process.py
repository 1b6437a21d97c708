"""The session's end of one worker: starts it, gives it cases, reads what it says and prints, and ends it for good."""

from __future__ import annotations

import contextlib
import enum
import fcntl
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec
import psutil

from fairlead_conformance._case import Case
from fairlead_conformance._run._crash import account, place
from fairlead_conformance._run._messages import LOST_CHANNEL, Bundle, Message, Setup

__all__ = ["Phase", "Process"]

KEEPER = Path(__file__).with_name("_keeper.py")

TAIL = 4096
"""How many characters are kept of what a case prints."""

HELD = 2**18
"""How many bytes of it are held until the case is over: a crash tells of every thread, and of the modules loaded."""

CHILDREN_EVERY = 1.0
"""Seconds between looks at the memory of a worker's children; its own is looked at every time."""

PATIENCE = 10.0
"""Seconds that a keeper may take to clear up."""

PIPE = 2**20

GO = b"."
"""What a keeper reads where the session that lets it go is still there."""


class Phase(enum.Enum):
    """What a worker is doing, and so whose doing its end is."""

    starting = enum.auto()
    loading = enum.auto()
    idle = enum.auto()
    busy = enum.auto()
    ending = enum.auto()


class Process:
    """One worker and its keeper. ``descriptors`` are to be watched; `read` whichever of them has something.

    ``bundle`` are the cases that it is busy with, more than one where they are to be judged as one graph, and ``cases``
    how many it was given so far. ``messages`` are those not yet looked at; ``end`` is empty until the worker has to be
    given up, and then says why.
    """

    def __init__(self, setup: Setup, folder: Path, environment: Mapping[str, str]) -> None:
        requests, self._requests = os.pipe()
        self._results, results = os.pipe()
        self._output, output = os.pipe()
        worker = [sys.executable, "-P", "-m", "fairlead_conformance._run._worker", str(requests), str(results)]
        self._keeper = subprocess.Popen(
            [sys.executable, "-I", "-S", str(KEEPER), str(folder), str(output), f"{requests},{results}", *worker],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(requests, results, output),
            env=environment,
            start_new_session=True,
            bufsize=0,
        )
        for descriptor in (requests, results, output):
            os.close(descriptor)
        assert self._keeper.stdout is not None
        self._status = self._keeper.stdout.fileno()
        _widen(self._output)
        self.descriptors = {self._results, self._output, self._status}
        for descriptor in self.descriptors:
            os.set_blocking(descriptor, False)
        self._line = self._printed = self._heard = b""
        self._pid, self._children_seen, self._children = 0, 0.0, 0
        self.phase, self.since, self.cases = Phase.starting, time.monotonic(), 0
        self.bundle: tuple[Case, ...] = ()
        self.messages: list[Message] = []
        self.end = ""
        self._send(setup)

    @property
    def output(self) -> str:
        """The end of what was printed since the case began, and of a crash where it was."""
        return account(self._print, TAIL).strip()

    @property
    def place(self) -> str:
        """Where in the backend's code or its SDK's the process crashed, as a clause; empty where that is not known."""
        return place(self._print)

    @property
    def _print(self) -> str:
        return self._printed.decode("utf-8", "replace")

    def give(self, bundle: tuple[Case, ...]) -> None:
        """Start a case, or several; they are over when their message is there, or with the process."""
        self.read(self._output)
        self._printed = b""
        self.phase, self.bundle, self.since = Phase.busy, bundle, time.monotonic()
        self.cases += len(bundle)
        self._send(Bundle(bundle))

    def read(self, descriptor: int) -> None:
        """Take what is there: messages, output, or news of the end."""
        data = self._take(descriptor)
        if data is None:
            return
        if descriptor == self._output:
            self._printed = (self._printed + data)[-HELD:]
        elif descriptor == self._status:
            self._hear(data)
        else:
            self._understand(data)

    def memory(self) -> int:
        """Bytes that the worker and its children hold; 0 where nobody knows."""
        try:
            worker = psutil.Process(self._pid)
            now = time.monotonic()
            if now - self._children_seen > CHILDREN_EVERY:
                self._children_seen = now
                self._children = sum(_resident(child) for child in worker.children(recursive=True))
            return _resident(worker) + self._children
        except (psutil.Error, ValueError):
            return 0

    def retire(self) -> None:
        """Let the worker end by itself; `Phase.ending` until it has."""
        self.phase, self.bundle, self.since = Phase.ending, (), time.monotonic()
        self._close_requests()

    def kill(self, after: float = 0) -> None:
        """End the worker, where it does not end by itself, and everything that it started."""
        assert self._keeper.stdin is not None
        assert self._keeper.stdout is not None
        self._close_requests()
        latest = time.monotonic() + after
        while not self.end and (left := latest - time.monotonic()) > 0:
            self._await_status(left)
        with contextlib.suppress(BrokenPipeError):
            self._keeper.stdin.write(GO)
        self._keeper.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._keeper.wait(PATIENCE)
        self._keeper.kill()
        if self._keeper.wait() != 0 and self._pid:  # the keeper was killed: its work is ours
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, signal.SIGKILL)
        self._keeper.stdout.close()
        for descriptor in (self._results, self._output):
            os.close(descriptor)

    def _send(self, message: Setup | Bundle) -> None:
        with contextlib.suppress(BrokenPipeError):  # its end will be told by the keeper
            os.write(self._requests, msgspec.json.encode(message) + b"\n")

    def _take(self, descriptor: int) -> bytes | None:
        """What there is to read now: None for nothing, and ``b""`` for the end, after which it is watched no more."""
        try:
            data = os.read(descriptor, PIPE)
        except BlockingIOError:
            return None
        if not data:
            self.descriptors.discard(descriptor)
        return data

    def _understand(self, data: bytes) -> None:
        *lines, self._line = (self._line + data).split(b"\n")
        for line in lines:
            try:
                self.messages.append(msgspec.json.decode(line, type=Message))
            except msgspec.DecodeError:
                self.end = self.end or "it wrote into a descriptor that is not its own"
                return
        if not data and not self.end:
            self._await_status(1.0)
            self.end = self.end or _ended(LOST_CHANNEL)

    def _hear(self, data: bytes) -> None:
        self._heard += data
        if found := re.search(rb"pid (\d+)\n", self._heard):
            self._pid = int(found[1])
        if found := re.search(rb"exit (-?\d+)\n", self._heard):
            self.end = self.end or _ended(int(found[1]))
        elif not data:
            self.end = self.end or "it killed the process above it"
        if self.end:  # all who could write are gone: take what is left
            while self._results in self.descriptors and (left := self._take(self._results)) is not None:
                self._understand(left)
            self.read(self._output)

    def _await_status(self, seconds: float) -> None:
        """Give the keeper the moment that it needs to say why the worker ended."""
        ready, _, _ = select.select([self._status], [], [], seconds)
        if ready:
            self.read(self._status)

    def _close_requests(self) -> None:
        if self._requests >= 0:
            os.close(self._requests)
            self._requests = -1


def _ended(status: int) -> str:
    if status < 0:
        try:
            return f"its process was ended by {signal.Signals(-status).name}"
        except ValueError:
            return f"its process was ended by signal {-status}"
    if status == LOST_CHANNEL:
        return "it closed the descriptors of its process"
    return f"its process ended with exit status {status}"


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def _widen(pipe: int) -> None:
    """A wide pipe, so that a backend that prints without end is slowed down by nothing but its own writing."""
    with contextlib.suppress(OSError, AttributeError):
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE)
