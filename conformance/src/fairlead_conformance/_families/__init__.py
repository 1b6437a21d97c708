"""The families of cases: each is a module that lists its cases and runs one.

A family is imported when one of its cases is first run. `manifest` imports none, and so no torch: whoever chooses
cases and gives them to others stays small, and is there at once.
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Sequence
from typing import Protocol, cast

from fairlead_conformance._case import Case, Level
from fairlead_conformance._families._listed import listed
from fairlead_conformance._observation import Observation
from fairlead_conformance._subject import Subject

__all__ = ["FAMILIES", "OTHER_FAMILIES", "Family", "family", "manifest"]

FAMILIES = (
    "ops",
    "opgrad",
    "directed",
    "errors",
    "ircompat",
    "graph",
    "semantics",
    "training",
    "models",
    "lifecycle",
    "robustness",
    "fuzz",
)
"""The families by name, in the order in which they run."""

OTHER_FAMILIES = "FAIRLEAD_CONFORMANCE_FAMILIES"
"""Modules, separated by commas, that stand in for the families where the suite itself is tested; in the environment, so
that every process sees the same. Such a run is never complete."""


class Family(Protocol):
    """What a module of this package has."""

    def cases(self) -> Sequence[Case]:
        """All cases of the family, the same in every process; those that no pack has are in ``cases.jsonl`` too."""
        ...

    def run(self, case: Case, subject: Subject, seen: Observation, /) -> None:
        """Run one; returns where the backend is right, and raises `Declined` or `Failed` otherwise."""
        ...


@functools.cache
def family(name: str) -> Family:
    """The family of that name."""
    return cast(Family, importlib.import_module(_modules()[name]))


def manifest(level: Level) -> tuple[Case, ...]:
    """Every case that a claim of the level covers, in order."""
    names = _modules()
    every = (family(name).cases() if os.environ.get(OTHER_FAMILIES) else listed(name) for name in names)
    return tuple(case for cases in every for case in cases if case.level <= level)


def _modules() -> dict[str, str]:
    """The module of each family, by its name."""
    if other := os.environ.get(OTHER_FAMILIES):
        return {name.rpartition(".")[2]: name for name in other.split(",")}
    return {name: f"fairlead_conformance._families.{name}" for name in FAMILIES}
