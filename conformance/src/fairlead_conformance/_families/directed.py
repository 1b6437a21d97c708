"""Cases made by hand: what PyTorch's samples lack, from duplicate indices to a sum of a million halves."""

from __future__ import annotations

import collections
import functools
from collections.abc import Sequence
from typing import Any

from fairlead.ir import Graph
from fairlead_conformance._case import Case, Level
from fairlead_conformance._families._directed import ROWS, Row
from fairlead_conformance._graphs import check_graph
from fairlead_conformance._observation import Observation
from fairlead_conformance._subject import Subject

__all__ = ["cases", "example", "run"]


def cases() -> Sequence[Case]:
    return [case for case, _ in _table().values()]


def run(case: Case, subject: Subject, seen: Observation) -> None:
    check_graph(*example(case, subject), subject, seen)


def example(case: Case, subject: Subject) -> tuple[Graph, Sequence[Any]]:
    """The one graph of a case, and inputs for it."""
    return _table()[case.id][1].make()


@functools.cache
def _table() -> dict[str, tuple[Case, Row]]:
    """The cases by id; rows of one subject and dtype are numbered as they come."""
    numbers: collections.Counter[tuple[str, str]] = collections.Counter()
    found: dict[str, tuple[Case, Row]] = {}
    for row in ROWS:
        key = row.subject, row.dtype
        id_ = f"directed/{row.subject}/{row.dtype}/s{numbers[key]:03d}"
        numbers[key] += 1
        level = row.level if row.dtype in _CORE else max(row.level, Level.L2)
        case = Case(id=id_, level=level, needs=row.needs, dtypes=(row.dtype,), ops=row.ops, cost=0.03)
        found[id_] = case, row
    return dict(sorted(found.items()))


_CORE = frozenset({"f32", "f16", "bf16", "i64", "i32", "bool"})
"""Dtypes of core inference."""
