"""A wheel as a plugin: found, imported, asked and loaded without harm, in this process and in fresh ones."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead_conformance._case import Case, Level
from fairlead_conformance._families.lifecycle import _loading, _processes, _programs
from fairlead_conformance._families.lifecycle._question import Question
from fairlead_conformance._observation import Observation
from fairlead_conformance._subject import Subject

__all__ = ["cases", "run"]

_QUESTIONS = {
    item.name: item
    for module in (_loading, _processes, _programs)
    for item in vars(module).values()
    if isinstance(item, Question)
}


def cases() -> Sequence[Case]:
    return [
        Case(
            id=f"lifecycle/{name}/none/s000",
            level=question.level,
            cost=question.cost,
            mandatory=question.level is Level.L0,
        )
        for name, question in sorted(_QUESTIONS.items())
    ]


def run(case: Case, subject: Subject, seen: Observation) -> None:
    _QUESTIONS[case.subject].body(subject, seen)
