"""The quickest of a table for each model, and what nobody can do in float32: its products at the highest speed.

    python benchmarks/peak.py [--beside docs/results/complete-cpu] [--models bert vit-b] [--out PATH]

The highest speed is that of the best of torch's products of square matrices on this machine, MKL's or oneDNN's with one
packed; the machine is to be the one of the table beside it. A model's operations are counted as written, two for a
product that is added; all else that it computes is taken to cost nothing. Convolutions by Winograd's tiles need fewer,
so a model of these can be under it. An LSTM is left out, whose products torch's counter does not know.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import torch
from compare import Results
from tables import EAGER, INDUCTOR, write_results
from torch.utils.flop_counter import FlopCounterMode

from fairlead._compare import Comparison
from fairlead._compare._machine import describe
from fairlead._models._load import load

ROOT = Path(__file__).parents[1]
AGAINST = (EAGER, INDUCTOR)
SIZES = (512, 768, 1024, 1536, 2048)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beside", type=Path, default=ROOT / "docs/results/complete-cpu")
    parser.add_argument("--models", nargs="+", help="some of those in the table; all by default")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/results/peak")
    options = parser.parse_args()
    table = msgspec.json.decode(options.beside.with_suffix(".json").read_bytes(), type=Results).report
    machine = describe()
    if machine.processor != table.machine.processor or machine.cores != table.machine.cores:
        raise SystemExit(f"{options.beside} was measured on another machine: {table.machine.processor}")
    speed = max(map(speed_of, SIZES))
    rows = {c.model: times(c) for c in table.comparisons if not options.models or c.model in options.models}
    least = {model: 1e3 * operations(model) / speed for model in rows}
    rows = {model: ms for model, ms in rows.items() if least[model] > ms[EAGER] / 100}  # else not counted
    data = msgspec.json.format(msgspec.json.encode({"speed": speed, "least": least, "milliseconds": rows}), indent=1)
    write_results(options.out, page(speed, least, rows, options.beside), data + b"\n")


def speed_of(size: int) -> float:
    """Operations a second of a product of square matrices, the best of many, by whom it is quickest."""
    a, b = torch.randn(size, size), torch.randn(size, size)
    packed = torch.ops.mkldnn._reorder_linear_weight(b, size)
    ways = (lambda: a @ b, lambda: torch.ops.mkldnn._linear_pointwise(a, packed, None, "none", [], ""))
    return 2 * size**3 / min(seconds(way) for _ in range(60) for way in ways)


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def operations(name: str) -> float:
    """Of the products, convolutions and attention of one call."""
    model = load(name, training=False)
    with torch.no_grad(), FlopCounterMode(display=False) as counted:
        model.module(*model.args, **model.kwargs)
    return counted.get_total_flops()


def times(comparison: Comparison) -> dict[str, float]:
    """Milliseconds a call, by row."""
    return {row.key: 1e3 * row.times.median for row in comparison.rows if row.times is not None}


def page(speed: float, least: Mapping[str, float], rows: Mapping[str, Mapping[str, float]], beside: Path) -> str:
    gains = "over eager | over Inductor"
    lines = [
        f"| model | eager ms | Inductor ms | quickest ms | {gains} | least ms | {gains} |",
        "| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    columns: list[list[float]] = [[] for _ in range(2 * len(AGAINST))]
    for model, ms in rows.items():
        quickest = min((row for row in ms if row not in AGAINST), key=ms.__getitem__)
        ratios = [ms[name] / time for time in (ms[quickest], least[model]) for name in AGAINST]
        for column, ratio in zip(columns, ratios, strict=True):
            column.append(ratio)
        have, can = (" | ".join(map(shown, pair)) for pair in (ratios[:2], ratios[2:]))
        times = " | ".join(f"{ms[name]:.1f}" for name in AGAINST)
        lines.append(f"| {model} | {times} | {quickest} {ms[quickest]:.1f} | {have} | {least[model]:.1f} | {can} |")
    have, can = (
        " | ".join(f"**{statistics.geometric_mean(column):.2f}**" for column in pair)
        for pair in (columns[:2], columns[2:])
    )
    lines.append(f"| geometric mean | | | | {have} | | {can} |")
    machine = describe()
    on = f"{machine.processor}, {machine.cores} cores, torch {torch.__version__}, {torch.get_num_threads()} threads"
    command = " ".join(("python benchmarks/peak.py", *sys.argv[1:]))
    return (
        f"# The most that float32 can gain\n\n`{command}`. {on}; milliseconds a call of "
        f"[{beside.name}]({beside.name}.md).\n\nThe quickest is so of all rows of that table: backends, Inductor with "
        "freezing, and SDKs alone where it has them, whichever is best at a model. The best product of square "
        f"matrices, by MKL or oneDNN, runs at {speed / 1e9:.0f} GFLOP/s. The least time of a model is that of its "
        "products, convolutions and attention at this speed, all else at no cost; an LSTM's are not counted, which is "
        "left out. Beside both is how much quicker than eager and Inductor that is.\n\n" + "\n".join(lines) + "\n"
    )


def shown(ratio: float) -> str:
    return f"{ratio:.2f}"


if __name__ == "__main__":
    main()
