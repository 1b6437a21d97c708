"""What a run found, as data: the form of ``report.json``.

`report_of` makes one of a run's facts and results; everything that can be counted is counted there, and by ``verify``
again. Units are in each field's description. A field is added with a default; a removed or changed one makes `FORMAT`
another number.
"""

from __future__ import annotations

import datetime
import re
from typing import Any

import msgspec

from fairlead_conformance._case import Level
from fairlead_conformance._result import Result
from fairlead_conformance._status import Status

__all__ = ["FORMAT", "Figure", "Judged", "KnownFailure", "Machine", "Pack", "Report", "Run", "Shard", "Suite"]

FORMAT = 1
"""The version of the JSON form."""


class _Struct(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Part of a report: what it does not know, it does not read."""


class Suite(_Struct, frozen=True, kw_only=True):
    """The suite that judged. ``sha256`` is of all files that are installed, by `installed_suite`."""

    version: str
    sha256: str


class Pack(_Struct, frozen=True, kw_only=True):
    """The frozen cases: their version, and the hash of the file they are in."""

    version: str
    sha256: str


class Judged(_Struct, frozen=True, kw_only=True):
    """The backend that was judged, and the wheel that it came in.

    ``capabilities`` as the wheel declares them, ``versions`` of SDKs and drivers as its probe found them, ``numerics``
    the named columns of looser numbers that it declares, such as ``tf32``.
    """

    name: str
    wheel: str = ""
    version: str = ""
    capabilities: dict[str, Any] = {}
    versions: dict[str, str] = {}
    numerics: tuple[str, ...] = ()


class Machine(_Struct, frozen=True, kw_only=True):
    """Where it ran: versions of Fairlead, Python and torch, and the platform as Python names it.

    ``accelerator``, ``driver`` and ``cuda``: the name of the device that is not the CPU, and the versions of its driver
    and of the CUDA that torch is built for; empty where it ran on the CPU.
    """

    fairlead: str
    python: str
    torch: str
    platform: str
    accelerator: str = ""
    driver: str = ""
    cuda: str = ""

    @property
    def device(self) -> str:
        """The device in words; empty where it ran on the CPU.

        >>> here = Machine(fairlead="1", python="3.12", torch="2.11", platform="Linux", accelerator="NVIDIA H200",
        ...                driver="580.1", cuda="13.0")
        >>> here.device
        'NVIDIA H200, driver 580.1, CUDA 13.0'
        """
        known = (("", self.accelerator), ("driver ", self.driver), ("CUDA ", self.cuda))
        return ", ".join(word + value for word, value in known if value)


class Shard(_Struct, frozen=True, kw_only=True):
    """One of ``of`` parts of the cases, counted from 1."""

    index: int
    of: int

    def __str__(self) -> str:
        return f"{self.index}/{self.of}"


class Run(_Struct, frozen=True, kw_only=True):
    """How it was run.

    ``shards``: those whose results are here; one ``1/1`` where the cases were not divided. ``command`` as it was
    given. ``seconds``: wall time, of all shards together. ``incomplete``: what the runner knows to be missing, such as
    a selection of cases, an interruption or a modified install; a line each.
    """

    level: Level
    seed: int
    device: str
    command: tuple[str, ...]
    started: datetime.datetime
    seconds: float
    shards: tuple[Shard, ...] = (Shard(index=1, of=1),)
    incomplete: tuple[str, ...] = ()


_ISSUE = re.compile(r"https?://[^/\s]+/\S*\d\S*")

_PROGRAM = re.compile(r"(?:[\w.-]+/)+[\w-]+\.py")


class KnownFailure(_Struct, frozen=True, kw_only=True):
    """An entry of the backend's file of known failures: the exact status expected of one case, why, and until when.

    ``device``: the kind of device that it fails on, such as ``cuda``; of others it says nothing.
    """

    id: str
    status: Status
    reason: str
    issue: str
    since: datetime.date
    expires: datetime.date
    device: str = "cpu"

    @property
    def is_traceable(self) -> bool:
        """Whether ``issue`` is the address of one issue, which has its number, or the path of a program that shows it.

        A tracker's own address leaves it to the reader to find the issue.
        """
        return bool(_ISSUE.fullmatch(self.issue) or _PROGRAM.fullmatch(self.issue))

    def age(self, day: datetime.date) -> int:
        """Days since it is known."""
        return (day - self.since).days


class Figure(_Struct, frozen=True, kw_only=True):
    """A part of a whole; no figure is ever the mean of two others.

    >>> f"{Figure(part=1999, whole=2000):.1%}", f"{Figure(part=0, whole=0):.1%}"
    ('99.9%', '0.0%')
    """

    part: int
    whole: int

    @property
    def ratio(self) -> float:
        return self.part / self.whole if self.whole else 0.0

    def __format__(self, spec: str) -> str:
        """As a percentage, rounded down: only all is 100 %."""
        digits = int(spec.removeprefix(".").removesuffix("%") or 1)
        scale = 10**digits
        return f"{(self.part * 100 * scale // self.whole if self.whole else 0) / scale:.{digits}f}%"


class Report(_Struct, frozen=True, kw_only=True):
    """Everything that a run found.

    ``results``: one for each case of the level, in the manifest's order; ``beyond``: results of cases that no level
    counts, such as fuzzing. ``counts``: of ``results``, by every status, also those with none. ``correct``: passes of
    passes, failures and known failures; ``coverage``: passes of all cases; ``core``: passes that are the backend's
    own, of the cases about ops that are all in the tiers base and nn. All are 0 where of the mandatory cases of ops
    that it took on the backend has none right: the others are right by chance. ``claim``: the highest level whose
    every case that the backend takes is right, or None. ``reasons``: why the run is not complete; it is ``complete``
    where there is none. ``digest``: SHA-256 of all else in the report. It shows a change that was made without it, by
    accident or by hand; it is no signature, and proves nothing of who made the report.
    """

    format: int
    suite: Suite
    pack: Pack | None
    backend: Judged
    machine: Machine
    run: Run
    complete: bool
    reasons: tuple[str, ...]
    claim: Level | None
    correct: Figure
    coverage: Figure
    counts: dict[Status, int]
    known: tuple[KnownFailure, ...]
    results: tuple[Result, ...]
    beyond: tuple[Result, ...] = ()
    core: Figure = Figure(part=0, whole=0)
    digest: str = ""
