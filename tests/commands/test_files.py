"""What every command that reads a FILE says of one that it cannot read."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Command, error

READERS = {
    "show": ("show", "{}"),
    "verify": ("verify", "{}"),
    "replay": ("replay", "{}", "--backend", "eager"),
    "diff": ("diff", "{}", "{}"),
}


@pytest.mark.parametrize("name", READERS)
def test_a_file_that_is_not_there_is_named(command: Command, name: str) -> None:
    what = error(command(*(part.format("missing.fir") for part in READERS[name])))
    assert what == "FL203: there is no file 'missing.fir'"


@pytest.mark.parametrize("name", READERS)
def test_a_folder_is_no_file(command: Command, name: str) -> None:
    assert error(command(*(part.format(".") for part in READERS[name]))) == "FL203: '.' is a folder"


@pytest.mark.parametrize("name", ["show", "replay", "diff"])
def test_another_format_is_told_so(command: Command, tmp_path: Path, name: str) -> None:
    (tmp_path / "net.fir").write_bytes(b"not a zip")
    what = error(command(*(part.format("net.fir") for part in READERS[name])))
    assert what == "FL601: not a .fir file: File is not a zip file"


@pytest.mark.parametrize("name", ["show", "replay"])
def test_a_graph_that_is_not_in_the_file_is_told_with_those_that_are(command: Command, file: Path, name: str) -> None:
    result = command(*(part.format(file.name) for part in READERS[name]), "--graph", "3")
    assert error(result) == "FL203: there is no graph 3"
    assert "0 forward" in result.stderr
