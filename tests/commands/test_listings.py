"""The listings of docs/tools.md are what the commands print."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.matrix import _corpus

from .conftest import Command

PAGE = REPOSITORY / "docs" / "tools.md"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OF_THE_MACHINE = re.compile(r"\S+ bytes|torch [\d.+a-z]+")
"""What a listing has from where it was made: source lines of another length, another build of torch."""


def listings() -> list[tuple[str, str]]:
    """Each command of the page, in order, and what it prints."""
    blocks = "".join(BLOCK.findall(PAGE.read_text("utf-8")))
    found = [part.partition("\n") for part in re.split(r"^\$ fairlead ", blocks, flags=re.MULTILINE)[1:]]
    return [(command, printed) for command, _, printed in found]


def words(text: str) -> list[str]:
    return OF_THE_MACHINE.sub("...", text).split()


@pytest.fixture
def golden(tmp_path: Path) -> None:
    """Files of the corpus under the names that the page gives them."""
    programs = _corpus.load().programs
    for name, program in (("take_along_dim", "op-take_along_dim"), ("bert", "bert-eval")):
        for release in ("2.8", "2.13"):
            shutil.copy(_corpus.FOLDER / f"{programs[program][release]}.fir", tmp_path / f"{name}-{release}.fir")


@pytest.mark.usefixtures("golden")
def test_commands_print_what_the_page_says(command: Command) -> None:
    shown = listings()
    assert len(shown) == 5
    for line, printed in shown:
        found, wanted = words(command(*shlex.split(line)).stdout), words(printed.removesuffix("...\n"))
        assert (found[: len(wanted)] if printed.endswith("...\n") else found) == wanted, line
