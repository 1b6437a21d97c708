"""The hashes of a report: of itself, and of the suite that made it."""

from __future__ import annotations

import functools
import hashlib
from importlib import metadata
from pathlib import Path

import msgspec

from fairlead_conformance._report._data import Report, Suite

__all__ = ["digest", "installed_suite"]

PACKAGE = Path(__file__).parents[1]

_encoder = msgspec.json.Encoder(order="deterministic")


def digest(report: Report) -> str:
    """SHA-256 of everything in the report but its digest."""
    return hashlib.sha256(_encoder.encode(msgspec.structs.replace(report, digest=""))).hexdigest()


@functools.cache
def installed_suite(package: Path = PACKAGE) -> Suite:
    """The suite that runs here: its version, and one hash of the names and contents of all its files."""
    total = hashlib.sha256()
    for path in sorted(package.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            total.update(f"{path.relative_to(package).as_posix()} {content}\n".encode())
    return Suite(version=metadata.version("fairlead-conformance"), sha256=total.hexdigest())
