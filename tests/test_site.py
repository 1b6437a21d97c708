"""The site of the documentation: it builds without a warning, refers to nothing elsewhere, and is readable anywhere."""

from __future__ import annotations

import html
import importlib.util
import re
import subprocess
import sys
import urllib.parse
from html.parser import HTMLParser
from pathlib import Path

import pytest

from .browser import BROWSER, PHONE, SCREEN, look
from .conftest import REPOSITORY

OPS = ("aten.linear.default", "aten.add.Tensor", "aten.arange.start_step")
"""The ops whose pages are built here: ``make docs`` builds those of all, which takes half a minute."""

BACKENDS = ("eager", *sorted(p.parent.name for p in REPOSITORY.glob("backends/*/README.md") if p.parent.name != "onnx"))
"""All but the library that lowers for several of them."""

pytestmark = pytest.mark.skipif(importlib.util.find_spec("furo") is None, reason="needs the dependency group 'docs'")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; the build fails on a warning, as one about a link that leads nowhere."""
    folder = tmp_path_factory.mktemp("site")
    pages, built = folder / "pages", folder / "site"
    for command in (["docs/stage.py", pages], ["-m", "fairlead", "op", "--pages", pages / "ops"]):
        subprocess.run([sys.executable, *map(str, command)], cwd=REPOSITORY, check=True, capture_output=True)
    _thin_out(pages / "ops")
    assert _build(pages, built) == ""
    return built


def _build(pages: Path, built: Path) -> str:
    """What Sphinx says against the pages."""
    command = [sys.executable, "-m", "sphinx", "-q", "-n", "-W", "--keep-going", "-c", "docs", str(pages), str(built)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=300)
    assert (done.returncode == 0) is (done.stderr == "")
    return done.stderr


def _thin_out(ops: Path) -> None:
    for page in ops.glob("*.md"):
        if page.stem not in ("index", *OPS):
            page.unlink()
    index = (ops / "index.md").read_text("utf-8")
    kept = [row for row in index.splitlines() if not row.startswith("| [") or any(f"[{op}]" in row for op in OPS)]
    (ops / "index.md").write_text("\n".join(kept), "utf-8")


class References(HTMLParser):
    """What a page loads, where it leads, and what can be led to in it."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.loaded: set[str] = set()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(page.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors.add(found.get("id", ""))
        self.links |= {found["href"]} if tag == "a" and "href" in found else set()
        self.loaded |= {found[name] for name in ("src", "srcset") if name in found}
        self.loaded |= {found["href"]} if tag == "link" and "href" in found else set()


def test_nothing_is_fetched_and_every_link_leads_somewhere(site: Path) -> None:
    pages = {page: References(page) for page in site.rglob("*.html")}
    assert len(pages) > 60
    for page, found in pages.items():
        for link in found.loaded | found.links:
            url = urllib.parse.urlsplit(link)
            if url.scheme and link in found.links:
                continue
            assert not url.scheme, f"{page} loads {link}"
            assert not url.netloc, f"{page} loads {link}"
            target = Path(page.parent, urllib.parse.unquote(url.path)).resolve() if url.path else page
            assert target.exists(), f"{page} leads to {link}"
            assert not url.fragment or target not in pages or url.fragment in pages[target].anchors, f"{page}: {link}"
    for style in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?https?:|@import", style.read_text("utf-8")), style


def test_the_contents_have_every_page(site: Path) -> None:
    contents = {(site / link).resolve() for link in References(site / "index.html").links if ".html" in link}
    decisions = {(site / "decisions" / link).resolve() for link in References(site / "decisions/index.html").links}
    ops = {site / f"ops/{op}.html" for op in OPS}
    assert set(site.rglob("*.html")) - contents - decisions - ops == {site / "search.html"}


@pytest.mark.parametrize("name", BACKENDS)
def test_the_page_of_a_backend_has_its_rows_of_the_measurements(site: Path, name: str) -> None:
    page = (site / f"backends/{name}.html").read_text("utf-8")
    text = html.unescape(re.sub(r"<[^>]*>", " ", page))
    assert "Measured beside others" in text
    assert re.search(r"(Of \d+ promises \d+ work|None of \d+ was tried: needs a CUDA device)", text)
    for results, own in (("compare-cpu", rf"\| {name} \|"), ("compare-cuda", rf"\| {name}(,| over) ")):
        lines = (REPOSITORY / f"docs/results/{results}.md").read_text("utf-8").splitlines()
        rows = [] if (name, results) == ("eager", "compare-cuda") else [row for row in lines if re.match(own, row)]
        cells = {cell.strip(" *") for row in rows for cell in row.strip("|").split("|")[1:]}
        assert cells <= set(re.split(r"\s{2,}|\n", text)), results
        assert (f'href="../results/{results}.html"' in page.partition("Measured beside others")[2]) is bool(rows)


def test_who_searches_for_an_error_code_is_led_to_where_it_is_explained(site: Path) -> None:
    index, page = ((site / name).read_text("utf-8") for name in ("searchindex.js", "errors.html"))
    codes = re.findall(r"^### (FL\d+) ", (REPOSITORY / "docs/errors.md").read_text("utf-8"), re.MULTILINE)
    for code in codes:
        (anchor,) = re.findall(rf'"{code.lower()}":\[\[\d+,"([\w-]+)",true\]\]', index)
        assert re.search(rf'id="{anchor}"[^#]*?<h3>{code} ', page)
    assert len(codes) > 25


def test_a_link_to_no_page_fails_the_build(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages/index.md").write_text("# Title\n\n[elsewhere](elsewhere.md), [below](#nothing)\n")
    said = _build(tmp_path / "pages", tmp_path / "site")
    assert "cross-reference target not found: 'elsewhere.md'" in said
    assert "cross-reference target not found: 'nothing'" in said


@pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
def test_every_page_is_readable_on_a_phone_in_the_dark_and_some_elsewhere(site: Path, tmp_path: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    some = [site / f"{name}.html" for name in ("index", "ir", "tools", "results/promises", "ops/index")]
    for chosen, width, dark in ((pages, PHONE, True), (some, PHONE, False), (some, SCREEN, False)):
        looks, console = look(chosen, tmp_path, width, dark=dark)
        assert console == []
        assert len(looks) == len(chosen)
        for found in looks:
            assert found.overflow == 0, found
            assert found.broken == [], found
            assert found.contrast >= 4.5, found
            assert (found.luminance < 0.1) is dark, found
