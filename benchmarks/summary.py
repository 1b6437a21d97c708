"""The tables of compare.py in one: the mean speed over eager of each row, under each of the conditions.

    python benchmarks/summary.py [NAME ...] [--out docs/results/summary-cpu]

A name is that of a page in docs/results. Nothing is measured here.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path

import msgspec
from compare import Results
from tables import EAGER, keys_of, speed_over, table, write_results

from fairlead._compare import Report

FOLDER = Path(__file__).parents[1] / "docs/results"
NAMES = (
    "complete-cpu",
    "compare-cpu-xeon-later",
    "complete-cpu-epyc",
    "compare-cpu-avx2",
    "compare-cpu-all",
    "compare-cpu-tvm",
    "compare-cpu-one-thread-xeon",
    "compare-cpu-one-thread",
    "compare-cpu-bf16",
    "compare-cpu-bf16-epyc",
    "compare-cpu-bf16-xeon",
    "compare-cpu-dynamic",
    "compare-cpu-dynamic-tvm",
    "compare-cpu-dynamic-xeon",
    "train-cpu",
    "train-cpu-epyc",
    "train-cpu-epyc-more",
)
"""Inference first, in float32 by two threads; what was measured again, after what it was measured again of."""


class Mean(msgspec.Struct, frozen=True):
    """The geometric mean of speeds over eager, and of how many models."""

    speed: float
    models: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=NAMES, metavar="NAME")
    parser.add_argument("--out", type=Path, default=FOLDER / "summary-cpu")
    options = parser.parse_args()
    reports = {name: read(name) for name in options.names}
    found = {name: means(report) for name, report in reports.items()}
    write_results(options.out, page(reports, found), msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")


def read(name: str) -> Report:
    return msgspec.json.decode((FOLDER / f"{name}.json").read_bytes(), type=Results).report


def means(report: Report) -> dict[str, Mean]:
    """By row, of the models that it was right on."""
    found: dict[str, Mean] = {}
    for key in keys_of(report):
        speeds = [s for c in report.comparisons if (s := speed_over(c, key, EAGER)) is not None]
        if speeds:
            found[key] = Mean(statistics.geometric_mean(speeds), len(speeds))
    return found


def page(reports: dict[str, Report], found: dict[str, dict[str, Mean]]) -> str:
    keys = [key for key in dict.fromkeys(key for row in found.values() for key in row) if key != EAGER]
    headings = ["", *(f"[{conditions(report)}]({name}.md)" for name, report in reports.items())]
    rows = [["models", *(str(len(report.comparisons)) for report in reports.values())]]
    rows += [[key, *(cell(found[name], key, report) for name, report in reports.items())] for key in keys]
    return (
        "# Backends on a CPU, under all conditions\n\n`python benchmarks/summary.py` puts the tables together that the "
        "headings lead to; each was measured by the command on its page, on the code of its day.\n\nGeometric means of "
        "speeds over eager, over the models of a table. What ran only some of them, or was not right on all, is the "
        "mean of as many as stand behind it, which is not to be compared with the others.\n\n"
        + table(headings, rows)
        + "\n"
    )


def conditions(report: Report) -> str:
    settings = report.settings
    words = ["training" if settings.training else "inference", settings.dtype or "f32"]
    words += ["one thread"] if settings.threads == 1 else []
    words += ["growing sizes"] if settings.dynamic else []
    return ", ".join((*words, report.machine.processor.replace("(R)", "").replace(" Processor", "")))


def cell(row: dict[str, Mean], key: str, report: Report) -> str:
    if key not in row:
        return "-"
    mean = row[key]
    return f"{mean.speed:.2f}" + (f" ({mean.models})" if mean.models < len(report.comparisons) else "")


if __name__ == "__main__":
    main()
