"""The hashes of a report: of itself, and of the suite and the case pack that made it."""

from __future__ import annotations

import base64
import csv
import functools
import hashlib
from importlib import metadata
from pathlib import Path

import msgspec

from fairlead_conformance._pack import pack
from fairlead_conformance._report._data import Pack, Report, Suite

__all__ = ["digest", "installed_pack", "installed_suite", "modified"]

PACKAGE = Path(__file__).parents[1]

_encoder = msgspec.json.Encoder(order="deterministic")


def digest(report: Report) -> str:
    """SHA-256 of everything in the report but its digest."""
    return hashlib.sha256(_encoder.encode(msgspec.structs.replace(report, digest=""))).hexdigest()


@functools.cache
def installed_suite(package: Path = PACKAGE) -> Suite:
    """The suite that runs here: its version, and one hash of the names and contents of all its files."""
    total = hashlib.sha256()
    for path in _own(package):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{path.relative_to(package).as_posix()} {content}\n".encode())
    return Suite(version=metadata.version("fairlead-conformance"), sha256=total.hexdigest())


def installed_pack() -> Pack:
    """The case pack that the suite here reads."""
    said = pack().manifest
    return Pack(version=said.version, sha256=said.sha256)


@functools.cache
def modified(package: Path = PACKAGE) -> tuple[str, ...]:
    """The files of the installed wheel that are not as it brought them, or that it did not bring.

    Read from the RECORD beside the package; a package without one, such as an editable install, has none to compare
    with, and gives no names. A verifier with the same version of the wheel sees the difference by `installed_suite`.
    """
    record = {
        Path(path): kept.removeprefix("sha256=")
        for info in package.parent.glob("fairlead_conformance-*.dist-info")
        for path, kept, _ in csv.reader((info / "RECORD").read_text("utf-8").splitlines())
        if path.startswith(f"{package.name}/")
    }
    present = {path.relative_to(package.parent): path for path in _own(package)} if record else {}
    changed = [name for name in record.keys() | present.keys() if record.get(name) != _kept(present.get(name))]
    return tuple(sorted(name.as_posix() for name in changed if "__pycache__" not in name.parts))


def _own(package: Path) -> list[Path]:
    return sorted(path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def _kept(path: Path | None) -> str | None:
    """The hash of a file as RECORD has it."""
    if path is None:
        return None
    return base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).rstrip(b"=").decode()
