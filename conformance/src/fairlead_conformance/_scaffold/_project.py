"""What an existing wheel says of its backend: the entry point in its ``pyproject.toml``."""

from __future__ import annotations

import tomllib
from pathlib import Path

from fairlead.errors import ArgumentError
from fairlead_conformance._scaffold._names import Names

__all__ = ["project"]

_GROUP = "fairlead.backends"


def project(folder: Path, name: str | None) -> tuple[Names, str]:
    """The names in the project at ``folder``, and where its packages are: ``src/`` or nothing.

    ``name`` picks one of several backends. Raises `ArgumentError` where there is none, or several and no ``name``.
    """
    file = folder / "pyproject.toml"
    try:
        table = tomllib.loads(file.read_text("utf-8")).get("project", {})
    except (OSError, ValueError) as error:
        raise ArgumentError(
            f"no project in {folder}: {error}", where=str(file), next="name the folder with your wheel's pyproject.toml"
        ) from error
    points: dict[str, str] = table.get("entry-points", {}).get(_GROUP, {})
    if not points:
        raise ArgumentError(
            f"the project has no entry point of the group {_GROUP!r}",
            where=str(file),
            next=f'add [project.entry-points."{_GROUP}"], or begin with: fairlead new-backend NAME',
        )
    if (name is None and len(points) > 1) or (name is not None and name not in points):
        raise ArgumentError(
            f"the project has no backend {name!r}" if name else f"the project has {len(points)} backends",
            where=str(file),
            next=f"pass --backend, one of: {', '.join(sorted(points))}",
        )
    name = name or next(iter(points))
    package = points[name].partition(":")[0].partition(".")[0]
    distribution = str(table.get("name", package))
    root = "src/" if (folder / "src").is_dir() else ""
    return Names(name, name.replace("_", "-"), distribution, package), root
