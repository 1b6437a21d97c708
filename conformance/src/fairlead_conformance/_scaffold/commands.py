"""The commands themselves: ``fairlead new-backend`` and ``fairlead-conformance init``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["init", "new_backend"]


def new_backend(
    name: Annotated[str, typer.Argument(help="What users will pass as backend=.")],
    folder: Annotated[Path | None, typer.Option(help="Where to.", show_default="fairlead-NAME")] = None,
    force: Annotated[bool, typer.Option("--force", help="Add to a folder that has files; keeps all of them.")] = False,
) -> None:
    """Write the wheel of a new backend, complete: it builds, runs thirteen ops and passes the conformance suite."""
    from fairlead_conformance._scaffold import _folder, _names, _render

    names = _names.names(name)
    folder = folder or Path(names.distribution)
    if not force:
        _folder.refuse_filled(folder)
    _tell(folder, *_folder.add(folder, _render.rendered(_render.WHEEL, names)))
    typer.echo(f"next: pip install -e '{folder}[test]' && fairlead doctor {names.name}")
    typer.echo(f"then: {_SUITE.format(name=names.name)}")


def init(
    folder: Annotated[Path, typer.Argument(metavar="[DIR]", help="The folder of the wheel.")] = Path(),
    backend: Annotated[str | None, typer.Option(help="Which, where the wheel has several.")] = None,
) -> None:
    """Adopt the suite in an existing wheel: workflow, test, capabilities, known failures. Overwrites nothing."""
    from fairlead_conformance._scaffold import _folder, _project, _render

    names, root = _project.project(folder, backend)
    files = {path.replace("src/", root, 1): text for path, text in _render.rendered(_render.ADOPTION, names).items()}
    _tell(folder, *_folder.add(folder, files))
    typer.echo(f"next: {_SUITE.format(name=names.name)}")


_SUITE = "pytest --pyargs fairlead_conformance --backend={name} --level=L1"


def _tell(folder: Path, written: list[str], kept: list[str]) -> None:
    for path in written:
        typer.echo(f"wrote {folder / path}")
    for path in kept:
        typer.echo(f"kept  {folder / path}")
