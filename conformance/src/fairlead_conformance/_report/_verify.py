"""Whether a report is what a run of this suite gives: everything in it that can be worked out is, again and offline.

A report that an honest run wrote has no problem; an edited one has. Whoever edits it may also work out anew what we
work out here, down to the digest: a report proves nothing of who made it. Run the cases again for that.
"""

from __future__ import annotations

import collections
import json
from collections.abc import Callable, Iterator, Sequence

import msgspec

from fairlead_conformance._case import Case, Level
from fairlead_conformance._families import manifest
from fairlead_conformance._report._data import FORMAT, Pack, Report, Shard, Suite
from fairlead_conformance._report._digest import digest, installed_pack, installed_suite
from fairlead_conformance._report._evidence import capabilities, evidence, known
from fairlead_conformance._report._totals import by_chance, claim, core_coverage, correct, count, coverage, missing

__all__ = ["Problem", "problems", "verify"]


class Problem(msgspec.Struct, frozen=True):
    """What is wrong with a report: the rule that it breaks, and one line."""

    rule: str
    what: str


def verify(content: bytes) -> tuple[Problem, ...]:
    """What is wrong with the content of a ``report.json``, judged by the suite installed here; empty for nothing."""
    try:
        json.loads(content, object_pairs_hook=_keys_once)
        report = msgspec.json.decode(content, type=Report)
    except ValueError as error:
        return (Problem("form", str(error)),)
    return problems(report, manifest(Level.L4), installed_suite(), installed_pack())


def problems(report: Report, cases: Sequence[Case], suite: Suite, pack: Pack) -> tuple[Problem, ...]:
    """What is wrong with a report, judged by a suite whose cases of all levels are ``cases``."""
    if report.format != FORMAT:
        return (Problem("format", f"format {report.format}, not {FORMAT}"),)
    if report.suite.version != suite.version:
        other = f"made by version {report.suite.version} of the suite, not by {suite.version}"
        return (*(Problem("digest", what) for what in _digest(report)), Problem("suite", other))
    wrong = [Problem(name, what) for name, rule in _RULES.items() for what in rule(report)]
    wrong += [Problem("suite", what) for what in _files(report, suite, pack)]
    if strange := list(_ids(report, cases)):
        return tuple(wrong + [Problem("ids", what) for what in strange])
    by_id = {case.id: case for case in cases}
    for name, judge in {"evidence": evidence, "capabilities": capabilities, "known": known}.items():
        wrong += [Problem(name, what) for what in judge(report, by_id)]
    wrong += [Problem("figures", what) for what in _figures(report, cases)]
    wrong += [Problem("claim", what) for what in _claim(report, cases)]
    return tuple(wrong)


def _keys_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError(f"a key is given twice in one object, among {', '.join(found)}")
    return found


def _digest(report: Report) -> Iterator[str]:
    if report.digest != digest(report):
        yield "changed after it was written: its digest is another"


def _counts(report: Report) -> Iterator[str]:
    counts = count(report.results)
    for status in counts:
        if report.counts.get(status) != counts[status]:
            yield f"{status}: {report.counts.get(status)} is stated, {counts[status]} are there"


def _figures(report: Report, cases: Sequence[Case]) -> Iterator[str]:
    counts = count(report.results)
    results = {result.id: result for result in report.results}
    run = [case for case in cases if case.id in results]
    chance = by_chance(run, results)
    for name, stated, found in (
        ("correct", report.correct, correct(counts, by_chance=chance)),
        ("coverage", report.coverage, coverage(counts, by_chance=chance)),
        ("core", report.core, core_coverage(run, results, by_chance=chance)),
    ):
        if stated != found:
            yield f"{name}: {stated.part} of {stated.whole} is stated, {found.part} of {found.whole} are there"


def _complete(report: Report) -> Iterator[str]:
    reasons = missing(report.run, count(report.results))
    if report.reasons != reasons:
        yield f"reasons: {list(report.reasons)} are stated, {list(reasons)} are found"
    if report.complete is bool(reasons):
        yield f"complete: {str(report.complete).lower()} is stated, with {len(reasons)} reasons against it"


def _shards(report: Report) -> Iterator[str]:
    shards = report.run.shards
    if not shards:
        yield "no shard is named"
    if len({shard.of for shard in shards}) > 1:
        yield f"shards of different divisions: {_listed(shards)}"
    if len(set(shards)) != len(shards):
        yield f"a shard twice: {_listed(shards)}"
    if outside := [shard for shard in shards if not 1 <= shard.index <= shard.of]:
        yield f"no such shard: {_listed(outside)}"


def _listed(shards: Sequence[Shard]) -> str:
    return ", ".join(map(str, shards))


def _facts(report: Report) -> Iterator[str]:
    here = report.machine
    said = {"backend": report.backend.name, "fairlead": here.fairlead, "python": here.python, "torch": here.torch}
    said["platform"] = here.platform
    if report.run.device != "cpu":
        said["accelerator"] = here.accelerator
    blank = [name for name, value in said.items() if not value]
    if blank:
        yield f"not said: {', '.join(blank)}"
    if report.run.started.tzinfo is None:
        yield "started at a time of no time zone"
    if report.run.seconds < 0:
        yield f"the run took {report.run.seconds} seconds"
    for result in (*report.results, *report.beyond):
        if result.seconds < 0 or result.compared < 0:
            yield f"{result.id}: {result.seconds} seconds, {result.compared} elements compared"


_RULES: dict[str, Callable[[Report], Iterator[str]]] = {
    "digest": _digest,
    "counts": _counts,
    "complete": _complete,
    "shards": _shards,
    "facts": _facts,
}
"""What holds of a report by itself."""


def _files(report: Report, suite: Suite, pack: Pack) -> Iterator[str]:
    if report.suite.sha256 != suite.sha256:
        yield f"made by other files than version {suite.version} has here: a modified install, or another build"
    if report.pack != pack:
        yield f"made with {_named(report.pack)}, not with {_named(pack)}"


def _named(pack: Pack | None) -> str:
    return f"case pack {pack.version} of SHA-256 {pack.sha256[:12]}" if pack else "no case pack"


def _ids(report: Report, cases: Sequence[Case]) -> Iterator[str]:
    wanted = [case.id for case in cases if case.level <= report.run.level]
    times = collections.Counter(result.id for result in report.results)
    if twice := [name for name, n in times.items() if n > 1]:
        yield f"results given twice: {_some(twice)}"
    if lost := [name for name in wanted if name not in times]:
        yield f"no result of {len(lost)} cases of {report.run.level.name}: {_some(lost)}"
    if foreign := sorted(times.keys() - set(wanted)):
        yield f"results of no case of {report.run.level.name}: {_some(foreign)}"
    if not (twice or lost or foreign) and list(times) != wanted:
        yield "the results are not in the order of the cases"
    every = {case.id for case in cases}
    if counted := [result.id for result in report.beyond if result.id in every]:
        yield f"counted by a level, and set apart from it: {_some(counted)}"


def _some(ids: Sequence[str], shown: int = 3) -> str:
    return ", ".join(ids[:shown]) + (f" and {len(ids) - shown} more" if len(ids) > shown else "")


def _claim(report: Report, cases: Sequence[Case]) -> Iterator[str]:
    own = [case for case in cases if case.level <= report.run.level]
    results = {result.id: result for result in report.results}
    reached = None if missing(report.run, count(report.results)) else claim(report.run, own, results)
    if report.claim is not reached:
        yield f"{_level(report.claim)} is claimed, the results support {_level(reached)}"


def _level(level: Level | None) -> str:
    return level.name if level is not None else "no level"
