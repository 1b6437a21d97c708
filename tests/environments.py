"""Virtual environments of their own, with packages borrowed from this one: no network, no second copy."""

from __future__ import annotations

import re
import subprocess
import sys
import venv
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path


def required(*distributions: str) -> set[str]:
    """The distributions that these need here, through all levels, themselves and extras left out."""
    found: set[str] = set()
    todo = list(distributions)
    while todo:
        for line in metadata.requires(todo.pop()) or []:
            name = re.split(r"[^A-Za-z0-9._-]", line)[0]
            if "extra ==" in line or name in found or not installed(name):
                continue
            found.add(name)
            todo.append(name)
    return found


def installed(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def environment(folder: Path, borrowed: Iterable[str], wheels: Iterable[Path]) -> str:
    """An environment with these distributions borrowed and these wheels installed; answers with its Python."""
    venv.create(folder, symlinks=True)
    python = str(folder / "bin/python")
    (packages,) = folder.glob("lib/*/site-packages")
    for name in borrowed:
        distribution = metadata.distribution(name)
        for top in {path.parts[0] for path in distribution.files or []} - {"..", "__pycache__"}:
            if not (packages / top).exists():  # a namespace that several share
                (packages / top).symlink_to(distribution.locate_file(top))
    add(python, wheels)
    return python


def add(python: str, wheels: Iterable[Path]) -> None:
    """Install wheels, without what they need, into the environment of that Python."""
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, *map(str, wheels)], check=True, capture_output=True)
