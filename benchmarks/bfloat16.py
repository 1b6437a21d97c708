"""Whether products of bfloat16 are quicker than those of float32 here: what decision 0043 rests on.

    python benchmarks/bfloat16.py [--out PATH]

Torch's kernels through oneDNN, with packed weights, in both; the best of many calls, which take turns.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import msgspec
import torch
from peak import seconds
from tables import write_results

from fairlead._compare._machine import describe
from fairlead.interpret import multiplies_bfloat16

ROOT = Path(__file__).parents[1]
DTYPES = torch.float32, torch.bfloat16
LAYERS = ((64, 1024, 1024), (256, 768, 3072), (1024, 1024, 1024))
"""Rows, columns of the input and of the result."""
CONVOLUTIONS = ((64, 64, 3, 56), (256, 64, 1, 56), (256, 256, 3, 14), (1024, 256, 1, 14), (512, 512, 3, 7))
"""Channels of the input and of the result, the window, and height and width of two images."""
TURNS = 60


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "docs/results/bfloat16")
    options = parser.parse_args()
    with torch.no_grad():
        rows = {f"layer {shape}": speeds(layer, *shape) for shape in LAYERS}
        rows |= {f"convolution {shape}": speeds(convolution, *shape) for shape in CONVOLUTIONS}
    write_results(options.out, page(rows), msgspec.json.format(msgspec.json.encode(rows), indent=1) + b"\n")


def speeds(make: Callable[..., tuple[Callable[[], object], int]], *shape: int) -> list[float]:
    """Operations a second, by dtype."""
    calls = [make(dtype, *shape) for dtype in DTYPES]
    times = [[seconds(call) for call, _ in calls] for _ in range(TURNS)]
    return [count / min(column) for (_, count), column in zip(calls, zip(*times, strict=True), strict=True)]


def layer(dtype: torch.dtype, rows: int, given: int, made: int) -> tuple[Callable[[], object], int]:
    x, weight = torch.randn(rows, given, dtype=dtype), torch.randn(made, given, dtype=dtype)
    packed = torch.ops.mkldnn._reorder_linear_weight(weight, rows)
    return lambda: torch.ops.mkldnn._linear_pointwise(x, packed, None, "none", [], ""), 2 * rows * given * made


def convolution(dtype: torch.dtype, given: int, made: int, window: int, size: int) -> tuple[Callable[[], object], int]:
    shape = [2, given, size, size]
    x = torch.randn(shape, dtype=dtype).contiguous(memory_format=torch.channels_last)
    weight = torch.randn(made, given, window, window, dtype=dtype)
    geometry = [window // 2] * 2, [1, 1], [1, 1], 1
    packed = torch.ops.mkldnn._reorder_convolution_weight(weight, *geometry, shape)
    count = 2 * x.numel() * made * window**2
    return lambda: torch.ops.mkldnn._convolution_pointwise(x, packed, None, *geometry, "none", [], ""), count


def page(rows: dict[str, list[float]]) -> str:
    machine = describe()
    lines = [f"| {name} | " + " | ".join(f"{speed / 1e9:.0f}" for speed in row) + " |" for name, row in rows.items()]
    kept = "bfloat16" if multiplies_bfloat16() else "float32"
    return (
        f"# Products of bfloat16 and of float32\n\n`python benchmarks/bfloat16.py`. {machine.processor}, "
        f"{machine.cores} cores, torch {torch.__version__}, {torch.get_num_threads()} threads; GFLOP/s of oneDNN's "
        "kernels.\n\nBy [decision 0043](../decisions/0043-bfloat16-by-the-quicker-instructions.md) products of "
        f"bfloat16 are computed in {kept} here.\n\n|  | float32 | bfloat16 |\n| --- | ---: | ---: |\n"
        + "\n".join(lines)
        + "\n"
    )


if __name__ == "__main__":
    main()
