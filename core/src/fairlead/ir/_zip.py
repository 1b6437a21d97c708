"""A deterministic zip: stored entries in a fixed order, aligned so that they can be mapped, read with mistrust."""

from __future__ import annotations

import mmap
import os
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from typing import BinaryIO, TypeAlias

from fairlead.ir._messagepack import malformed

Pieces: TypeAlias = "Iterable[bytes | memoryview]"

ALIGNMENT = 64
# A private extra field of the zip format, whose bytes move the entry to an aligned place; zipalign has the same idea.
_PADDING = 0xD935
_LOCAL_HEADER = struct.Struct("<4s2B4HL2L2H")
_ZIP64_EXTRA = 20
_LARGE = 1 << 31

# What zipfile raises over malformed archives; it documents the first only.
_ZIP_ERRORS = (
    zipfile.BadZipFile, zlib.error, struct.error, NotImplementedError, RuntimeError, ValueError, EOFError, OSError,
)  # fmt: skip


def write_zip(file: BinaryIO, entries: Mapping[str, Pieces], large: str) -> None:
    """Write entries in their order; the one called ``large`` may be larger than 2 GiB."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, pieces in entries.items():
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.create_system = 3
            info.external_attr = 0o644 << 16
            zip64 = name == large
            start = file.tell() + _LOCAL_HEADER.size + len(name) + 4 + (_ZIP64_EXTRA if zip64 else 0)
            info.extra = struct.pack("<HH", _PADDING, -start % ALIGNMENT) + bytes(-start % ALIGNMENT)
            with archive.open(info, "w", force_zip64=zip64) as entry:
                for piece in pieces:
                    entry.write(piece)


def read_zip(path: str | os.PathLike[str], largest: Mapping[str, int], mapped: str) -> dict[str, memoryview]:
    """The entries of a file, each known and at most so large. The one called ``mapped`` is not read but mapped.

    The mapping is private: it may be written to, and the file does not change.
    """
    where = os.fspath(path)
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        try:
            with zipfile.ZipFile(file) as archive:
                infos = _checked(archive, size, largest, where)
                read = {i.filename: memoryview(archive.read(i)) for i in infos if i.filename != mapped}
                ranges = sorted((i.header_offset, _start(file, i), i) for i in infos)
        except _ZIP_ERRORS as error:
            raise malformed(f"not a .fir file: {error or type(error).__name__}", where) from error
        end = 0
        for header, start, info in ranges:
            if header < end or (end := start + info.file_size) > size:
                raise malformed(f"the entry {info.filename} overlaps another or the end", where)
            if info.filename == mapped:
                whole = memoryview(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY))
                read[mapped] = whole[start : start + info.file_size]
    return read


def _start(file: BinaryIO, info: zipfile.ZipInfo) -> int:
    """Where the bytes of an entry start."""
    file.seek(info.header_offset)
    fields = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
    return info.header_offset + _LOCAL_HEADER.size + int(fields[-2]) + int(fields[-1])


def _checked(archive: zipfile.ZipFile, size: int, largest: Mapping[str, int], where: str) -> list[zipfile.ZipInfo]:
    seen: set[str] = set()
    for info in archive.infolist():
        name = info.filename
        if name not in largest or name in seen:
            raise malformed(f"an unknown or repeated entry {name[:80]!r}", where)
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
            raise malformed(f"the entry {name} is compressed or encrypted", where)
        if info.file_size != info.compress_size or info.file_size > min(size, largest[name]):
            raise malformed(f"the entry {name} claims {info.file_size} bytes", where)
        seen.add(name)
    return archive.infolist()
