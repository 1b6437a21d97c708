"""How far the dtype and shape rules agree with torch: ``python benchmarks/rules.py`` prints the counts by op.

Samples of every entry of the OpInfo database of PyTorch, forward and backward, and small models of transformers, in
inference and training, are captured with fixed and with symbolic sizes. Each node is compared with the rule of its op.
``--quick`` takes one sample of each op, in float32.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairlead.ir.opset import spec

CHILD = Path(__file__).parent.parent / "core/tests/infer/captured.py"
DTYPES = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "bool", "complex64")
PARTS = 8


def runs(quick: bool) -> Iterator[list[str]]:
    """The arguments of each process."""
    yield ["models", *(["--mode", "inference", "--mode", "training"] if quick else [])]
    yield ["models", "--dynamic", *(["--mode", "inference"] if quick else [])]
    dtypes = [word for dtype in (DTYPES[:1] if quick else DTYPES) for word in ("--dtype", dtype)]
    samples = ["--samples", "1" if quick else "3"]
    for part in range(PARTS):
        yield ["opinfo", *dtypes, *samples, "--part", f"{part}/{PARTS}"]
        yield ["opinfo", *samples, "--dynamic", "--part", f"{part}/{PARTS}"]


def programs(arguments: list[str]) -> Iterator[dict[str, Any]]:
    """What one process finds."""
    with subprocess.Popen([sys.executable, str(CHILD), *arguments], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("{"):
                yield json.loads(line)
    if process.returncode:
        raise SystemExit(f"{' '.join(arguments)} ended with {process.returncode}")


def report(by_op: dict[str, Counter[tuple[str, str]]], wrong: Counter[str], left: Counter[str]) -> None:
    """Print the counts by op, what was wrong, what was not captured, and the sums."""
    print(f"{'op':60} {'tier':10} {'right':>8} {'wrong':>6} {'no rule':>8}")
    for op, counts in sorted(by_op.items(), key=lambda item: -item[1].total()):
        found = spec(op)
        verdicts = [sum(n for (_, v), n in counts.items() if v == verdict) for verdict in ("right", "wrong", "unknown")]
        print(f"{op:60} {found.tier if found else '-':10} {verdicts[0]:8} {verdicts[1]:6} {verdicts[2]:8}")
    for title, texts in (("wrong", wrong), ("not captured", left)):
        for text, count in texts.most_common():
            print(f"{title}: {count} x {text[:400]}")
    for size in ("static", "symbolic"):
        sums = Counter[str]()
        for counts in by_op.values():
            sums.update({v: n for (s, v), n in counts.items() if s == size})
        print(f"{size}: {sums['right']} right, {sums['wrong']} wrong, {sums['unknown']} without a rule")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    by_op: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    wrong, left = Counter[str](), Counter[str]()
    for arguments in runs(options.quick):
        for program in programs(arguments):
            for op, size, verdict, count in program["rows"]:
                by_op[op][size, verdict] += count
            wrong.update(f"{program['name']}: {text}" for text in program["wrong"])
            left.update(reason for reason in program["left"] if reason)
    report(by_op, wrong, left)


if __name__ == "__main__":
    main()
