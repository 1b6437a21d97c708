"""The documentation leads nowhere that does not exist."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from .conftest import REPOSITORY


def pages() -> list[Path]:
    found = subprocess.run(["git", "ls-files", "*.md"], cwd=REPOSITORY, check=True, capture_output=True, text=True)
    return [REPOSITORY / line for line in found.stdout.splitlines()]


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_every_link_of_a_page_leads_to_a_file(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text("utf-8"))
    local = [link for link in links if not re.match(r"[a-z]+:", link)]
    assert [link for link in local if not (page.parent / link).exists()] == []


def test_every_page_that_a_message_names_exists() -> None:
    sources = [path for part in ("core/src", "backends") for path in (REPOSITORY / part).rglob("*.py")]
    named = {page for path in sources for page in re.findall(r"\bdocs/[\w/]+\.md\b", path.read_text("utf-8"))}
    assert named
    assert [page for page in sorted(named) if not (REPOSITORY / page).exists()] == []
