"""Which cases a run has: the level's, narrowed down, and of those one shard."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence

from fairlead.errors import ArgumentError
from fairlead_conformance._case import Case
from fairlead_conformance._families import manifest
from fairlead_conformance._run._settings import Settings, Shard

__all__ = ["matches", "select", "shard"]

_WORDS = frozenset({"and", "or", "not", "(", ")"})


def select(settings: Settings) -> tuple[Case, ...]:
    """The cases of the run, in the manifest's order; raises `fairlead.errors.ArgumentError` for what names nothing."""
    cases = manifest(settings.level)
    if unknown := sorted(set(settings.families) - {case.family for case in cases}):
        raise ArgumentError(
            f"no case of {settings.level.name} is of the family {unknown[0]!r}",
            where="--family",
            next=f"one of: {', '.join(dict.fromkeys(case.family for case in cases))}",
        )
    if settings.families:
        cases = tuple(case for case in cases if case.family in settings.families)
    if settings.ids:
        by_id = {case.id: case for case in cases}
        if unknown := sorted(set(settings.ids) - set(by_id)):
            raise ArgumentError(
                f"{settings.level.name} has no case {unknown[0]!r}", where="--id", next="list them: --collect"
            )
        cases = tuple(by_id[name] for name in dict.fromkeys(settings.ids))
    if settings.expression:
        wanted = matches(settings.expression)
        cases = tuple(case for case in cases if wanted(case.id))
        if not cases:
            raise ArgumentError(
                f"no case of {settings.level.name} matches {settings.expression!r}",
                where="-k",
                next="list them without it: --collect; those of a higher level need --level",
            )
    return shard(cases, settings.shard)


def shard(cases: Sequence[Case], part: Shard) -> tuple[Case, ...]:
    """One of the parts that take about equally long: each case, costliest first, goes to the part with least so far.

    Every case is in exactly one part, and where it is depends on the cases alone.

    >>> from fairlead_conformance import Level
    >>> cases = [Case(id=f"a/b/f32/s00{n}", level=Level.L1, cost=cost) for n, cost in enumerate((3, 1, 1, 1))]
    >>> [case.id[-1] for case in shard(cases, Shard(2, 2))]
    ['1', '2', '3']
    """
    loads = [0.0] * part.count
    own: set[str] = set()
    for case in sorted(cases, key=lambda case: (-case.cost, case.id)):
        least = loads.index(min(loads))
        loads[least] += case.cost
        if least == part.index - 1:
            own.add(case.id)
    return tuple(case for case in cases if case.id in own)


def matches(expression: str) -> Callable[[str], bool]:
    """A test of ids as pytest's ``-k``: parts of ids, joined by ``and``, ``or``, ``not`` and parentheses.

    >>> wanted = matches("graph and not (chain or f16)")
    >>> wanted("graph/empty/f32/s000"), wanted("graph/chain/f32/s000")
    (True, False)
    """
    tokens = re.findall(r"[()]|[^\s()]+", expression)
    source = " ".join(token if token in _WORDS else f"({token.lower()!r} in name)" for token in tokens)
    ends, begins = _WORDS - {")"}, _WORDS - {"(", "not"}
    try:
        if any(left not in ends and right not in begins for left, right in itertools.pairwise(tokens)):
            raise SyntaxError  # to Python, it would be a call
        code = compile(source, "-k", "eval")
    except SyntaxError:
        raise ArgumentError(
            f"{expression!r} is no expression", where="-k", next="write parts of ids, and, or, not, ( and )"
        ) from None
    return lambda case_id: bool(eval(code, {"__builtins__": {}}, {"name": case_id.lower()}))
