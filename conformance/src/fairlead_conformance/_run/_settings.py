"""What one run is asked to do: against which backend, which cases, and in what kind of processes."""

from __future__ import annotations

import enum
import os
import re

import msgspec

from fairlead.errors import ArgumentError
from fairlead_conformance._case import Level

__all__ = ["Isolation", "Settings", "Shard", "cores", "duration", "size"]

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_SIZES = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}


class Isolation(enum.StrEnum):
    """Which cases share a process. Whatever a case does to its process, only ``none`` lets it end the run."""

    auto = "auto"
    """Workers run case after case; one that crashed, hung or grew too large is replaced."""
    case = "case"
    """A process for each case."""
    none = "none"
    """All in this process, for a debugger: a crash, a hang or an endless allocation is yours."""


class Shard(msgspec.Struct, frozen=True):
    """The ``index``-th of ``count`` parts of a run, counted from 1.

    >>> Shard.parse("3/8")
    Shard(index=3, count=8)
    """

    index: int = 1
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> Shard:
        """From ``k/n``; raises `fairlead.errors.ArgumentError`."""
        found = re.fullmatch(r"(\d+)/(\d+)", text)
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            raise ArgumentError(
                f"{text!r} is no shard", where="--shard", next="write k/n, such as 3/8: the third part of eight"
            )
        return cls(int(found[1]), int(found[2]))

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """One run. The first group decides what is found; the second only how.

    ``families``, ``expression`` (as pytest's ``-k``) and ``ids`` narrow the level's cases down; a run of fewer than
    all is never complete. ``bundle``: so many cases at most are tried as one graph, which is no claim either.
    ``timeout`` in seconds, for each case, and as many times that as it is expected to take
    seconds; ``memory`` in bytes, for a worker with its children.
    After ``losses`` cases in a row that ended their process, the rest is not run.
    ``workers`` of 0 is one for each core; ``threads`` of 0 shares the cores out among them.
    """

    backend: str
    level: Level = Level.L1
    seed: int = 0
    device: str = "cpu"
    families: tuple[str, ...] = ()
    expression: str = ""
    ids: tuple[str, ...] = ()
    shard: Shard = Shard()
    bundle: int = 1

    workers: int = 0
    threads: int = 0
    isolate: Isolation = Isolation.auto
    timeout: float = 60.0
    memory: int = 4 * 2**30
    losses: int = 50

    @property
    def processes(self) -> int:
        """How many workers run at once."""
        return self.workers or cores()


def duration(text: str) -> float:
    """Seconds; raises `fairlead.errors.ArgumentError`.

    >>> duration("5m"), duration("90"), duration("0.5h")
    (300.0, 90.0, 1800.0)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text.strip())
    if found is None:
        raise ArgumentError(f"{text!r} is no duration", where="the command line", next="write 90, 90s, 5m or 1h")
    return float(found[1]) * _UNITS[found[2]]


def size(text: str) -> int:
    """Bytes; raises `fairlead.errors.ArgumentError`.

    >>> size("4g") == 4 * 2**30
    True
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([kmg]?)i?b?", text.strip().lower())
    if found is None:
        raise ArgumentError(f"{text!r} is no size", where="the command line", next="write 4g or 512m")
    return int(float(found[1]) * _SIZES[found[2]])


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
