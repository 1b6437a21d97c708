"""Processor seconds and resident memory of this process, as the system counts them."""

from __future__ import annotations

import gc
import os
import time
from pathlib import Path

from fairlead._compare._data import Memory

__all__ = ["MemoryMark", "cpu_seconds"]

PROC = Path("/proc")


def cpu_seconds() -> float:
    """Processor seconds so far of this process, of its children that ended and, on Linux, of those that still run.

    Inductor compiles in a pool of processes that outlive the call, so children that ended are not enough.
    """
    ended = os.times()
    return time.process_time() + ended.children_user + ended.children_system + _running_descendants()


def _running_descendants() -> float:
    if not PROC.is_dir():
        return 0.0
    parents: dict[int, list[tuple[int, int]]] = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit() and (stat := _stat(entry)):
            parent, ticks = stat
            parents.setdefault(parent, []).append((int(entry.name), ticks))
    pending, total = [os.getpid()], 0
    while pending:
        for child, ticks in parents.get(pending.pop(), []):
            pending.append(child)
            total += ticks
    return total / os.sysconf("SC_CLK_TCK")


def _stat(entry: Path) -> tuple[int, int] | None:
    """The parent of a process and its ticks: user and system, its own and those of its ended children; see proc(5)."""
    try:
        fields = (entry / "stat").read_text("utf-8", "replace").rpartition(") ")[2].split()
    except OSError:
        return None  # It ended while we looked.
    return int(fields[1]), sum(int(field) for field in fields[11:15])


class MemoryMark:
    """The resident memory at one moment, to measure from.

    On Linux the kernel's high-water mark is reset here, so that ``since`` sees a peak between two looks. Elsewhere
    there is no mark.
    """

    def __init__(self) -> None:
        gc.collect()
        try:
            (PROC / "self/clear_refs").write_text("5", "ascii")
        except OSError:
            self._start = None
        else:
            self._start = _status("VmRSS")

    def since(self) -> Memory | None:
        """What has been added since, or None where the system does not tell."""
        if self._start is None:
            return None
        peak = _status("VmHWM")
        gc.collect()
        return Memory(max(peak - self._start, 0.0), max(_status("VmRSS") - self._start, 0.0))


def _status(field: str) -> float:
    for line in (PROC / "self/status").read_text("ascii", "replace").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    return 0.0
