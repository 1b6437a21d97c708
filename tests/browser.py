"""Pages of HTML as a person sees them in headless Chromium: on a phone or a screen, light or dark."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

PHONE, SCREEN = 390, 1280
"""Pixels of width."""


class Look(msgspec.Struct, frozen=True):
    """One page. ``overflow``: pixels by which it is wider than the window. ``broken``: images that did not load.

    ``contrast``: the lowest between a text and what is behind it; 4.5 is what WCAG 2.2 asks for (success criterion
    1.4.3). ``faint``: the text of that contrast. ``luminance``: of the background, from 0 for black to 1.
    """

    page: str
    overflow: float
    broken: list[str]
    contrast: float
    faint: str
    luminance: float


def look(
    pages: Sequence[Path], folder: Path, width: int = PHONE, *, dark: bool = False
) -> tuple[list[Look], list[str]]:
    """What each of these files looks like, and what all of them wrote to the console. ``folder`` is for scratch."""
    outer = folder / "looked-at.html"
    frames = "".join(f'<iframe src="{page.as_uri()}" style="width:{width}px;height:900px"></iframe>' for page in pages)
    outer.write_text(f"<!DOCTYPE html><style>iframe {{ border: 0 }}</style>{frames}<script>{_MEASURE}</script>")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--allow-file-access-from-files"]
    options += ["--enable-logging=stderr", f"--blink-settings=preferredColorScheme={0 if dark else 1}"]
    command = [str(BROWSER), *options, f"--user-data-dir={folder / 'browser'}", "--dump-dom", outer.as_uri()]
    seen = subprocess.run(command, capture_output=True, text=True, timeout=120)
    (result,) = re.findall(r'data-result="([^"]*)"', seen.stdout)
    console = [line.partition("] ")[2] for line in seen.stderr.splitlines() if "CONSOLE" in line]
    return msgspec.convert(json.loads(html.unescape(result)), list[Look]), console


_MEASURE = r"""
const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true }), known = {};
function channels(color) {
  if (!(color in known)) {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    known[color] = [r, g, b, a / 255];
  }
  return known[color];
}
const luminance = (rgb) => rgb.slice(0, 3).map((c) => c / 255)
  .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
  .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
const over = ([r, g, b, a], below) => [r, g, b].map((c, i) => a * c + (1 - a) * below[i]);
function behind(element) {
  if (!element) return [255, 255, 255];
  const color = channels(getComputedStyle(element).backgroundColor);
  return color[3] === 1 ? color : over(color, behind(element.parentElement));
}
function faintest(root) {
  let found = [21, ""];
  for (const element of root.querySelectorAll("body *")) {
    const text = [...element.childNodes].filter((n) => n.nodeType === 3).map((n) => n.data.trim()).join(" ").trim();
    const box = element.getBoundingClientRect();
    if (!text || !box.width || !box.height || element.closest("svg, script, style, [aria-hidden=true]")) continue;
    const back = behind(element), ink = over(channels(getComputedStyle(element).color), back);
    const [low, high] = [luminance(back), luminance(ink)].sort((a, b) => a - b);
    const contrast = (high + 0.05) / (low + 0.05);
    if (contrast < found[0]) found = [contrast, `${element.tagName}.${element.className}: ${text.slice(0, 60)}`];
  }
  return found;
}
addEventListener("load", () => {
  const result = [...document.querySelectorAll("iframe")].map((frame) => {
    const page = frame.contentDocument, root = page.documentElement;
    const [contrast, faint] = faintest(root);
    const broken = [...page.images].filter((i) => i.complete && !i.naturalWidth).map((i) => i.src);
    const overflow = root.scrollWidth - root.clientWidth;
    return { page: frame.src, overflow, broken, contrast, faint, luminance: luminance(behind(page.body)) };
  });
  document.documentElement.dataset.result = JSON.stringify(result);
});
"""
