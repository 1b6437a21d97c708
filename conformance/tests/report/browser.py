"""Pages as a reader and a browser see them."""

from __future__ import annotations

import html
import html.parser
import json
import re
import shutil
import subprocess
from pathlib import Path

VOID = frozenset({"meta", "input", "br"})
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Reader(html.parser.HTMLParser):
    """The elements of a page: that they nest, and what they hold."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.references: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.references += [f"{name}={value}" for name, value in attrs if name in ("src", "href", "srcset", "action")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)


def browsed(page: str, folder: Path, width: int, steps: str) -> dict[str, str]:
    """What a browser makes of a page that is so wide, after some steps: the data set of its root."""
    measure = f"""<script>addEventListener("load", () => {{
      const root = document.documentElement;
      {steps}
      root.dataset.width = root.clientWidth;
      root.dataset.overflow = root.scrollWidth - root.clientWidth;
      parent.document.documentElement.dataset.result = JSON.stringify(root.dataset);
    }})</script>"""
    (folder / "page.html").write_text(page + measure, "utf-8")
    outer = folder / "outer.html"
    outer.write_text(f'<!DOCTYPE html><iframe src="page.html" style="border:0;width:{width}px;height:900px"></iframe>')
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--allow-file-access-from-files"]
    command = [str(BROWSER), *options, "--virtual-time-budget=8000", f"--user-data-dir={folder}", "--dump-dom"]
    dom = subprocess.run([*command, outer.as_uri()], capture_output=True, text=True, timeout=90).stdout
    (result,) = re.findall(r'data-result="([^"]*)"', dom)
    return json.loads(html.unescape(result))
