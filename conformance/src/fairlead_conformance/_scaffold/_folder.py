"""Writing files into a folder that may have some already: what is there is kept, always."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fairlead.errors import ArgumentError

__all__ = ["add", "refuse_filled"]


def refuse_filled(folder: Path) -> None:
    """Raise `ArgumentError` unless the folder is empty or does not exist."""
    if folder.is_dir() and not any(folder.iterdir()):
        return
    if folder.exists():
        what = "has files in it" if folder.is_dir() else "is a file"
        raise ArgumentError(
            f"{folder} {what}",
            where="--folder",
            next="name another folder; --force adds what is missing there, and keeps what is there",
        )


def add(folder: Path, files: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Write those files that are not there yet; the paths that were written, and those that were kept as they are."""
    kept = [path for path in files if (folder / path).exists()]
    written = [path for path in files if path not in kept]
    for path in written:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(files[path], "utf-8", newline="\n")
    return written, kept
