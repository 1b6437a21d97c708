"""What the interpreter itself is asked for while a backend runs: other processes, and connections to them.

Python's audit hooks cannot be removed, so one is installed once, and listens only between `listen` and its end. It sees
every thread. What it cannot see: a process that native code starts, and one that was started and connected to before.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Iterator
from typing import Any

__all__ = ["listen"]

EVENTS = frozenset(
    (
        "os.exec",
        "os.fork",
        "os.forkpty",
        "os.posix_spawn",
        "os.spawn",
        "os.startfile",
        "os.system",
        "pty.spawn",
        "socket.bind",
        "socket.connect",
        "socket.sendmsg",
        "socket.sendto",
        "subprocess.Popen",
    )
)

_listeners: list[list[str]] = []


@contextlib.contextmanager
def listen(heard: list[str]) -> Iterator[None]:
    """Within, each such event is added to ``heard``."""
    _install()
    _listeners.append(heard)
    try:
        yield
    finally:
        _listeners.remove(heard)


@functools.cache
def _install() -> None:
    sys.addaudithook(_hook)


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if _listeners and event in EVENTS:
        for heard in _listeners:
            heard.append(event)
