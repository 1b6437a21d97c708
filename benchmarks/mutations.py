"""Changes graphs of the golden corpus in one place each, and hashes them: no hash may stay the same.

    python benchmarks/mutations.py [--every 17] [FILE.fir ...]

Ops, edges, arguments, types, strides, roles, targets, aliases, symbols and their ranges, regions: ``mutants.py`` makes
the changes. Every so many of each graph are hashed; with ``--every 1`` all are, which takes hours. Exits with 1 if a
change was missed.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from mutants import mutants

from fairlead.ir import fingerprint, read

CORPUS = Path(__file__).parents[1] / "tests" / "matrix" / "corpus"


def run(paths: Sequence[Path], every: int) -> int:
    """The number of changes that left the hash as it was."""
    counts: collections.Counter[str] = collections.Counter()
    graphs = missed = 0
    start = time.perf_counter()
    for path in paths:
        for graph in read(path).module.graphs:
            graphs += 1
            wanted = fingerprint(graph)
            for what, mutant in itertools.islice(mutants(graph), graphs % every, None, every):
                counts[what.rpartition("region: ")[2]] += 1
                if fingerprint(mutant) == wanted:
                    missed += 1
                    print(f"{path.name}, {graph.name}: {what}")
    for what, number in sorted(counts.items()):
        print(f"{what:28} {number:8,}")
    seconds = time.perf_counter() - start
    print(f"{counts.total():,} changes of {graphs} graphs in {seconds:.0f} s; {missed} missed")
    return missed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="files; those of the corpus by default")
    parser.add_argument("--every", type=int, default=17, help="how many changes to go on after one (default: 17)")
    given = parser.parse_args()
    sys.exit(bool(run(given.files or sorted(CORPUS.glob("*.fir")), given.every)))


if __name__ == "__main__":
    main()
