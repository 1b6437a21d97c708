"""Products of halves whose width is odd, three ways: with gaps between rows, put together, and made in bands.

    python benchmarks/odd_width.py [--width 50257] [--out docs/results/odd-width]

On a CUDA device. With gaps is what torch.compile gives its caller: the weight is padded, at each call. Microseconds of
the device, of a recording that is replayed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import torch
from tables import write_results

from fairlead_inductor._bands import OP

ROOT = Path(__file__).parents[1]
SUMMED, ROWS = (768, 1024, 1600, 4096), (1024, 2048, 4096)
ROUND = 8
"""The halves that a kernel writes at a time."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--width", type=int, default=50257)
    parser.add_argument("--out", type=Path, default=ROOT / "docs/results/odd-width")
    options = parser.parse_args()
    torch._dynamo.config.recompile_limit = 4 * len(SUMMED) * len(ROWS)
    width = options.width
    lines = [
        "| summed | rows | with gaps, us | put together, us | in bands, us | in bands over put together |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    found: list[dict[str, float]] = []
    for summed in SUMMED:
        for rows in ROWS:
            gaps, together, bands = measured(rows, summed, width)
            found.append({"summed": summed, "rows": rows, "gaps": gaps, "together": together, "bands": bands})
            lines.append(f"| {summed} | {rows} | {gaps:.0f} | {together:.0f} | {bands:.0f} | {together / bands:.2f} |")
            print(lines[-1], flush=True)
    page = (
        f"# Products of an odd width\n\n`python benchmarks/odd_width.py --width {width}`. "
        f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}, torch {torch.__version__}. bfloat16, {width} "
        "columns; microseconds of the device. With gaps between its rows is what torch.compile gives: it pads the "
        "weight at each call. Put together are two products, by one kernel; "
        "[in bands](../decisions/0028-what-nobody-sees-lies-as-computed.md) a product is made in place, of which "
        "`inductor` makes those that sum 1600 numbers or fewer. Above one where the latter is quicker.\n\n"
    )
    data = msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n"
    write_results(options.out, page + "\n".join(lines) + "\n", data)


def measured(rows: int, summed: int, width: int) -> tuple[float, float, float]:
    """Microseconds, each way."""
    torch.manual_seed(0)
    x = torch.randn(rows, summed, device="cuda", dtype=torch.bfloat16)
    weight = torch.randn(width, summed, device="cuda", dtype=torch.bfloat16).t()
    whole = width // ROUND * ROUND
    return (
        timed(lambda: torch.mm(x, padded(weight))[:, :width]),
        timed(lambda: joined(torch.mm(x, weight[:, :whole]), torch.mm(x, weight[:, whole:]))),
        timed(lambda: OP(x, weight)),
    )


@torch.compile(dynamic=False)
def padded(weight: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.pad(weight, (0, -weight.shape[1] % ROUND))


@torch.compile(dynamic=False)
def joined(most: torch.Tensor, rest: torch.Tensor) -> torch.Tensor:
    return torch.cat([most, rest], 1)


def timed(call: Callable[[], Any]) -> float:
    from triton.testing import do_bench_cudagraph

    call()
    milliseconds: float = do_bench_cudagraph(call, rep=60)
    return 1e3 * milliseconds


if __name__ == "__main__":
    main()
