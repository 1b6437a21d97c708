"""Damages text, bytes and files of the IR, and reads them: nothing but a clear error or a sound module may come of it.

    python benchmarks/fuzz.py [--count 100000] [--seed 0]

It runs in a child process whose memory is limited to what it has at the start and 64 MiB. A case that takes longer than
a second, or raises anything but an `IRError`, is a failure; so is the child's death. Exits with 1 if there was one.
"""

from __future__ import annotations

import argparse
import collections
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

import numpy  # noqa: F401 - drawing random weights loads it, which takes more than the headroom

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "core"))

from tests.ir.hostile import FORMS, Case, cases

from fairlead.errors import IRError

HEADROOM = 64 << 20
SECOND = 1.0


def run(count: int, seed: int) -> int:
    """The number of cases that failed."""
    outcomes: collections.Counter[tuple[str, str]] = collections.Counter()
    slowest, failures = 0.0, 0
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "case.fir"
        for case in cases(len(FORMS) * 8, seed, path):  # what is loaded lazily is loaded now
            _outcome(case)
        start = time.perf_counter()
        _limit_memory()
        for case in cases(count, seed, path):
            before = time.process_time()
            outcome = _outcome(case)
            seconds = time.process_time() - before
            slowest = max(slowest, seconds)
            outcomes[case.form, outcome] += 1
            if outcome == "FAILURE" or seconds > SECOND:
                failures += 1
                print(f"case {case.number} of seed {seed} ({case.form}, {case.damage}): {outcome}, {seconds:.2f} s")
    for (form, outcome), number in sorted(outcomes.items()):
        print(f"{form:10} {outcome:20} {number:8}")
    wall = time.perf_counter() - start
    print(f"{count} cases in {wall:.0f} s; the slowest took {slowest * 1e3:.0f} ms; {failures} failures")
    return failures


def _outcome(case: Case) -> str:
    try:
        case.read()
    except IRError as error:
        return f"{error.code} {type(error).__name__}"
    except BaseException as error:
        print(f"{type(error).__name__}: {error}"[:300])
        return "FAILURE"
    return "reads"


def _limit_memory() -> None:
    """Addresses, not resident pages: an allocation that is never touched counts as well."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + HEADROOM
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        sys.exit(run(options.count, options.seed) > 0)
    child = subprocess.run([sys.executable, __file__, *sys.argv[1:], "--child"])
    if child.returncode not in (0, 1):
        print(f"the child died with {child.returncode}")
    sys.exit(child.returncode)


if __name__ == "__main__":
    main()
