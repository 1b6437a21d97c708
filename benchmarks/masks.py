"""What masks cost Inductor's code on this processor, as truth values and as bytes: what decision 0049 rests on.

    python benchmarks/masks.py [--out PATH]

Torch's own Inductor, of float32; the medians of calls that take turns.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import torch
from peak import seconds
from tables import write_results

from fairlead._compare._machine import describe

ROOT = Path(__file__).parents[1]
NUMBERS = 2**20
TURNS = 60
COLUMNS = "without a mask", "truth values", "bytes"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "docs/results/masks")
    options = parser.parse_args()
    x = torch.randn(NUMBERS)
    mask = x > 0
    reading = (lambda x: x.abs(), x), (torch.where, mask, x, -x), (_of_bytes, mask.view(torch.uint8), x, -x)
    making = (lambda x: x.abs(), x), (lambda x: (x.abs(), x > 0), x), (lambda x: (x.abs(), _as_bytes(x > 0)), x)
    with torch.no_grad():
        rows = {"reads one": medians(*reading), "makes one": medians(*making)}
    write_results(options.out, page(rows), msgspec.json.format(msgspec.json.encode(rows), indent=1) + b"\n")


def _of_bytes(mask: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.where(mask.to(torch.float32) != 0, x, y)


def _as_bytes(mask: torch.Tensor) -> torch.Tensor:
    return mask.to(torch.float32).to(torch.uint8)


def medians(*calls: tuple[Callable[..., Any], *tuple[torch.Tensor, ...]]) -> list[float]:
    """Seconds of each function, compiled, with its tensors."""
    bound = [_bound(torch.compile(function), tensors) for function, *tensors in calls]
    for call in bound:
        call()
    times = [[seconds(call) for call in bound] for _ in range(TURNS)]
    return [statistics.median(column) for column in zip(*times, strict=True)]


def _bound(function: Callable[..., Any], tensors: list[torch.Tensor]) -> Callable[[], object]:
    return lambda: function(*tensors)


def page(rows: dict[str, list[float]]) -> str:
    machine = describe()
    lines = [f"| {name} | " + " | ".join(f"{1e3 * s:.2f}" for s in row) + " |" for name, row in rows.items()]
    return (
        f"# Masks in Inductor's code\n\n`python benchmarks/masks.py`. {machine.processor}, {machine.cores} cores, "
        f"torch {torch.__version__}, {torch.get_num_threads()} threads; milliseconds of code that torch's Inductor "
        f"generates, of {NUMBERS:,} float32 numbers and a mask of as many.\n\nBy [decision 0049]"
        "(../decisions/0049-masks-are-bytes.md) masks come to the code of `inductor` and `ipex`, and from it, as bytes."
        f"\n\n| code that | {' | '.join(COLUMNS)} |\n| --- | ---: | ---: | ---: |\n" + "\n".join(lines) + "\n"
    )


if __name__ == "__main__":
    main()
