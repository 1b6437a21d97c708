"""Reports of the shards of one run, as one report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import asdict, replace

from fairlead.errors import ArgumentError
from fairlead_conformance._case import Case
from fairlead_conformance._report._data import Report, Run
from fairlead_conformance._report._make import report_of
from fairlead_conformance._result import Result
from fairlead_conformance._status import Status

__all__ = ["merged"]


def merged(reports: Mapping[str, Report], cases: Sequence[Case]) -> Report:
    """One report of all shards of a run over ``cases``; ``reports`` have the names by which errors tell them apart.

    What the shards say of suite, pack, backend, versions, level, seed, device and known failures is the same, no shard
    is missing and none is there twice. Raises `fairlead.errors.ArgumentError` otherwise, and says what differs.
    """
    first = next(iter(reports.values()))
    for name, report in reports.items():
        for what, value in _facts(report).items():
            if value != _facts(first)[what]:
                raise _refused(f"shards of different runs: {what} differs", name)
    every, run = list(reports.values()), _run(reports)
    return report_of(
        cases,
        _results(reports),
        backend=first.backend,
        machine=replace(first.machine, platform=_distinct(report.machine.platform for report in every)),
        run=run,
        pack=first.pack,
        known=first.known,
        beyond=[result for report in every for result in report.beyond],
    )


def _facts(report: Report) -> dict[str, Any]:
    """What the shards of one run have in common. The platform is not: hosts of one CI differ in their patches."""
    facts = {name: getattr(report, name) for name in ("suite", "pack", "backend", "known")}
    machine = asdict(report.machine)
    del machine["platform"]
    return {**facts, **machine, **{name: getattr(report.run, name) for name in ("level", "seed", "device")}}


def _run(reports: Mapping[str, Report]) -> Run:
    runs = [report.run for report in reports.values()]
    shards = sorted((s for run in runs for s in run.shards), key=lambda shard: shard.index)
    where = ", ".join(reports)
    if len({shard.of for shard in shards}) > 1 or len(set(shards)) != len(shards):
        raise _refused(f"shards that do not fit together: {', '.join(map(str, shards))}", where)
    if lost := {f"{i}/{shards[0].of}" for i in range(1, shards[0].of + 1)} - {str(shard) for shard in shards}:
        raise _refused(f"shards missing: {', '.join(sorted(lost))}", where)
    return replace(
        runs[0],
        started=min(run.started for run in runs),
        seconds=sum(run.seconds for run in runs),
        shards=tuple(shards),
        incomplete=tuple(dict.fromkeys(reason for run in runs for reason in run.incomplete)),
    )


def _results(reports: Mapping[str, Report]) -> list[Result]:
    found: dict[str, tuple[str, Result]] = {}
    for name, report in reports.items():
        for result in report.results:
            if result.status is Status.NOT_RUN:
                continue
            if result.id in found:
                raise _refused(f"{result.id} has a result in two shards", f"{found[result.id][0]}, {name}")
            found[result.id] = name, result
    return [result for _, result in found.values()]


def _distinct(values: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(values))


def _refused(what: str, where: str) -> ArgumentError:
    return ArgumentError(what, where=where, next="give one report of each shard of one run, of the same --shard k/n")
