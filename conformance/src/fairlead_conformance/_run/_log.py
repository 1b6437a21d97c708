"""What a run leaves on disk while it goes on, so that it can go on after an interruption.

``run.json`` says what is run; ``results.jsonl`` gets a line for each result. Only the session writes them: no process
in which a backend's code runs has them open. A line is with the system as soon as there is a result, and on the disk
within a second.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import TracebackType

import msgspec

from fairlead.errors import ArgumentError
from fairlead_conformance._result import Result

__all__ = ["Facts", "Log", "seed_of"]

RUN, RESULTS = "run.json", "results.jsonl"

SYNC = 1.0
"""Seconds that pass at least between two calls of fsync."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What has to be the same for results to belong together. ``content`` is a hash of the backend's files."""

    backend: str
    wheel: str
    content: str
    level: str
    device: str
    seed: int
    bundle: int
    suite: str
    versions: dict[str, str]


class Log:
    """The two files in ``folder``. ``results`` are those of the run before, where this one resumes it."""

    def __init__(self, folder: Path, facts: Facts, *, resume: bool) -> None:
        self._path = folder / RESULTS
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self.results = _read(folder, facts) if resume else {}
            if not resume:
                self._path.unlink(missing_ok=True)
            (folder / RUN).write_bytes(msgspec.json.format(msgspec.json.encode(facts), indent=1) + b"\n")
            self._file = self._path.open("ab")
        except OSError as error:
            raise ArgumentError(
                f"the report cannot be kept there: {error}",
                where=str(folder),
                next="name a folder that you may read and write: --report FOLDER",
            ) from error
        self._synced = 0.0

    def __enter__(self) -> Log:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def append(self, result: Result) -> None:
        """One more result."""
        self._file.write(msgspec.json.encode(result) + b"\n")
        self._file.flush()
        if time.monotonic() - self._synced > SYNC:
            os.fsync(self._file.fileno())
            self._synced = time.monotonic()

    def close(self) -> None:
        """Everything is on the disk."""
        if not self._file.closed:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()


def seed_of(folder: Path) -> int | None:
    """The seed of the run that is there, if one is."""
    try:
        return msgspec.json.decode((folder / RUN).read_bytes(), type=Facts).seed
    except (OSError, msgspec.DecodeError):
        return None


def _read(folder: Path, facts: Facts) -> dict[str, Result]:
    try:
        before = msgspec.json.decode((folder / RUN).read_bytes(), type=Facts)
    except FileNotFoundError:
        return {}
    except msgspec.DecodeError as error:
        raise _refused(f"its {RUN} cannot be read: {error}", folder) from error
    for name in Facts.__struct_fields__:
        if (was := getattr(before, name)) != (now := getattr(facts, name)):
            raise _refused(f"its {name} was {was}, and is now {now}", folder)
    return _results(folder / RESULTS)


def _results(path: Path) -> dict[str, Result]:
    """Every whole line; one that was cut off by an interruption is cut off here as well."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    whole = data[: data.rfind(b"\n") + 1]
    with path.open("r+b") as file:
        file.truncate(len(whole))
    results = []
    for number, line in enumerate(whole.splitlines(), start=1):
        try:
            results.append(msgspec.json.decode(line, type=Result))
        except msgspec.DecodeError as error:
            raise _refused(f"line {number} of its {RESULTS} is no result: {error}", path.parent) from error
    return {result.id: result for result in results}


def _refused(why: str, folder: Path) -> ArgumentError:
    return ArgumentError(
        f"the run cannot be resumed: {why}", where=str(folder), next="run anew, without --resume or in another folder"
    )
