"""The shards of one run are one report; what does not fit together is refused."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from fairlead.errors import ArgumentError
from fairlead_conformance import Level, Status
from fairlead_conformance._report import Report, Shard, installed_suite, merged, problems

from .fixtures import CASES, PACK, STATUSES, report, run

L3 = [case for case in CASES if case.level <= Level.L3]


def shard(index: int, of: int = 2, **facts: Any) -> Report:
    """The report of one of the shards, each of which has every so-manieth case."""
    statuses = [s if i % of == index - 1 else Status.NOT_RUN for i, s in enumerate(STATUSES)]
    return report(statuses, facts=replace(run(), shards=(Shard(index=index, of=of),), **facts))


def test_all_shards_together_are_the_report_of_the_whole_run() -> None:
    later = datetime.datetime(2026, 3, 1, 13, tzinfo=datetime.UTC)
    whole = merged({"b": shard(2, started=later), "a": shard(1)}, L3)
    assert whole.run.shards == (Shard(index=1, of=2), Shard(index=2, of=2))
    assert (whole.results, whole.counts, whole.claim) == (report().results, report().counts, Level.L3)
    assert (whole.run.seconds, whole.run.started) == (2.0, run().started)
    assert whole.complete
    assert problems(whole, CASES, installed_suite(), PACK) == ()


def test_a_shard_alone_verifies_and_supports_nothing() -> None:
    alone = shard(1)
    assert problems(alone, CASES, installed_suite(), PACK) == ()
    assert alone.reasons == ("shards missing: 2/2", "3 of 7 cases were not run")


def test_what_one_shard_lacks_the_whole_lacks() -> None:
    whole = merged({"a": shard(1, incomplete=("interrupted",)), "b": shard(2)}, L3)
    assert (whole.complete, whole.claim, whole.reasons) == (False, None, ("interrupted",))


def test_hosts_may_differ_in_their_platform_alone() -> None:
    other = shard(2)
    other = replace(other, machine=replace(other.machine, platform="Linux-6.1"))
    assert merged({"a": shard(1), "b": other}, L3).machine.platform == "Linux-x86_64; Linux-6.1"


REFUSED: dict[str, tuple[str, Callable[[], list[Report]]]] = {
    "a shard is missing": ("shards missing: 2/3", lambda: [shard(1, 3), shard(3, 3)]),
    "a shard is there twice": ("do not fit together: 1/2, 1/2", lambda: [shard(1), shard(1)]),
    "shards of two divisions": ("do not fit together", lambda: [shard(1), shard(2), shard(1, 3)]),
    "a case is in two shards": (
        "ops/aten.add.Tensor/f32/s000 has a result in two shards",
        lambda: [replace(shard(1), results=report().results), shard(2)],
    ),
    "another seed": ("seed differs", lambda: [shard(1), shard(2, seed=8)]),
    "another level": ("level differs", lambda: [shard(1), shard(2, level=Level.L2)]),
    "another device": ("device differs", lambda: [shard(1), shard(2, device="cuda")]),
    "another torch": (
        "torch differs",
        lambda: [shard(1), replace(shard(2), machine=replace(shard(2).machine, torch="2.14.0"))],
    ),
    "another backend": (
        "backend differs",
        lambda: [shard(1), replace(shard(2), backend=replace(shard(2).backend, version="1.2.1"))],
    ),
    "another suite": (
        "suite differs",
        lambda: [shard(1), replace(shard(2), suite=replace(shard(2).suite, sha256="f"))],
    ),
    "another pack": ("pack differs", lambda: [shard(1), replace(shard(2), pack=None)]),
    "other known failures": ("known differs", lambda: [shard(1), replace(shard(2), known=())]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_together_is_refused(name: str) -> None:
    message, make = REFUSED[name]
    with pytest.raises(ArgumentError, match=message) as caught:
        merged({f"out/{i}": one for i, one in enumerate(make())}, L3)
    assert caught.value.next.startswith("give one report of each shard")
