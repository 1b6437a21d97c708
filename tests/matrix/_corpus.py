"""The golden corpus on disk: modules by their hash, and an index of what was captured where and what it computes.

``index.json`` has, for each program and release of torch, the file of its graphs; and for each file the release that
wrote it, the inputs its graphs are run with, and two numbers of each output. Releases whose graphs are equal share a
file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from fairlead.ir import Module, module, read, write
from tests.matrix._summary import Summary
from tests.matrix.hashes import FOLDER, name_of

if TYPE_CHECKING:
    from tests.matrix._capture import Golden

__all__ = ["FOLDER", "Entry", "Index", "load", "load_module", "save", "store"]


class Entry(msgspec.Struct, frozen=True):
    """A file: the release of torch that wrote it, and for each of its graphs the inputs and what comes out."""

    torch: str
    inputs: tuple[str, ...]
    outputs: tuple[tuple[Summary | None, ...], ...]


class Index(msgspec.Struct, frozen=True):
    """What the corpus holds: program -> release of torch -> file, and file -> entry."""

    programs: dict[str, dict[str, str]] = {}
    files: dict[str, Entry] = {}


def load(folder: Path = FOLDER) -> Index:
    """The index of a corpus; an empty one where there is none."""
    path = folder / "index.json"
    return msgspec.json.decode(path.read_bytes(), type=Index) if path.exists() else Index()


def save(folder: Path, index: Index) -> None:
    """Write the index, and drop the files that it no longer names."""
    used = {name for releases in index.programs.values() for name in releases.values()}
    index = Index(
        {p: dict(sorted(r.items())) for p, r in sorted(index.programs.items())},
        {name: entry for name, entry in sorted(index.files.items()) if name in used},
    )
    (folder / "index.json").write_text(_text(index))
    for path in folder.glob("*.fir"):
        if path.stem not in used:
            path.unlink()


def store(folder: Path, index: Index, torch: str, program: str, golden: list[Golden]) -> None:
    """Add what a release of torch captured of a program."""
    name = name_of(g.graph for g in golden)
    index.programs.setdefault(program, {})[torch] = name
    if name not in index.files:
        # the producer is in the index: one file serves all releases that make it
        write(folder / f"{name}.fir", module(*(g.graph for g in golden), producer={}), weights="none", locations=False)
        index.files[name] = Entry(torch, tuple(" ".join(g.inputs) for g in golden), tuple(g.outputs for g in golden))


def load_module(name: str, folder: Path = FOLDER) -> Module:
    """The graphs of a file of the corpus."""
    return read(folder / f"{name}.fir").module


def _text(index: Index) -> str:
    """The index as JSON, a line for each program and each file, so that a change of one is a change of its line."""
    tables = (
        ",\n".join(f"{json.dumps(name)}: {msgspec.json.encode(row).decode()}" for name, row in table.items())
        for table in (index.programs, index.files)
    )
    programs, files = tables
    return f'{{"programs": {{\n{programs}\n}}, "files": {{\n{files}\n}}}}\n'
