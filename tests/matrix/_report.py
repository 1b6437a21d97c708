"""What a run of the matrix found: a table for people, and the page that is kept of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rich.table import Table

from tests.matrix._causes import REFERENCE, causes
from tests.matrix._corpus import Index

__all__ = ["Row", "Step", "page", "table"]


class Step(NamedTuple):
    """What became of one step: whether it passed, what it says of itself, and how long it took."""

    passed: bool
    text: str
    seconds: float


class Row(NamedTuple):
    """One release of torch: its full version, the steps by name, and the GB of its environment, 0 for the caller's."""

    torch: str
    steps: Mapping[str, Step]
    gigabytes: float


HEADINGS = ("torch", "models equal", "ops equal", "capture", "corpus", "threads", "semantics", "minutes", "GB")


def table(index: Index, rows: Mapping[str, Row]) -> Table:
    """The rows, to be printed."""
    found = Table(*HEADINGS, title=f"Golden programs by release of torch; equal: the same hash as with {REFERENCE}")
    for release, row in rows.items():
        found.add_row(*_cells(index, release, row))
    return found


def page(index: Index, rows: Mapping[str, Row]) -> str:
    """The rows as a page in Markdown, with a line for each program that differs somewhere."""
    lines = [
        "# Releases of torch",
        "",
        f"Written by `make matrix`. Equal: the graphs have the hashes that torch {REFERENCE} gives them. GB: on disk.",
        "",
        f"| {' | '.join(HEADINGS)} |",
        f"|{' --- |' * len(HEADINGS)}",
        *(f"| {' | '.join(_cells(index, release, row))} |" for release, row in rows.items()),
        "",
        "## What differs",
        "",
        "`python -m tests.matrix.differences` lists it line by line.",
        "",
        *_differences(index),
    ]
    return "\n".join(lines) + "\n"


def _differences(index: Index) -> Iterator[str]:
    programs: dict[str, list[str]] = {}
    for name, found in index.programs.items():
        for release, file in found.items():
            if file != found.get(REFERENCE, file):
                for cause in causes(name, release):
                    programs.setdefault(cause.text, []).append(f"{name} ({release})")
    for text, names in programs.items():
        yield f"- {text[0].upper()}{text[1:]}: {', '.join(names)}."


def _cells(index: Index, release: str, row: Row) -> list[str]:
    minutes = sum(step.seconds for step in row.steps.values()) / 60
    equal = [_equal(index, release, ops=False), _equal(index, release, ops=True)]
    size = f"{row.gigabytes:.1f}" if row.gigabytes else "-"
    return [row.torch, *equal, *(step.text for step in row.steps.values()), f"{minutes:.0f}", size]


def _equal(index: Index, release: str, *, ops: bool) -> str:
    pairs = [
        (found[release], found[REFERENCE])
        for name, found in index.programs.items()
        if name.startswith("op-") == ops and release in found and REFERENCE in found
    ]
    same = sum(a == b for a, b in pairs)
    return f"{same} of {len(pairs)}" + (f" ({same / len(pairs):.0%})" if pairs else "")
