"""Does `fairlead.explain` name every graph break that torch names, and what does it take beside one compilation?

    python benchmarks/explain.py [ARCHITECTURE...]

For each architecture, three programs in turn, each from an empty Dynamo: one compilation with its first call,
`fairlead.explain`, and `torch._dynamo.explain`. Times are processor seconds, the median of the turns. Exit status 1
where torch names a break that Fairlead does not.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import architectures
import torch

import fairlead
from fairlead.explanation import Explanation

TURNS = 3


class Row(NamedTuple):
    """What came of one architecture: breaks as file and line, and seconds."""

    ours: Explanation
    torchs: frozenset[tuple[str, int]]
    graphs: int
    compiled: float
    explained: float

    @property
    def missing(self) -> frozenset[tuple[str, int]]:
        """The breaks that torch alone names."""
        return self.torchs - {(b.line.file, b.line.line) for b in self.ours.breaks if b.line}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="ARCHITECTURE", help="of benchmarks/architectures.py")
    parser.add_argument("--backend", default="eager")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print(
        "| | graphs | torch's | breaks | torch's | guards | native | compile, s | explain | \n"
        + "| --- |"
        + " ---: |" * 8
    )
    rows: list[Row] = []
    for name in arguments.names or architectures.ARCHITECTURES:
        rows.append(row := measured(name, arguments.backend))
        cells = (len(row.ours.graphs), row.graphs, len(row.ours.breaks), len(row.torchs), sum(row.ours.guards.values()))
        share, ratio = f"{row.ours.placement.native_share:.1%}", row.explained / row.compiled
        print(f"| {name} | {' | '.join(map(str, cells))} | {share} | {row.compiled:.2f} | {ratio:.2f}x |", flush=True)
        for file, line in sorted(row.missing):
            print(f"\nnot named: {file}:{line}\n")
    print(f"\nexplain takes {statistics.median(r.explained / r.compiled for r in rows):.2f}x a compilation (median)")
    sys.exit(any(row.missing for row in rows))


def measured(name: str, backend: str) -> Row:
    """All of one architecture."""
    model, inputs = architectures.build(name)
    model.eval()
    compiled, explained = [], []
    with torch.no_grad():
        for _ in range(TURNS):
            compiled.append(seconds(lambda: fairlead.compile(model, backend=backend)(**inputs))[0])
            taken, ours = seconds(lambda: fairlead.explain(model, backend=backend)(**inputs))
            explained.append(taken)
        torch._dynamo.reset()
        torchs = torch._dynamo.explain(model)(**inputs)
    places = frozenset((s.filename, s.lineno) for r in torchs.break_reasons for s in r.user_stack[-1:])
    return Row(ours, places, torchs.graph_count, statistics.median(compiled), statistics.median(explained))


def seconds(function: Callable[[], Any]) -> tuple[float, Any]:
    torch._dynamo.reset()
    began = time.process_time()
    result = function()
    return time.process_time() - began, result


if __name__ == "__main__":
    main()
