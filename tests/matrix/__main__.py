"""``python -m tests.matrix``: capture, corpus and semantics on other releases of torch, each in its own environment."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.matrix import _corpus
from tests.matrix._environments import ROOT, environment
from tests.matrix.differences import REFERENCE

RELEASES = ("2.8", "2.11", "2.13", "2.15")


def main() -> None:
    options = _options()
    options.out.mkdir(parents=True, exist_ok=True)
    results = {release: _check(release, options.out, options.only) for release in options.releases}
    Console().print(_table(_corpus.load(options.out), results))
    if any(text != "passed" for row in results.values() for text in row.values()):
        raise SystemExit(1)


def _check(release: str, out: Path, only: str) -> dict[str, str]:
    """What became of each step on one release, by the step's name."""
    python = environment(release)
    steps = {
        "capture": ("-m", "tests.matrix.capture", str(out), only),
        "corpus": ("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_corpus.py"),
        "semantics": ("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/semantics", "-k", "eager or onnxrt"),
    }
    return {name: _step(release, name, [str(python), *command]) for name, command in steps.items()}


def _step(release: str, name: str, command: list[str]) -> str:
    print(f"torch {release}: {name}", file=sys.stderr, flush=True)
    path = os.pathsep.join([str(ROOT / "benchmarks"), str(ROOT)])
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
    if done.returncode:
        print(f"{done.stdout}{done.stderr}", file=sys.stderr)
    return "passed" if done.returncode == 0 else "failed"


def _table(index: _corpus.Index, results: dict[str, dict[str, str]]) -> Table:
    table = Table(title=f"Golden programs by release of torch; equal: the same hash as with {REFERENCE}")
    for heading in ("torch", "models equal", "ops equal", *next(iter(results.values()))):
        table.add_column(heading)
    for release, row in results.items():
        table.add_row(release, _equal(index, release, ops=False), _equal(index, release, ops=True), *row.values())
    return table


def _equal(index: _corpus.Index, release: str, *, ops: bool) -> str:
    pairs = [
        (found[release], found[REFERENCE])
        for name, found in index.programs.items()
        if name.startswith("op-") == ops and release in found and REFERENCE in found
    ]
    same = sum(a == b for a, b in pairs)
    return f"{same} of {len(pairs)}" + (f" ({same / len(pairs):.0%})" if pairs else "")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.matrix", description=(__doc__ or "").partition(":")[2])
    parser.add_argument("releases", nargs="*", default=RELEASES, help="releases of torch, such as 2.8; all by default")
    parser.add_argument(
        "--out", type=Path, default=_corpus.FOLDER, help="the corpus to write; the committed one by default"
    )
    parser.add_argument("--only", default="", help="how the names of the programs to capture start")
    return parser.parse_args()


if __name__ == "__main__":
    main()
