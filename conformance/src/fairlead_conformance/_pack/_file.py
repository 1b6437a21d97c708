"""The file of a pack: a zip of a manifest, an index, and blocks of cases, read as far as is asked for.

| entry | has |
|---|---|
| ``manifest.json`` | `Manifest` |
| ``index.msgpack`` | an `Entry` a case, sorted by family and id; case ``n`` is in block ``n // BLOCK`` |
| ``blocks/NNNN.msgpack`` | a `Content` for each of `BLOCK` cases |
"""

from __future__ import annotations

import functools
import hashlib
import io
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from fairlead.ir import IR_VERSION
from fairlead.ir.opset import OPSET_VERSION
from fairlead_conformance._case import Case
from fairlead_conformance._pack._data import Content, Entry, Manifest

__all__ = ["BLOCK", "FORMAT", "Pack", "digest", "pack", "write"]

FORMAT = "fairlead-case-pack"
BLOCK = 32

_MANIFEST, _INDEX = "manifest.json", "index.msgpack"
_DAY = (1980, 1, 1, 0, 0, 0)


class Pack:
    """A pack that was opened: its manifest at once, everything else when it is first asked for."""

    def __init__(self, path: Path) -> None:
        # In memory: a file that is open has one position for all processes that were forked.
        self._zip = zipfile.ZipFile(io.BytesIO(path.read_bytes()))
        self.path = path
        self.manifest = msgspec.json.decode(self._zip.read(_MANIFEST), type=Manifest)
        if self.manifest.format != FORMAT:
            raise ValueError(f"{path}: its format is {self.manifest.format!r}, not {FORMAT!r}")
        self._block = functools.lru_cache(8)(self._read_block)

    @functools.cached_property
    def entries(self) -> Sequence[Entry]:
        """The index, in order."""
        return msgspec.msgpack.decode(self._zip.read(_INDEX), type=list[Entry])

    @functools.cached_property
    def _places(self) -> dict[str, int]:
        return {entry.id: place for place, entry in enumerate(self.entries)}

    def cases(self, family: str) -> list[Case]:
        """The cases of a family, variants included, in order."""
        return [case for entry in self.entries if entry.family == family for case in entry.cases()]

    def content(self, id_: str) -> Content:
        """What the case has, by its id without a variant. A KeyError where the pack has no such case."""
        place = self._places[id_]
        return msgspec.msgpack.decode(self._block(place // BLOCK)[place % BLOCK], type=Content)

    def verify(self) -> bool:
        """Whether the file holds what it was written with."""
        names = [name for name in self._zip.namelist() if name != _MANIFEST]
        return digest({name: self._zip.read(name) for name in names}) == self.manifest.sha256

    def _read_block(self, number: int) -> list[msgspec.Raw]:
        return msgspec.msgpack.decode(self._zip.read(_block_name(number)), type=list[msgspec.Raw])


@functools.cache
def pack() -> Pack:
    """The pack of this version of the suite."""
    return Pack(Path(__file__).with_name("cases-1.0.zip"))


def write(
    file: BinaryIO, version: str, cases: Iterable[tuple[Entry, Content]], producer: Mapping[str, str]
) -> Manifest:
    """Write a pack: the same cases give the same bytes, in whatever order they come. Returns its manifest."""
    ordered = sorted(cases, key=lambda pair: (pair[0].family, pair[0].id))
    entries = {_INDEX: msgspec.msgpack.encode([entry for entry, _ in ordered])}
    for start in range(0, len(ordered), BLOCK):
        block = [content for _, content in ordered[start : start + BLOCK]]
        entries[_block_name(start // BLOCK)] = msgspec.msgpack.encode(block)
    manifest = Manifest(
        format=FORMAT,
        version=version,
        ir_version=IR_VERSION,
        opset=OPSET_VERSION,
        counts=_counts(entry for entry, _ in ordered),
        producer=dict(sorted(producer.items())),
        sha256=digest(entries),
    )
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as target:
        manifest_text = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
        for name, data in {_MANIFEST: manifest_text, **entries}.items():
            info = zipfile.ZipInfo(name, _DAY)
            info.external_attr = 0o644 << 16
            target.writestr(info, data, zipfile.ZIP_DEFLATED, 9)
    return manifest


def digest(entries: Mapping[str, bytes]) -> str:
    """The SHA-256 of names and contents, in the order of names, each with its length before it."""
    total = hashlib.sha256()
    for name, data in sorted(entries.items()):
        total.update(b"%d %s %d " % (len(name), name.encode(), len(data)))
        total.update(data)
    return total.hexdigest()


def _block_name(number: int) -> str:
    return f"blocks/{number:04d}.msgpack"


def _counts(entries: Iterable[Entry]) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = {}
    for entry in entries:
        levels = counts.setdefault(entry.family, {})
        for level in (entry.level, *(level for _, level in entry.variants)):
            levels[level.name] = levels.get(level.name, 0) + 1
    return {family: dict(sorted(levels.items())) for family, levels in counts.items()}
