"""Cases that are drawn at random until the time is up: they are of no level, and their results beside the figures."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Protocol, cast

from fairlead_conformance._case import Case
from fairlead_conformance._families import family
from fairlead_conformance._result import Result
from fairlead_conformance._run._session import pool_of
from fairlead_conformance._run._settings import Settings
from fairlead_conformance._status import Status

__all__ = ["fuzzed"]

_ENDS = (Status.FAIL_IMPORT, Status.NOT_RUN)
"""What the pool says of all that wait, where it has given the backend up."""


class _Endless(Protocol):
    def endless(self, seed: int) -> Iterator[Case]: ...


def fuzzed(settings: Settings, seconds: float) -> Iterator[Result]:
    """The results of cases drawn from the run's seed, for so many seconds from the first; each shard draws its own."""
    drawn = cast(_Endless, family("fuzz")).endless(settings.seed)
    own = itertools.islice(drawn, settings.shard.index - 1, None, settings.shard.count)
    end: float | None = None
    with pool_of(settings) as pool:
        pool.submit(itertools.islice(own, 2 * settings.processes))
        for result in pool.results():
            now = time.monotonic()
            end = now + seconds if end is None else end
            if result.status in _ENDS:
                end = now
            if now < end:
                pool.submit([next(own)])
            yield result
