"""The page of promises: a row for each, a column for each backend, the reasons below."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping

import torch

from ._hold import PROMISES
from ._outcome import Outcome, State

__all__ = ["PAGE", "cells", "page"]

PAGE = "docs/results/promises.md"

Found = Mapping[tuple[str, str], Outcome]
"""What came of each promise, by its name, on each backend."""

_LEGEND = {
    State.works: "results, and gradients where there are some, are eager's, and the backend computed them",
    State.in_part: "the same, but eager computed what the backend declined",
    State.declined: "the same, but all of it was eager's",
    State.not_run: "nothing is known",
    State.fails: "wrong, or an error",
}


def page(found: Found, backends: tuple[str, ...], device: str) -> str:
    """The outcomes as a page in Markdown."""
    notes: dict[str, int] = {}
    rows = list(_rows(found, backends, notes))
    used = [s for s in State if any(o.state is s for o in found.values())]
    return "\n".join(
        [
            "# Promises, by backend",
            "",
            f"Written by `make promises`: torch {torch.__version__} on {device}, {platform.system()} "
            f"{platform.machine()}. Each cell is a test that does what a user does "
            "([tests/promises](../../tests/promises)).",
            "",
            *(f"- **{state}**: {_LEGEND[state]}." for state in used),
            "",
            *rows,
            "",
            "## Reasons",
            "",
            *(f"{number}. {reason}" for reason, number in notes.items()),
            "",
        ]
    )


def _rows(found: Found, backends: tuple[str, ...], notes: dict[str, int]) -> Iterator[str]:
    yield f"| promise | {' | '.join(backends)} |"
    yield f"|{' --- |' * (len(backends) + 1)}"
    section = ""
    for promise in PROMISES:
        if promise.section != section:
            section = promise.section
            yield f"| **{section}** |{' |' * len(backends)}"
        yield f"| {promise.text} | {' | '.join(_cell(found[promise.name, b], notes) for b in backends)} |"


def _cell(outcome: Outcome, notes: dict[str, int]) -> str:
    numbers = [notes.setdefault(reason, len(notes) + 1) for reason in outcome.reasons]
    return f"{outcome.state} ({', '.join(map(str, numbers))})" if numbers else str(outcome.state)


def cells(text: str) -> dict[str, dict[str, str]]:
    """The cells of a page: for each promise, by backend."""
    lines = [[c.strip() for c in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    (_, *backends), _, *rows = lines
    return {row[0]: dict(zip(backends, row[1:], strict=True)) for row in rows if not row[0].startswith("**")}
