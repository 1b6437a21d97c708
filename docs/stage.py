"""Gather the pages of the site in one folder, for Sphinx: ``python docs/stage.py FOLDER``, as ``make docs`` does.

The pages stand where readers of the repository look for them and link to each other as files, which GitHub and editors
follow. On the site they stand elsewhere, so links are rewritten; one to a file that is no page becomes its path. A
backend's page is its README, followed by what was measured of it (`measured`); the page of each op comes from
``fairlead op --pages FOLDER/ops``.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path, PurePosixPath

from measured import measured

REPOSITORY = Path(__file__).resolve().parents[1]

PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "docs/eager.md": "backends/eager.md",
    "docs/**/README.md": "{folder}/index.md",
    "docs/**/*.*": "{folder}/{file}",
    "benchmarks/README.md": "results/benchmarks.md",
    "conformance/README.md": "wheels/conformance.md",
    "plugins/README.md": "wheels/plugins.md",
    "backends/onnx/README.md": "wheels/onnx.md",
    "backends/*/README.md": "backends/{folder}.md",
    "plugins/*/README.md": "wheels/{folder}.md",
}
"""The files of the site, and where they stand on it; the first pattern that a file fits counts."""

CHAPTERS = {
    "Begin": ["start", "usage", "training", "migration", "faq"],
    "Backends": [
        *(f"{name} <backends/{name}>" for name in ("inductor", "onnxrt", "openvino", "openxla", "ipex", "tvm")),
        *(f"{name} <backends/{name}>" for name in ("cudagraphs", "tensorrt", "eager")),
    ],
    "In service": ["production", "accuracy", "memory", "distributed"],
    "When something is wrong": ["errors", "bisect", "tools"],
    "Build a backend": ["architecture", "backends", "conformance", "ir", "ops/index", "interpreters", "glossary"],
    "Measured": [
        *("measurements", "results/summary-cpu", "results/compare-cpu"),
        *("The same on a Xeon <results/compare-cpu-xeon>", "results/*"),
    ],
    "Wheels": ["wheels/*"],
    "Project": ["stability", "contributing", "changelog", "decisions/index"],
}
"""The contents, in the order of a newcomer's questions; a pattern takes the pages that it fits and that are not there
yet, in order of their names."""

_BLOCK = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(?=^### (FL\d+) )", re.MULTILINE)
"""Where an error is explained: who searches for its code is led there, rather than to the top of the page."""
_LINK = re.compile(r"(!?\[[^\]]*\])\(([^)\s:]+)\)")


def places() -> dict[Path, PurePosixPath]:
    """Where each file of the site stands on it; the files are relative to the repository."""
    found: dict[Path, PurePosixPath] = {}
    for pattern, place in PAGES.items():
        for path in sorted(REPOSITORY.glob(pattern)):
            file = path.relative_to(REPOSITORY)
            if file not in found and file.suffix in (".md", ".svg"):
                folder = "/".join(file.parent.parts[1:])
                found[file] = PurePosixPath(place.format(folder=folder or ".", file=file.name))
    return found


def stage(folder: Path) -> None:
    """Write the pages into a folder."""
    site = places()
    for file, place in site.items():
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix != ".md":
            shutil.copyfile(REPOSITORY / file, target)
            continue
        pieces = _BLOCK.split((REPOSITORY / file).read_text("utf-8"))
        pieces[::2] = [_relinked(piece, file, site) for piece in pieces[::2]]
        target.write_text("".join(pieces) + _below(place), "utf-8")


def _relinked(text: str, file: Path, site: dict[Path, PurePosixPath]) -> str:
    def relinked(found: re.Match[str]) -> str:
        path, mark, anchor = found[2].partition("#")
        if not path:
            return found[0]
        target = Path(os.path.normpath(file.parent / path))
        for page in (target, target / "README.md"):
            if page in site:
                return f"{found[1]}({os.path.relpath(site[page], site[file].parent)}{mark}{anchor})"
        text = found[1][1:-1]
        return f"`{target}`" if text.strip("`") == str(target) else f"{text} (`{target}`)"

    return _CODE.sub(r"```{index} ! \1\n```\n\n", _LINK.sub(relinked, text))


def _below(place: PurePosixPath) -> str:
    """What the site has at the end of a page: measurements of a backend, or what tells Sphinx the order of pages."""
    if place.parent == PurePosixPath("backends"):
        return measured(place.stem, REPOSITORY / "docs/results")
    if place == PurePosixPath("index.md"):
        return "".join(_tree(pages, caption) for caption, pages in CHAPTERS.items())
    return _tree(["0*"]) if place == PurePosixPath("decisions/index.md") else ""


def _tree(pages: list[str], caption: str = "") -> str:
    options = [":hidden:", ":glob:", *([f":caption: {caption}"] if caption else [])]
    return "\n".join(["\n```{toctree}", *options, "", *pages, "```\n"])


if __name__ == "__main__":
    stage(Path(sys.argv[1]))
