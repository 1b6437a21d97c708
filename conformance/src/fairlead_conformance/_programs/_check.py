"""What one check of a family is, and the cases that a family's checks make."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from fairlead_conformance._case import Case, Level
from fairlead_conformance._observation import Observation
from fairlead_conformance._programs._trial import Trial
from fairlead_conformance._subject import Subject

__all__ = ["Check", "cases_of", "check", "checks_of", "run_check"]


@dataclasses.dataclass(frozen=True)
class Check:
    """A program and what is done with it; the other fields are those of its `Case`."""

    body: Callable[[Trial], None]
    level: Level
    needs: tuple[str, ...] = ()
    dtype: str = "f32"
    cost: float = 0.5
    mandatory: bool = False

    @property
    def name(self) -> str:
        """The function's name, as ids have it."""
        return self.body.__name__.replace("_", "-")

    def case(self, family: str) -> Case:
        return Case(
            id=f"{family}/{self.name}/{self.dtype}/s000",
            level=self.level,
            needs=self.needs,
            dtypes=(self.dtype,),
            cost=self.cost,
            mandatory=self.mandatory,
        )


def check(
    level: Level = Level.L1,
    *,
    needs: Sequence[str] = (),
    dtype: str = "f32",
    cost: float = 0.5,
    mandatory: bool = False,
) -> Callable[[Callable[[Trial], None]], Check]:
    """Make a function of a `Trial` a check.

    >>> @check(Level.L1)
    ... def doubled_twice(trial):
    ...     trial.compile(lambda x: x * 2)(trial.normal(3))
    >>> doubled_twice.case("semantics").id
    'semantics/doubled-twice/f32/s000'
    """
    return lambda body: Check(body, level, tuple(needs), dtype, cost, mandatory)


def checks_of(*namespaces: Mapping[str, object]) -> Mapping[str, Check]:
    """The checks among the names of modules, by what ids call them."""
    found = [item for names in namespaces for item in names.values() if isinstance(item, Check)]
    return {item.name: item for item in found}


def cases_of(family: str, checks: Mapping[str, Check]) -> Sequence[Case]:
    """One case for each check."""
    return sorted((item.case(family) for item in checks.values()), key=lambda case: case.id)


def run_check(item: Check, case: Case, subject: Subject, seen: Observation) -> None:
    """Run the check; raises `Failed` where anything is wrong, then `Declined` where the backend refused a node."""
    with Trial(case, subject, seen) as trial:
        item.body(trial)
