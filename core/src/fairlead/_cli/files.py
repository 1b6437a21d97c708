"""The FILE arguments of the subcommands: what cannot be read is an error in three lines, whatever it is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairlead import ir
from fairlead.errors import ArgumentError

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A .fir file.", show_default=False)]


def read_file(path: Path) -> ir.File:
    """The file. Raises `ArgumentError` where there is none to read, and `IRError` where it is not as it should be."""
    try:
        return ir.read(path)
    except FileNotFoundError as error:
        raise ArgumentError(
            f"there is no file {str(path)!r}", where=f"the folder {Path.cwd()}", next="check the path"
        ) from error
    except IsADirectoryError as error:
        raise ArgumentError(
            f"{str(path)!r} is a folder", where=f"the folder {Path.cwd()}", next="name a .fir file in it"
        ) from error
    except OSError as error:
        raise ArgumentError(
            f"{str(path)!r} cannot be read: {error.strerror or error}", where=str(path), next="check its permissions"
        ) from error


def chosen(file: ir.File, path: Path, number: int | None) -> tuple[ir.Graph, ...]:
    """The graph with this number, or all of them. Raises `ArgumentError` for a number that no graph has."""
    graphs = file.module.graphs
    if number is None:
        return graphs
    if number >= len(graphs):
        names = ", ".join(f"{i} {g.name}" for i, g in enumerate(graphs))
        raise ArgumentError(
            f"there is no graph {number}", where=f"{path}, which has: {names or 'no graph'}", next="give one of these"
        )
    return (graphs[number],)


def writable(path: Path, command: str) -> None:
    """Raise before minutes of work, not after, where a file cannot be written."""
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise ArgumentError(f"{path} cannot be written", where=command, next="name a file in a folder that exists")
