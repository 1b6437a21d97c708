"""What is counted of results: the two figures, why a run is not complete, and the level that it supports."""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence

from fairlead.ir import opset
from fairlead_conformance._case import Case, Level
from fairlead_conformance._report._data import Figure, Run, Shard
from fairlead_conformance._result import Result
from fairlead_conformance._status import Status

__all__ = ["by_chance", "claim", "core_coverage", "correct", "count", "coverage", "missing"]

_CORE = frozenset({"base", "nn"})
"""The tiers of the opset that nearly every program is made of: base, and the composites that mean what base ops do."""


def count(results: Sequence[Result]) -> dict[Status, int]:
    """How many results have each status, in the order of `Status`."""
    found = collections.Counter(result.status for result in results)
    return {status: found[status] for status in Status}


def by_chance(cases: Sequence[Case], results: Mapping[str, Result]) -> bool:
    """Whether what passed says nothing: of the mandatory cases of ops that the backend took on, it has none right.

    A backend that gives zeros, or its inputs, or nothing at all, is right where that is what is asked for; it adds no
    two numbers. One that takes on none of them, as for want of the dtype, is not judged by them.
    """
    own = [results[case.id].status for case in cases if case.mandatory and case.ops]
    return any(status.failed for status in own) and not any(status.passed for status in own)


def correct(counts: Mapping[Status, int], *, by_chance: bool = False) -> Figure:
    """Passes, of everything that the backend took on; none where they are `by_chance`."""
    failed = sum(n for status, n in counts.items() if status.failed)
    whole = _passed(counts) + failed + counts[Status.KNOWN_FAIL]
    return Figure(part=0 if by_chance else _passed(counts), whole=whole)


def coverage(counts: Mapping[Status, int], *, by_chance: bool = False) -> Figure:
    """Passes, of all cases; none where they are `by_chance`."""
    return Figure(part=0 if by_chance else _passed(counts), whole=sum(counts.values()))


def core_coverage(cases: Sequence[Case], results: Mapping[str, Result], *, by_chance: bool = False) -> Figure:
    """Passes that are the backend's own, of all samples of core ops; none where they are `by_chance`.

    A sample of core ops is a case about ops that are all in the tiers base and nn of the opset.
    """
    core = [results[case.id].status for case in cases if case.ops and all(map(_is_core, case.ops))]
    return Figure(part=0 if by_chance else core.count(Status.PASS_NATIVE), whole=len(core))


def _is_core(op: str) -> bool:
    spec = opset.spec(op)
    return spec is not None and spec.tier in _CORE


def _passed(counts: Mapping[Status, int]) -> int:
    return counts[Status.PASS_NATIVE] + counts[Status.PASS_EXTERN]


def missing(run: Run, counts: Mapping[Status, int]) -> tuple[str, ...]:
    """Why the run is not complete, a line each: what the runner knows, and what the results show."""
    reasons = list(run.incomplete)
    if absent := _absent(run.shards):
        reasons.append(f"shards missing: {', '.join(map(str, absent))}")
    if lost := counts[Status.NOT_RUN]:
        reasons.append(f"{lost} of {sum(counts.values())} cases were not run")
    if errors := counts[Status.HARNESS_ERROR]:
        reasons.append(f"{errors} cases met a defect of the suite itself")
    if not sum(counts.values()):
        reasons.append("the level has no cases")
    return tuple(reasons)


def _absent(shards: Sequence[Shard]) -> list[Shard]:
    of = max((shard.of for shard in shards), default=1)
    present = {shard.index for shard in shards}
    return [Shard(index=i, of=of) for i in range(1, of + 1) if i not in present]


def claim(run: Run, cases: Sequence[Case], results: Mapping[str, Result]) -> Level | None:
    """The highest level that the results support, None for none; only a complete run supports any.

    A level is supported where every level below it is, none of its cases failed, every mandatory one passed, and at
    least one case of its own passed: who declines everything has shown nothing. A known failure of a case that is not
    mandatory does not stand in the way; the figure ``correct`` tells of it.
    """
    reached = None
    for level in Level:
        own = [case for case in cases if case.level is level]
        if level > run.level or not all(_stands(case, results[case.id].status) for case in own):
            break
        if own and not any(results[case.id].status.passed for case in own):
            break
        reached = level if own else reached
    return reached


def _stands(case: Case, status: Status) -> bool:
    return status.passed or (status in (Status.DECLINED, Status.KNOWN_FAIL) and not case.mandatory)
