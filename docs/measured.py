"""What the pages of measurements say of one backend, as a section of its page on the site.

The tables stand in ``docs/results``, where commands write them; in the repository a backend's README leads there. On
the site its rows are put together on its own page, so that they are written once and read in both places.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["measured"]

PAGES = {
    "compare-cpu.md": "",
    "compare-cpu-xeon.md": ", on a Xeon",
    "compare-cuda.md": "",
    "compare-cuda-training.md": "",
    "overhead-cuda.md": "",
    "overhead-cpu.md": "",
    "frozen-cpu.md": "",
}
"""Those with rows for a backend, in the order of the section, and what tells two of one title apart."""

ELSEWHERE = {("compare-cuda.md", "eager"), ("compare-cuda-training.md", "eager")}
"""Rows that are called like a backend and are not its own: there, PyTorch without a compiler."""

_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


class _Table(NamedTuple):
    """The rows about one backend, under the heading, with the heads and the rules of the table that they are from."""

    heading: str
    heads: list[str]
    rules: list[str]
    rows: list[list[str]]


def measured(backend: str, results: Path) -> str:
    """The section, from the pages in a folder; links lead to ``../results``."""
    lines = ["", "## Measured beside others", ""]
    for page, told_apart in PAGES.items():
        text = (results / page).read_text("utf-8")
        tables = [] if (page, backend) in ELSEWHERE else list(_tables(text, backend))
        if tables:
            title, source = text.split("\n")[0].removeprefix("# "), text.split("\n\n")[1].replace("\n", " ")
            lines += [f"### [{title}{told_apart}](../results/{page})", "", source, "", *_merged(tables)]
    promises = (results / "promises.md").read_text("utf-8")
    lines += ["### [Promises](../results/promises.md)", "", *_promises(promises, backend)]
    return "\n".join(lines) + "\n"


def _tables(text: str, backend: str) -> Iterator[_Table]:
    heading = ""
    for block in re.split(r"\n\n", text):
        if block.startswith("#"):
            heading = block.lstrip("# ").partition("\n")[0]
        rows = _rows(block)
        own = _own(rows[2:], backend)
        if own:
            yield _Table(heading, rows[0], rows[1], own)


def _rows(block: str) -> list[list[str]]:
    """The cells of a table; none where the block is something else."""
    lines = block.strip().split("\n")
    if not all(line.startswith("|") for line in lines):
        return []
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def _own(rows: list[list[str]], backend: str) -> list[list[str]]:
    """The rows about the backend: named by it and something more, and those without a name right after one."""
    found: list[list[str]] = []
    mine = False
    for row in rows:
        mine = bool(re.match(rf"(fairlead )?{backend}($|, | over )", row[0])) or (mine and not row[0])
        found += [row] if mine else []
    return found


def _merged(tables: list[_Table]) -> Iterator[str]:
    """One table with a row for each heading, where each has one row; else each under its heading."""
    if any(len(table.rows) > 1 for table in tables):
        for table in tables:
            yield from (f"**{table.heading}**", "") if len(tables) > 1 else ()
            yield from _written([table.heads, table.rules, *table.rows])
        return
    widest = max(tables, key=lambda table: len(table.heads))
    rows = [[table.heading, *table.rows[0][1:]] for table in tables]
    filled = [row + [""] * (len(widest.heads) - len(row)) for row in rows]
    yield from _written([widest.heads, widest.rules, *filled])


def _written(rows: list[list[str]]) -> Iterator[str]:
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def _promises(text: str, backend: str) -> Iterator[str]:
    """How many promises hold, and the others with their reasons."""
    (rows,) = (rows for block in text.split("\n\n") if (rows := _rows(block)))
    column = rows[0].index(backend)
    reasons = dict(re.findall(r"^(\d+)\. (.*)$", text, re.MULTILINE))
    tried = [(row[0], row[column]) for row in rows[2:] if row[column]]
    others = [(name, *said.rstrip(")").partition(" (")[::2]) for name, said in tried if said != "works"]
    if {said for _, said, _ in others} == {"not run here"} and len(others) == len(tried):
        yield f"None of {len(tried)} was tried: {', '.join(sorted({reasons[number] for *_, number in others}))}."
        return
    yield f"Of {len(tried)} promises {len(tried) - len(others)} work in full where the page was made."
    yield ""
    found = [[_LINK.sub(r"\1", name), said, reasons.get(number, "")] for name, said, number in others]
    yield from _written([["promise", "", "why"], ["---"] * 3, *found]) if found else ()
