"""What tuning found, in a file of SQLite that processes share."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import msgspec

from fairlead_tvm._schedule import DEFAULT, Schedule

__all__ = ["DATABASE", "Database", "Found"]

_log = logging.getLogger("fairlead.tvm")

DATABASE = "FAIRLEAD_TVM_DATABASE"
"""The environment variable that names the file."""
_OURS = 0x464C5456
"""What SQLite calls the application's number: `FLTV`."""
_TABLE = "CREATE TABLE IF NOT EXISTS schedules (key TEXT PRIMARY KEY, found TEXT NOT NULL) WITHOUT ROWID"
_WRITE = """
INSERT INTO schedules VALUES (?, ?)
ON CONFLICT (key) DO UPDATE SET found = excluded.found
"""
_WAIT = 5.0
"""Seconds for which another process may hold the file."""


class Found(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The best schedule so far, how long it takes of what the default takes, and how many others were tried."""

    schedule: Schedule = DEFAULT
    ratio: Annotated[float, msgspec.Meta(gt=0, le=1)] = 1.0
    tried: Annotated[int, msgspec.Meta(ge=0)] = 0


class _ForeignError(Exception):
    """The file is somebody else's."""


class Database:
    """A file that is made when something is first written; one that cannot be used costs a warning and no more."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @classmethod
    def named(cls) -> Database:
        """The file that ``FAIRLEAD_TVM_DATABASE`` names, or the one in the user's folder of caches."""
        given = os.environ.get(DATABASE, "").strip()
        if given:
            return cls(Path(given))
        return cls(_caches() / "fairlead" / "tvm.sqlite")

    def read(self, keys: Iterable[str]) -> dict[str, Found]:
        """What is known of the keys."""
        with self._guarded("read"):
            return self._read(keys) if self._path.exists() else {}
        return {}

    def _read(self, keys: Iterable[str]) -> dict[str, Found]:
        with self._transaction("ro") as connection:
            if _is_empty(connection):  # another process is about to write the first
                return {}
            query = "SELECT found FROM schedules WHERE key = ?"
            rows = [(key, connection.execute(query, (key,)).fetchone()) for key in keys]
            return {key: msgspec.json.decode(row[0], type=Found) for key, row in rows if row}

    def write(self, key: str, found: Found) -> None:
        """Remember what was found, for every process."""
        with self._guarded("written"):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._transaction("rwc") as connection:
                connection.execute(_TABLE)
                connection.execute(f"PRAGMA application_id = {_OURS}")
                connection.execute(_WRITE, (key, msgspec.json.encode(found).decode()))

    @contextlib.contextmanager
    def _transaction(self, mode: str) -> Iterator[sqlite3.Connection]:
        """One state of the file, which is found to be ours or nobody's yet."""
        uri = f"{self._path.absolute().as_uri()}?mode={mode}"
        opened = sqlite3.connect(uri, timeout=_WAIT, isolation_level=None, uri=True)
        with contextlib.closing(opened) as connection, connection:
            connection.execute("BEGIN" if mode == "ro" else "BEGIN IMMEDIATE")
            (number,) = connection.execute("PRAGMA application_id").fetchone()
            if number != _OURS and not _is_empty(connection):
                raise _ForeignError("it is a database of another program")
            yield connection

    @contextlib.contextmanager
    def _guarded(self, what: str) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, msgspec.DecodeError, _ForeignError) as error:
            _warn(str(self._path), what, f"{type(error).__name__.lstrip('_')}: {error}")


def _is_empty(connection: sqlite3.Connection) -> bool:
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return not tables


def _caches() -> Path:
    """The user's folder of caches, or the system's temporary one for a user without a home."""
    given = os.environ.get("XDG_CACHE_HOME", "").strip()
    if given:
        return Path(given)
    home = os.path.expanduser("~")  # Path.home raises where there is none
    return Path(tempfile.gettempdir()) if home == "~" else Path(home) / ".cache"


@functools.cache
def _warn(path: str, what: str, cause: str) -> None:
    """Say so, once in a process."""
    _log.warning(
        "the schedules that were tuned cannot be %s: %s\n  from: %s\n  next: delete the file, or name another in %s; "
        "until then programs are compiled as if nothing was tuned before",
        what, cause, path, DATABASE,
    )  # fmt: skip
