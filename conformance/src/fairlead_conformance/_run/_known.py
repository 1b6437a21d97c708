"""Known failures: a strict file in which a vendor says what fails, how, why, and until when.

``known-failures.toml`` stands beside ``capabilities.toml`` in the backend's wheel::

    [[failure]]
    id = "ops/aten.acosh.default/f16/s001"   # or a prefix: "ops/aten.acosh.default/*"
    status = "FAIL_MISMATCH"
    reason = "the SDK computes acosh near 1 without its log1p form"
    issue = "https://github.com/acme/sdk/issues/17"
    since = 2026-03-01
    expires = 2026-09-01

``device = "cuda"`` in an entry says that the case fails there, where the CPU is meant otherwise.

``issue`` is the address of one issue, or, where none is open, the path in the backend's repository of a program that
shows the failure with the SDK's interface alone.

Such a failure is KNOWN_FAIL. One that passes is FAIL_XPASS, one that fails otherwise stays what it is, and so does one
whose entry has expired or whose case is mandatory for the level. A prefix stands for every case that it matches.
"""

from __future__ import annotations

import datetime
import importlib.util
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from fairlead.errors import ArgumentError, FairleadError
from fairlead.registry import registry
from fairlead_conformance._case import Case, Level
from fairlead_conformance._report import KnownFailure
from fairlead_conformance._result import Result
from fairlead_conformance._status import Status

__all__ = ["KnownFailures", "file_of", "read_known"]

NAME = "known-failures.toml"

ANY = "*"


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    failure: tuple[KnownFailure, ...] = ()


class KnownFailures:
    """The entries that hold for the cases of a run. ``faults`` are what is wrong with the file; any makes a run red.

    ``entries`` has one for each case of the level that is listed, prefixes spelt out.
    """

    def __init__(self, listed: Sequence[KnownFailure], every: Sequence[Case], level: Level, day: datetime.date) -> None:
        self.faults: list[str] = []
        self._entries: dict[str, KnownFailure] = {}
        self._excused: set[str] = set()
        for entry in listed:
            matched = [case for case in every if _matches(entry.id, case.id)]
            self.faults.extend(f"known failure {entry.id}: {fault}" for fault in _faults(entry, matched, day))
            for case in matched:
                if case.level > level:
                    continue
                if case.id in self._entries:
                    self.faults.append(f"known failure {entry.id}: {case.id} is listed twice")
                self._entries[case.id] = msgspec.structs.replace(entry, id=case.id)
                if case.mandatory:
                    self.faults.append(f"known failure {entry.id}: {case.id} is mandatory for {case.level.name}")
                elif entry.expires >= day:
                    self._excused.add(case.id)

    @property
    def entries(self) -> tuple[KnownFailure, ...]:
        return tuple(self._entries.values())

    def judge(self, result: Result) -> Result:
        """The result as the file makes it."""
        entry = self._entries.get(result.id)
        if entry is None:
            return result
        replace = msgspec.structs.replace
        if result.status.passed:
            return replace(
                result,
                status=Status.FAIL_XPASS,
                check="known-failures",
                detail=f"passes, and is listed as {entry.status}: remove the entry ({entry.issue})",
            )
        if result.status is entry.status and result.id in self._excused:
            return replace(result, status=Status.KNOWN_FAIL, detail=f"{entry.status}: {entry.reason} ({entry.issue})")
        if result.status.failed:
            why = "has expired or may not be listed" if result.status is entry.status else f"is {entry.status}"
            return replace(result, detail=f"{result.detail}; the known failure {why}")
        return result

    def stale(self, results: Mapping[str, Result]) -> Iterator[str]:
        """Entries of cases that the backend does not even try."""
        for case_id in self._entries:
            if case_id in results and results[case_id].status is Status.DECLINED:
                yield f"known failure {case_id}: it is declined, and fails no longer"


def file_of(backend: str) -> Path | None:
    """The file in the wheel of a backend, which is not imported; None where there is none."""
    try:
        package = registry.wheel(backend).entry_point.partition(":")[0].partition(".")[0]
        spec = importlib.util.find_spec(package)
    except (FairleadError, ValueError):
        return None  # the run itself will say so
    folders = spec.submodule_search_locations if spec else None
    path = Path(next(iter(folders)), NAME) if folders else None
    return path if path is not None and path.is_file() else None


def read_known(path: Path | None) -> tuple[KnownFailure, ...]:
    """The entries of a file; raises `fairlead.errors.ArgumentError` where it is not as it has to be."""
    if path is None:
        return ()
    try:
        entries = msgspec.convert(tomllib.loads(path.read_text("utf-8")), _File).failure
        for entry in entries:
            if why := _malformed(entry):
                raise ValueError(f"{entry.id}: {why}")
    except (OSError, ValueError) as error:  # TOML's and msgspec's errors are ValueErrors
        raise ArgumentError(
            f"no valid file of known failures: {error}",
            where=str(path),
            next="each [[failure]] has id, status, reason, issue, since and expires; see docs/conformance.md",
        ) from error
    return entries


def _malformed(entry: KnownFailure) -> str:
    if not entry.status.failed or entry.status is Status.FAIL_XPASS:
        return f"{entry.status} is no failure"
    if ANY in entry.id[:-1] or entry.id.count("/") < 2:
        return "an id, or the beginning of one with its family and subject, then *"
    if not entry.reason.strip():
        return "no reason"
    if not entry.is_traceable:
        return (
            f"the issue {entry.issue!r} is neither the address of one issue, such as https://example.com/issues/17, "
            "nor the path of a program that shows it, such as defects/sum.py"
        )
    return "expires before it begins" if entry.expires < entry.since else ""


def _matches(pattern: str, case_id: str) -> bool:
    return case_id.startswith(pattern[:-1]) if pattern.endswith(ANY) else case_id == pattern


def _faults(entry: KnownFailure, matched: Sequence[Case], day: datetime.date) -> Iterator[str]:
    if not matched:
        yield "no case of the suite is called so"
    if entry.expires < day:
        yield f"expired on {entry.expires}"
    if entry.since > day:
        yield f"known only since {entry.since}, which is to come"
