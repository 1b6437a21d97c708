"""The documentation says what is: its links lead somewhere, its examples run, its listings are the files."""

from __future__ import annotations

import doctest
import re
import urllib.parse
from pathlib import Path

import pytest
import torch

from .conftest import REPOSITORY, Run

PAGES = sorted(
    p for pattern in ("*.md", "docs/**/*.md", "*/README.md", "*/*/README.md") for p in REPOSITORY.glob(pattern)
)
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def name(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


def blocks(page: Path, language: str) -> list[tuple[str, str]]:
    """The fenced blocks of a page in this language: what stands after the language, and the text."""
    found = BLOCK.findall(page.read_text("utf-8"))
    return [(label, text) for kind, label, text in found if kind == language]


def headings(page: Path) -> set[str]:
    """The anchors that a page has on GitHub."""
    titles = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    text = BLOCK.sub("", page.read_text("utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"", text):
        link = urllib.parse.urlsplit("".join(target))
        if link.scheme:
            continue
        file = (page.parent / link.path) if link.path else page
        assert file.exists(), f"{name(page)} links to {link.geturl()}"
        assert not link.fragment or link.fragment in headings(file), f"{name(page)} links to {link.geturl()}"


@pytest.mark.parametrize("page", [p for p in PAGES if any(">>>" in t for _, t in blocks(p, "python"))], ids=name)
def test_examples_print_what_the_page_says(page: Path) -> None:
    torch._dynamo.reset()  # it remembers sizes that other programs of the same modules were called with
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    globals_: dict[str, object] = {}
    for _, text in blocks(page, "python"):
        if ">>>" in text:
            test = doctest.DocTestParser().get_doctest(text, globals_, name(page), str(page), 0)
            runner.run(test, clear_globs=False)
            globals_ = test.globs
    assert runner.summarize().failed == 0


SCRIPTS = [(page, text) for page in PAGES for label, text in blocks(page, "python") if not label and ">>>" not in text]

DRIVER = """
import os, runpy, sys

os.chdir(os.path.dirname(sys.argv[1]))  # for what they write
for path in sys.argv[1:]:
    print(path, flush=True)
    runpy.run_path(path)
"""


def test_scripts_run(tmp_path: Path, forked: Run) -> None:
    """A block that begins with an import is complete: it runs as it stands; all in one process, for speed."""
    paths = []
    for number, (page, text) in enumerate(SCRIPTS):
        if text.startswith(("import ", "from ")):
            paths.append(tmp_path / f"{number}-{page.stem}.py")
            paths[-1].write_text(text)
    result = forked("-c", DRIVER, *map(str, paths))
    assert result.returncode == 0, result.stdout[-500:] + result.stderr
    assert len(paths) >= 6
    assert all(str(path) in result.stdout for path in paths)


def test_every_question_is_answered_with_an_example_that_runs() -> None:
    sections = re.split(r"^## ", (REPOSITORY / "docs/faq.md").read_text("utf-8"), flags=re.MULTILINE)[1:]
    runs = re.compile(r"^```python\n(import|from) ", re.MULTILINE)
    assert [section.partition("\n")[0] for section in sections if not runs.search(section)] == []


LISTINGS = [
    (page, label, text) for page in PAGES for kind in ("python", "toml") for label, text in blocks(page, kind) if label
]


@pytest.mark.parametrize(("page", "label", "text"), LISTINGS, ids=[f"{name(p)}-{label}" for p, label, _ in LISTINGS])
def test_listings_are_the_files(page: Path, label: str, text: str) -> None:
    """A block with a path behind its language shows that file; ``python -m tests.test_docs`` writes it anew."""
    assert text == (REPOSITORY / label).read_text("utf-8")


def test_every_page_is_reachable_from_the_readme() -> None:
    reached: set[Path] = set()
    waiting = [REPOSITORY / "README.md"]
    while waiting:
        page = waiting.pop().resolve()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        for target in re.findall(r"\]\(([^)#\s]+)", BLOCK.sub("", page.read_text("utf-8"))):
            if not urllib.parse.urlsplit(target).scheme:
                waiting.append(page.parent / target)
    pages = {p.resolve() for p in REPOSITORY.glob("docs/**/*.md")}
    assert pages - reached == set()


def test_readmes_say_how_fast_the_tables_say_a_backend_is(run: Run) -> None:
    result = run(str(REPOSITORY / "benchmarks/readmes.py"), "--check")
    assert result.returncode == 0, result.stderr


def _write_listings() -> None:
    for page in PAGES:
        text = page.read_text("utf-8")
        new = re.sub(r"^(```\w+ (\S+)\n)(?:.*?\n)??(```)$", _listing, text, flags=re.MULTILINE | re.DOTALL)
        if new != text:
            page.write_text(new, "utf-8")


def _listing(found: re.Match[str]) -> str:
    return found[1] + (REPOSITORY / found[2]).read_text("utf-8") + found[3]


if __name__ == "__main__":
    _write_listings()
