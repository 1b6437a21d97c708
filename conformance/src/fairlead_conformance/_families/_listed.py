"""The cases of the families without their modules, which hold programs, and so import torch.

Those of the case pack are in its index; ``cases.jsonl`` has all others, a line each. `written` is what belongs there.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from fairlead_conformance._case import Case
from fairlead_conformance._pack import pack

__all__ = ["FILE", "listed", "written"]

FILE = Path(__file__).with_name("cases.jsonl")


def listed(family: str) -> Sequence[Case]:
    """The cases of a family, in the family's own order."""
    return pack().cases(family) if family in pack().manifest.counts else _others().get(family, ())


def written(cases: Iterable[Case]) -> bytes:
    """The file's lines for these cases; those of the pack have none."""
    kept = (case for case in cases if case.family not in pack().manifest.counts)
    return b"".join(_encoded(case) + b"\n" for case in kept)


@functools.cache
def _others() -> dict[str, list[Case]]:
    found: dict[str, list[Case]] = {}
    for line in FILE.read_bytes().splitlines():
        case = msgspec.json.decode(line, type=Case)
        found.setdefault(case.family, []).append(case)
    return found


def _encoded(case: Case) -> bytes:
    """Without what is as in most cases: a line that people can read in a diff."""
    usual = Case(id="", level=case.level)
    fields = msgspec.structs.asdict(case)
    return msgspec.json.encode(
        {name: value for name, value in fields.items() if name in ("id", "level") or value != getattr(usual, name)}
    )
