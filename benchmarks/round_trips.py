"""Sends the graphs of every entry of PyTorch's OpInfo database through text, ``.fir`` files and MessagePack.

    python benchmarks/round_trips.py [--samples 4] [--processes 1] [ENTRY ...]

Each form has to give back an equal module with the same hash, of the graphs as they are captured, forward and backward,
and of their canonical forms. Exits with 1 where one does not. ``tests/test_corpus.py`` does so for the golden corpus.
"""

from __future__ import annotations

import argparse
import collections
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from opset_sweep import sweep

PROGRAM = Path(__file__).parent / "round_trip_entries.py"
SHOWN = 3


def run(samples: int, processes: int, wanted: Sequence[str]) -> int:
    """The number of entries of which a form changed a graph."""
    listed = subprocess.run([sys.executable, PROGRAM, str(samples), "list"], capture_output=True, text=True, check=True)
    names = [name for name in json.loads(listed.stdout) if not wanted or name in wanted]
    counts: collections.Counter[str] = collections.Counter()
    stopped: collections.defaultdict[str, list[str]] = collections.defaultdict(list)
    for row in sweep(PROGRAM, [str(samples)], names, processes):
        counts["entries and directions"] += 1
        counts["graphs"] += row.get("graphs", 0)
        counts["nodes"] += row.get("nodes", 0)
        if row.get("changed"):
            counts["changed"] += 1
            print(f"{row['entry']} ({row['direction']}): {', '.join(sorted(set(row['changed'])))} changed")
        if row["error"]:
            stopped[row["error"]].append(row["entry"])
    for reason, entries in sorted(stopped.items(), key=lambda item: -len(item[1])):
        print(f"{len(entries):4} not captured whole: {reason}: {', '.join(entries[:SHOWN])}")
    print(", ".join(f"{counts[what]:,} {what}" for what in ("entries and directions", "graphs", "nodes", "changed")))
    return counts["changed"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("only", nargs="*", metavar="ENTRY", help="entries of the database; all by default")
    parser.add_argument("--samples", type=int, default=4, help="samples of each entry (default: 4)")
    parser.add_argument("--processes", type=int, default=1, help="processes at a time (default: 1)")
    given = parser.parse_args()
    sys.exit(bool(run(given.samples, given.processes, given.only)))


if __name__ == "__main__":
    main()
