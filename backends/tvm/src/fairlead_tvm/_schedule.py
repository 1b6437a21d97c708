"""What the templates of products and convolutions leave open, and the choices that tuning tries."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from fairlead_tvm._tvm import vector_bytes

__all__ = ["DEFAULT", "Schedule", "moves", "most_rows"]


class Schedule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Sizes of loops; whatever they are, the results are the same but for the order in which numbers are added.

    ``rows``: of a tile, 0 for as many as registers hold and leave few over; ``panels``: of a tile, as far as registers
    hold them, 0 for one, or more where there are few rows; ``block``: of the left factor, used again
    while they are in the second cache; ``depth``: how much of the inner dimension is done at once, so that a panel and
    a tile of it stay in the first caches; ``copy``: whether the left factor is copied tile by tile, ``auto`` where its
    rows share lines of the first cache; ``spread``: whether other threads take a part.
    """

    rows: Annotated[int, msgspec.Meta(ge=0, le=32)] = 0
    block: Annotated[int, msgspec.Meta(ge=1, le=1 << 20)] = 112
    depth: Annotated[int, msgspec.Meta(ge=16, le=1 << 20)] = 1024
    panels: Annotated[int, msgspec.Meta(ge=0, le=8)] = 0
    copy: Literal["auto", "always", "never"] = "auto"
    spread: bool = True


DEFAULT = Schedule()


def most_rows() -> int:
    """How many rows of two vectors the registers hold, beside what is multiplied."""
    return 14 if vector_bytes() == 64 else 6


def moves(schedule: Schedule, threads: int) -> list[Schedule]:
    """The schedules that are next to one: each differs in one choice, and the list is as long for all of them."""
    most = most_rows()
    rows = (most - 1, 2 * most // 3, most // 2, 8)
    changes: list[dict[str, Any]] = [
        *({"rows": n} for n in rows),
        {"copy": "never" if schedule.copy == "always" else "always"},
        {"copy": "never" if schedule.copy == "auto" else "auto"},
        *({"panels": n} for n in (1, 2, 3, 6)),
        *({"block": n} for n in (24, 48, 448)),
        *({"depth": n} for n in (256, 512, 1 << 20)),
        *([{"spread": False}] if threads > 1 else ()),
    ]
    return [msgspec.structs.replace(schedule, **change) for change in changes]
