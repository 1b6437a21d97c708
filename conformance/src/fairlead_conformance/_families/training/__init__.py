"""Forward and backward: gradients against float64, and weights that learn as they do in eager."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead_conformance._case import Case
from fairlead_conformance._families.training import _autograd, _gradients, _learning
from fairlead_conformance._observation import Observation
from fairlead_conformance._programs import cases_of, checks_of, run_check
from fairlead_conformance._subject import Subject

__all__ = ["cases", "run"]

_CHECKS = checks_of(*map(vars, (_gradients, _autograd, _learning)))


def cases() -> Sequence[Case]:
    return cases_of("training", _CHECKS)


def run(case: Case, subject: Subject, seen: Observation) -> None:
    run_check(_CHECKS[case.subject], case, subject, seen)
