"""Microseconds that Fairlead adds to a call: docs/results/overhead-cpu.md.

    python benchmarks/overhead.py [--quick] [--out docs/results/overhead-cpu]

``added`` is what Fairlead spends around the runtime's own call, less what torch.compile spends around the ops with a
backend that does nothing. Each row has a process of its own; all are timed in turns, and differences are taken turn by
turn.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Iterator
from pathlib import Path

from tables import write_results

from fairlead._compare import Comparison, Entry, Kind, Report, Row, Settings, Subject, compare, to_json

HERE = Path(__file__).parent

ALONE = {"eager": "ops alone", "onnxrt": "ORT alone", "openvino": "OpenVINO alone", "openxla": "XLA alone"}
"""The runtime's own call, for each backend."""

ENTRIES = (
    Entry("eager", Kind.eager, Subject("eager", "eager")),
    Entry("ops alone", Kind.other, Subject("vendors:fx_graph", "path")),
    Entry("no-op backend", Kind.other, Subject("vendors:no_op", "path")),
    Entry("ORT alone", Kind.other, Subject("vendors:run_onnxrt", "path")),
    Entry("OpenVINO alone", Kind.other, Subject("vendors:run_openvino", "path")),
    Entry("XLA alone", Kind.other, Subject("vendors:run_openxla", "path")),
    *(Entry(name, Kind.backend, Subject(name, "fairlead")) for name in ALONE),
)


def main() -> None:
    options = _options()
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(HERE), os.environ.get("PYTHONPATH"))))
    settings = Settings(
        backends=tuple(ALONE), threads=1, seconds=0.5 if options.quick else 3.0, turns=5 if options.quick else 20
    )
    specs = tuple(f"{HERE / 'tiny.py'}:{name}" for name in ("add", "linear"))
    report = compare(specs, ENTRIES, settings, lambda text: None)
    text = markdown(report)
    print(text)
    write_results(Path(options.out), text, to_json(report))


def markdown(report: Report) -> str:
    """One table for each graph."""
    machine = report.machine
    lines = [
        "# What Fairlead adds to a call\n",
        f"`python benchmarks/overhead.py`, {report.date}. {machine.processor}, one thread, torch "
        f"{machine.versions.get('torch')}. Microseconds a call, median of {report.settings.turns} turns.\n",
        "`added` = (this row - the runtime alone) - (no-op backend - ops alone).\n",
    ]
    for comparison in report.comparisons:
        lines += [
            f"## {comparison.model.rpartition(':')[2]}\n",
            "| | call | runtime alone | added |",
            "| --- | ---: | ---: | ---: |",
        ]
        lines += [f"| {' | '.join(cells)} |" for cells in _rows(comparison)]
        lines.append("")
    return "\n".join(lines)


def _rows(comparison: Comparison) -> Iterator[tuple[str, str, str, str]]:
    rows = {row.key: row for row in comparison.rows}
    yield "PyTorch eager", _micro(_turns(rows["PyTorch eager"])), "", ""
    yield "torch.compile, no-op backend", _micro(_turns(rows["no-op backend"])), _micro(_turns(rows["ops alone"])), "0"
    glue = [a - b for a, b in zip(_turns(rows["no-op backend"]), _turns(rows["ops alone"]), strict=True)]
    for name, alone in ALONE.items():
        call, runtime = _turns(rows[name]), _turns(rows[alone])
        added = [c - r - g for c, r, g in zip(call, runtime, glue, strict=True)]
        yield f"fairlead {name}", _micro(call), _micro(runtime), _micro(added)


def _turns(row: Row) -> tuple[float, ...]:
    if row.times is None:
        raise SystemExit(f"{row.key} was not timed: {row.reason}")
    return row.times.turns


def _micro(seconds: tuple[float, ...] | list[float]) -> str:
    return f"{statistics.median(seconds) * 1e6:.1f}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="five short turns")
    parser.add_argument("--out", default="docs/results/overhead-cpu", help="where to write, without the suffix")
    return parser.parse_args()


if __name__ == "__main__":
    main()
