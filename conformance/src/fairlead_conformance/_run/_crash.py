"""Where a process died, by what Python's faulthandler printed of it."""

from __future__ import annotations

import importlib.util
import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["account", "place"]

_NOT_THE_BACKENDS = ("fairlead", "fairlead_conformance", "torch")
"""Whose frames are between a backend's code and the crash, or above it, and tell nothing of it."""

_FRAMES = 30
"""How many frames are kept, innermost first: each is some hundred characters."""

_CAUSE = re.compile(r"^Fatal Python error: .*$", re.MULTILINE)
_THREAD = re.compile(r"^(?:Current thread|Thread|Stack)\b.* \(most recent call first\):$", re.MULTILINE)
_FRAME = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+) in (?P<function>.*)$', re.MULTILINE)


class _Account(NamedTuple):
    """``before``: what was printed until then. ``current``: whether the frames are of the thread that died."""

    before: str
    cause: str
    thread: str
    current: bool
    frames: tuple[re.Match[str], ...]


def _read(printed: str) -> _Account | None:
    """The last crash that is told of in what a process printed.

    Of its threads the one that died. A thread of an SDK's own is none of Python's, and has no frames: then the main
    thread, which comes last, and waits in the call that had the thread work.
    """
    causes = list(_CAUSE.finditer(printed))
    if not causes:
        return None
    rest = printed[causes[-1].end() :]
    threads = list(_THREAD.finditer(rest))
    if not threads:
        return None
    own = next((thread for thread in threads if not thread[0].startswith("Thread")), None)
    chosen = own or threads[-1]
    end = next((thread.start() for thread in threads if thread.start() > chosen.start()), len(rest))
    frames = tuple(_FRAME.finditer(rest, chosen.end(), end))
    return _Account(printed[: causes[-1].start()], causes[-1][0], chosen[0], own is not None, frames)


def account(printed: str, most: int) -> str:
    """The end of what was printed, at most so long; of a crash, one thread and its innermost frames.

    >>> print(account(_EXAMPLE, 1000))
    loading acme.xml
    Fatal Python error: Segmentation fault
    Current thread 0x01 (most recent call first):
      File "/opt/acme/run.py", line 7 in infer
    """
    found = _read(printed)
    if found is None:
        return printed[-most:]
    told = "\n".join([found.cause, found.thread, *(frame[0] for frame in found.frames[:_FRAMES])])
    before = found.before[max(len(found.before) - max(most - len(told), 0), 0) :]
    return before + told[:most]


def place(printed: str) -> str:
    """The innermost frame that is the backend's or its SDK's, as a clause; empty where there is none.

    >>> place(_EXAMPLE)
    ' in run.py:7 infer'
    """
    found = _read(printed)
    frame = next((f for f in found.frames if not _is_ours(f["file"])), None) if found else None
    if found is None or frame is None:
        return ""
    where = f"{_within_its_package(Path(frame['file']))}:{frame['line']} {frame['function']}"
    return f" in {where}" if found.current else f" in a thread of its own, while Python was in {where}"


def _is_ours(file: str) -> bool:
    """Whether a file is Python's own, torch's, core's or the suite's."""
    if file.startswith("<"):
        return True
    path = Path(file)
    return any(path.is_relative_to(folder) and not _is_installed(path, folder) for folder in _folders())


def _is_installed(path: Path, folder: Path) -> bool:
    return bool({"site-packages", "dist-packages"} & set(path.relative_to(folder).parts))


def _folders() -> Iterator[Path]:
    yield from (Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib"))
    for package in _NOT_THE_BACKENDS:
        spec = importlib.util.find_spec(package)
        yield from map(Path, (spec.submodule_search_locations or ()) if spec else ())


def _within_its_package(path: Path) -> Path:
    """The path from the folder of the outermost package on."""
    top = path
    while (top.parent / "__init__.py").is_file():
        top = top.parent
    return path.relative_to(top.parent)


_EXAMPLE = """loading acme.xml
Fatal Python error: Segmentation fault

Thread 0x02 (most recent call first):
  File "/opt/acme/pool.py", line 3 in wait

Current thread 0x01 (most recent call first):
  File "/opt/acme/run.py", line 7 in infer

Extension modules: numpy._core._multiarray_umath (total: 1)
"""
