"""``python -m tests.matrix``: programs, threads and semantics on other releases of torch, each in its environment."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console

from tests.matrix import _corpus
from tests.matrix._environments import ROOT, environment, gigabytes
from tests.matrix._report import Row, Step, page, table

RELEASES = ("2.8", "2.11", "2.13", "2.15")

BACKENDS = ("eager", "onnxrt")
"""Those that the semantics tests run through on each release."""

THROUGH_THEM = " or ".join(f"{before}{name}" for name in BACKENDS for before in "[-")
"""What pytest's ``-k`` finds in the ids of tests through these backends, and not in names such as ``eagers``."""


def main() -> None:
    options = _options()
    options.out.mkdir(parents=True, exist_ok=True)
    rows = {release: _check(release, options.out, options.only) for release in options.releases}
    index = _corpus.load(options.out)
    Console().print(table(index, rows))
    if options.report:
        options.report.write_text(page(index, rows), "utf-8")
    if not all(step.passed for row in rows.values() for step in row.steps.values()):
        raise SystemExit(1)


def _check(release: str, out: Path, only: str) -> Row:
    """What became of each step on one release."""
    python = str(environment(release))
    tests = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
    steps = {
        "capture": ("-m", "tests.matrix.capture", str(out), only),
        "corpus": (*tests, "tests/test_corpus.py"),
        "threads": (*tests, "core/tests/test_clean_threads.py"),  # on builds for CUDA, without a device
        "semantics": (*tests, "tests/semantics", "-k", THROUGH_THEM),
    }
    version = subprocess.run([python, "-c", _VERSION], capture_output=True, text=True, check=True).stdout.strip()
    found = {name: _step(release, name, [python, *command]) for name, command in steps.items()}
    return Row(version, found, gigabytes(release))


_VERSION = "from importlib.metadata import version; print(version('torch'))"


def _step(release: str, name: str, command: list[str]) -> Step:
    print(f"torch {release}: {name}", file=sys.stderr, flush=True)
    start = time.monotonic()
    path = os.pathsep.join([str(ROOT / "benchmarks"), str(ROOT)])
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
    if done.returncode:
        print(f"{done.stdout}{done.stderr}", file=sys.stderr)
    last = (done.stdout.splitlines() or [""])[-1]
    counted = re.fullmatch(r"(.*\d (?:passed|failed).*) in .*", last)
    text = counted[1] if counted else "passed" if done.returncode == 0 else "failed"
    return Step(done.returncode == 0, text, time.monotonic() - start)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.matrix", description=(__doc__ or "").partition(":")[2])
    parser.add_argument("releases", nargs="*", default=RELEASES, help="releases of torch, such as 2.8; all by default")
    parser.add_argument(
        "--out", type=Path, default=_corpus.FOLDER, help="the corpus to write; the committed one by default"
    )
    parser.add_argument("--only", default="", help="how the names of the programs to capture start")
    parser.add_argument("--report", type=Path, help="a file for what was found, in Markdown")
    return parser.parse_args()


if __name__ == "__main__":
    main()
