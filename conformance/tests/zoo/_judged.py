"""Which cases a faulty backend is judged by, and what comes of them."""

from __future__ import annotations

import contextlib
import fnmatch
import functools
import itertools
import time
from collections.abc import Iterator, Sequence

from conformance.tests.engine.faulty import Faulty
from conformance.tests.zoo._fault import Fault, registered, undisturbed
from fairlead_conformance import Case, Level, Result, Subject, execute, manifest
from fairlead_conformance._together import execute_together

_BULK = ("ops", "opgrad", "directed", "errors")
"""Families whose cases are of one op each: they run before the others, being cheap."""


@functools.cache
def _all() -> tuple[Case, ...]:
    return tuple(case for case in manifest(Level.L4) if case.family not in ("fuzz", "ircompat"))


def case_of(name: str) -> Case:
    """The case with an id."""
    return next(case for case in _all() if case.id == name)


@functools.cache
def _about() -> dict[str, list[Case]]:
    found: dict[str, list[Case]] = {}
    for case in _all():
        for op in case.ops:
            found.setdefault(op, []).append(case)
    return found


def aimed(aims: Sequence[str], level: Level) -> list[Case]:
    """The cases of a level in which a fault is to show: those of each pattern in turn, then those of each op.

    Within them the likeliest and cheapest come first.
    """
    found: dict[str, Case] = {}
    for aim in sorted(aims, key=lambda aim: "/" not in aim):
        cases = [c for c in _all() if fnmatch.fnmatchcase(c.id, aim)] if "/" in aim else _about().get(aim, [])
        found.update((c.id, c) for c in sorted(cases, key=_order) if c.level <= level and c.id not in found)
    return list(found.values())


def in_turn(ops: Sequence[str], level: Level) -> list[Case]:
    """The same of ops alone, one case of each op in turn, so that the first few are of all of them."""
    rounds = itertools.zip_longest(*(aimed((op,), level) for op in ops))
    found = {case.id: case for turn in rounds for case in turn if case is not None}
    return list(found.values())


def _order(case: Case) -> tuple[object, ...]:
    family, dtype = case.family, case.id.split("/")[2]
    return (
        family not in _BULK,
        family != "directed",
        case.cost > 1,
        case.level,
        len(case.ops),
        dtype != "f32",
        case.cost,
    )


def results(
    fault: Fault, level: Level, *, most: int | None = None, seconds: float = 60.0, seed: int = 0
) -> Iterator[Result]:
    """The results of the fault's cases, one after another, for so many seconds of the processor's time.

    Work beside it so costs no fault its life.
    """
    end = time.process_time() + seconds
    made = fault.make()
    for case in aimed(fault.aims, level) if most is None else in_turn(fault.aims, level)[:most]:
        if time.process_time() > end:
            return
        yield _result(made, case, seed)


def _result(backend: Faulty, case: Case, seed: int) -> Result:
    with registered(backend) as name, undisturbed():
        return execute(case, Subject(name, seed=seed))


def killed(
    fault: Fault, level: Level, *, most: int | None = None, seconds: float = 60.0, seed: int = 0
) -> Result | None:
    """The first failure of the fault's cases that an honest backend passes; None where it survives all of them."""
    with contextlib.closing(results(fault, level, most=most, seconds=seconds, seed=seed)) as found:
        return next((r for r in found if r.status.failed and not _fails_honestly(fault, r.id, seed)), None)


def killed_by(fault: Fault, case: str, *, seed: int = 0) -> Result | None:
    """The failure of one case, by its id, that an honest backend passes; None where the fault survives it."""
    found = _result(fault.make(), case_of(case), seed)
    return found if found.status.failed and not _fails_honestly(fault, case, seed) else None


def passed_together(fault: Fault, cases: Sequence[Case]) -> set[str]:
    """The ids of the cases that pass as one graph."""
    with registered(fault.make()) as name, undisturbed():
        return {result.id for result in execute_together(cases, Subject(name))}


def _fails_honestly(fault: Fault, case: str, seed: int) -> bool:
    """Whether an honest backend of the same capabilities fails the case too, which then says nothing."""
    return _result(fault.like(), case_of(case), seed).status.failed


__all__ = ["aimed", "case_of", "in_turn", "killed", "killed_by", "passed_together", "results"]
