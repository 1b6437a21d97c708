"""What a program means besides its values: each check is a small program with one difficulty."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead_conformance._case import Case
from fairlead_conformance._families.semantics import (
    _control_flow,
    _modes,
    _mutation,
    _random_numbers,
    _results,
    _shapes,
    _structure,
    _weights,
)
from fairlead_conformance._observation import Observation
from fairlead_conformance._programs import cases_of, checks_of, run_check
from fairlead_conformance._subject import Subject

__all__ = ["cases", "run"]

_CHECKS = checks_of(
    *map(vars, (_results, _mutation, _weights, _random_numbers, _shapes, _modes, _structure, _control_flow))
)


def cases() -> Sequence[Case]:
    return cases_of("semantics", _CHECKS)


def run(case: Case, subject: Subject, seen: Observation) -> None:
    run_check(_CHECKS[case.subject], case, subject, seen)
