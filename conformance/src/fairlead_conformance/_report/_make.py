"""A report of what a run found, and of several runs' reports as one."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from fairlead_conformance._case import Case
from fairlead_conformance._report._data import FORMAT, Judged, KnownFailure, Machine, Pack, Report, Run
from fairlead_conformance._report._digest import digest, installed_pack, installed_suite, modified
from fairlead_conformance._report._totals import by_chance, claim, core_coverage, correct, count, coverage, missing
from fairlead_conformance._result import Result
from fairlead_conformance._status import Status

__all__ = ["report_of"]


def report_of(
    cases: Sequence[Case],
    results: Sequence[Result],
    *,
    backend: Judged,
    machine: Machine,
    run: Run,
    pack: Pack | None = None,
    known: Sequence[KnownFailure] = (),
    beyond: Sequence[Result] = (),
) -> Report:
    """The report of a run over ``cases``, the manifest of its level.

    ``results`` come in any order; a case without one is NOT_RUN. ``pack``: where it is not the one installed here.
    Raises `ValueError` for a result of no case, or two of one, which only a defect of the suite can give.
    """
    given = {result.id: result for result in results}
    if len(given) != len(results) or given.keys() - {case.id for case in cases}:
        raise ValueError("results that are not one of each case")
    every = {case.id: given.get(case.id, Result(id=case.id, status=Status.NOT_RUN)) for case in cases}
    if changed := modified():
        reason = f"the suite's files are not as installed: {', '.join(changed)}"
        run = replace(run, incomplete=tuple(dict.fromkeys((*run.incomplete, reason))))
    counts = count(list(every.values()))
    reasons = missing(run, counts)
    chance = by_chance(cases, every)
    report = Report(
        format=FORMAT,
        suite=installed_suite(),
        pack=pack or installed_pack(),
        backend=backend,
        machine=machine,
        run=run,
        complete=not reasons,
        reasons=reasons,
        claim=None if reasons else claim(run, cases, every),
        correct=correct(counts, by_chance=chance),
        coverage=coverage(counts, by_chance=chance),
        counts=counts,
        known=tuple(sorted(known, key=lambda entry: entry.id)),
        results=tuple(every.values()),
        beyond=tuple(beyond),
        core=core_coverage(cases, every, by_chance=chance),
    )
    return replace(report, digest=digest(report))
