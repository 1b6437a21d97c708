"""How much of PyTorch the opset covers: ``python benchmarks/opset_coverage.py``.

Every entry of PyTorch's OpInfo database is captured on the CPU, forward, and backward where it has one, and so are
architectures of transformers, in inference and training. What counts as covered has no other node, as a backend gets
it, than ops of the table and those that another library than torch registers. What counts as captured, besides, is a
graph of the IR from end to end. Entries that need CUDA are left out.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from opset_sweep import sweep
from rich.console import Console
from rich.table import Table

from fairlead.ir import opset

HERE = Path(__file__).parent
TORCH = {"aten", "prims", "torch_nn", "quantized", "quantized_decomposed", "higher_order", "_c10d_functional"}
"""The namespaces of torch itself; an op of another is a library's own, which the IR carries by name."""

TORCH_VERSION = metadata.version("torch")
NEEDS_CUDA = "only supported on CUDA"
SHOWN = 6
"""Entries named behind each reason."""


class Coverage(NamedTuple):
    """The entries of one kind and direction."""

    what: str
    entries: int
    covered: int
    captured: int


def coverage(what: str, lines: Sequence[Mapping[str, Any]]) -> Coverage:
    """Count the lines of one kind and direction."""
    covered = [row for row in lines if not row["error"] and not outside(row)]
    return Coverage(what, len(lines), len(covered), sum(not row["refused"] for row in covered))


def outside(row: Mapping[str, Any]) -> set[str]:
    """The ops of a line that are torch's own, and that the table does not have."""
    return {op for op in row["ops"] if not opset.spec(op) and op.partition(".")[0] in TORCH}


def custom(lines: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """The ops of other libraries, each with the entries that have it."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for row in lines:
        for op in row["ops"]:
            if not opset.spec(op) and op.partition(".")[0] not in TORCH:
                found[op].append(f"{row['entry']} ({row['direction']})")
    return dict(found)


def reasons(lines: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Why lines are not captured: ops outside the table, errors and refusals, each with the entries."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for row in lines:
        whys = [row["error"] or row["refused"]] if row["error"] or row["refused"] else sorted(outside(row))
        for why in whys:
            found[why].append(f"{row['entry']} ({row['direction']})" if row["direction"] else row["entry"])
    return dict(sorted(found.items(), key=lambda item: (-len(item[1]), item[0])))


def measured(program: str, arguments: list[str], wanted: Sequence[str], processes: int) -> list[dict[str, Any]]:
    """One line for each entry and direction that the program lists; what it did not get to has an error."""
    path = HERE / program
    listed = subprocess.run([sys.executable, path, *arguments, "list"], capture_output=True, text=True, check=True)
    directions = {k: v for k, v in json.loads(listed.stdout).items() if v and (not wanted or k in wanted)}
    lines: dict[tuple[str, str], dict[str, Any]] = {}
    for row in sweep(path, arguments, list(directions), processes):
        for direction in [row["direction"]] if row["direction"] else directions[row["entry"]]:
            lines.setdefault((row["entry"], direction), row | {"direction": direction})
    rows = [lines[name, direction] for name, found in directions.items() for direction in found]
    return [row for row in rows if NEEDS_CUDA not in row["error"]]


def show(counts: Sequence[Coverage], why: Mapping[str, Sequence[str]], others: Mapping[str, Sequence[str]]) -> None:
    """The tables for people."""
    console = Console(soft_wrap=True)
    title = f"Opset {opset.OPSET_VERSION}, torch {TORCH_VERSION}"
    table = Table("", "entries", "covered", "", "captured", "", title=title)
    for row in counts:
        shares = [f"{n / row.entries:.1%}" for n in (row.covered, row.captured)]
        table.add_row(row.what, str(row.entries), str(row.covered), shares[0], str(row.captured), shares[1])
    console.print(table)
    for title, found in (("not captured because of", why), ("custom op, carried by name", others)):
        listed = Table(title, "entries", "such as")
        for reason, entries in found.items():
            rest = f" and {len(entries) - SHOWN} more" if len(entries) > SHOWN else ""
            listed.add_row(reason, str(len(entries)), ", ".join(entries[:SHOWN]) + rest)
        console.print(listed)


def main() -> None:
    """Measure, and print tables or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("only", nargs="*", metavar="NAME", help="entries or architectures; all of them, unless given")
    parser.add_argument("--what", choices=("opinfo", "models", "all"), default="all")
    parser.add_argument("--samples", type=int, default=4, help="samples of each OpInfo entry (default: 4)")
    parser.add_argument("--processes", type=int, default=1, help="processes at a time (default: 1)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    given = parser.parse_args()
    programs = {"opinfo": ("opset_entries.py", [str(given.samples)]), "models": ("opset_models.py", [])}
    lines = {
        what: measured(program, arguments, given.only, given.processes)
        for what, (program, arguments) in programs.items()
        if given.what in (what, "all")
    }
    counts = [
        coverage(f"{what} {direction}", [row for row in found if row["direction"] == direction])
        for what, found in lines.items()
        for direction in dict.fromkeys(row["direction"] for row in found)
    ]
    counts += [_whole(what, found) for what, found in lines.items()]
    why = reasons(row for found in lines.values() for row in found)
    others = custom(row for found in lines.values() for row in found)
    if given.json:
        used = Counter(op for found in lines.values() for row in found for op in row["ops"])
        data = {"torch": TORCH_VERSION, "opset": opset.OPSET_VERSION, "coverage": [c._asdict() for c in counts]}
        print(json.dumps(data | {"missing": why, "custom": others, "ops": dict(used.most_common())}, indent=2))
    else:
        show(counts, why, others)


def _whole(what: str, lines: Sequence[Mapping[str, Any]]) -> Coverage:
    """Entries with all their directions."""
    entries = {row["entry"] for row in lines}
    bad = {row["entry"] for row in lines if row["error"] or outside(row)}
    refused = {row["entry"] for row in lines if row["refused"]}
    return Coverage(f"{what}, all directions", len(entries), len(entries - bad), len(entries - bad - refused))


if __name__ == "__main__":
    main()
