"""Ten thousand calls of a frozen program with mixed declared sizes: docs/results/frozen-cpu.md.

    python benchmarks/frozen.py [--calls 10000] [--backends eager,onnxrt,openvino] [--threads 1] [--out FILE]

An encoder is compiled ahead for every bucket of batch and length, frozen, and called with sizes drawn from the
declared ranges. Whatever is compiled meanwhile is counted, where Dynamo hands a graph over and where a backend is asked
to compile. Results of every hundredth call are compared with eager mode's.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import torch
from tables import write_results

import fairlead
from fairlead._compare._machine import describe
from fairlead.hooks import CompileJob, hookimpl, plugin_manager
from fairlead.ir import Graph

BATCH = fairlead.Dim("batch", min=1, max=8, buckets=[1, 4, 8])
LENGTH = fairlead.Dim("length", min=1, max=64, buckets=[16, 64])


class Encoder(torch.nn.Module):
    """Two layers of self-attention; the mask says which positions are there."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(100, 64)
        self.layers = torch.nn.ModuleList(torch.nn.TransformerEncoderLayer(64, 4, 128, 0.0) for _ in range(2))

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        x = self.embedding(ids).transpose(0, 1)
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=~mask)
        return x.transpose(0, 1)


class Latency(msgspec.Struct, frozen=True):
    """Milliseconds of a call."""

    p50: float
    p99: float
    p999: float
    worst: float


class Row(msgspec.Struct, frozen=True):
    """What one backend did."""

    backend: str
    programs: int
    ahead: float
    compiled: int
    misses: int
    frozen: Latency
    thawed: Latency
    undeclared: str


class Counter:
    """Counts what is captured and what is compiled."""

    def __init__(self) -> None:
        self.count = 0

    @hookimpl
    def fairlead_captured(self, graph: Graph) -> None:
        self.count += 1

    @hookimpl
    def fairlead_compiled(self, job: CompileJob) -> None:
        self.count += 1


def main() -> None:
    options = _options()
    torch.set_num_threads(options.threads)
    rows = []
    with torch.no_grad():
        for backend in options.backends:
            rows.append(measure(backend, options.calls))
            print(rows[-1])
    write_results(Path(options.out), _page(rows, options), msgspec.json.format(msgspec.json.encode(rows)) + b"\n")


def measure(backend: str, calls: int) -> Row:
    """Compile ahead, freeze, call; then the same without freezing."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = Encoder().eval()
    shapes = {"ids": {0: BATCH, 1: LENGTH}, "mask": {0: BATCH, 1: LENGTH}}
    compiled = fairlead.compile(model, backend=backend, shapes=shapes, benchmark=False)
    counter = Counter()
    plugin_manager().register(counter)
    try:
        seconds = fairlead.compile_ahead(compiled, _inputs(2, 3))
        before = counter.count
        with fairlead.freeze(compiled, weights="constant") as frozen:
            latency = _latency(compiled, model, calls)
        return Row(
            backend,
            len(seconds),
            sum(seconds.values()),
            counter.count - before,
            frozen.misses,
            latency,
            _latency(compiled, model, calls // 5),
            _undeclared(compiled, model),
        )
    finally:
        plugin_manager().unregister(counter)


def _latency(compiled: Callable[..., Any], model: torch.nn.Module, calls: int) -> Latency:
    draw = random.Random(0)
    times = []
    for call in range(calls):
        inputs = _inputs(draw.randint(BATCH.min, BATCH.max), draw.randint(LENGTH.min, LENGTH.max))
        start = time.perf_counter()
        result = compiled(*inputs)
        times.append((time.perf_counter() - start) * 1e3)
        if call % 100 == 0:
            torch.testing.assert_close(result, model(*inputs), rtol=1e-3, atol=1e-4)
    times.sort()
    return Latency(*(times[min(int(calls * share), calls - 1)] for share in (0.5, 0.99, 0.999, 1.0)))


def _undeclared(compiled: Callable[..., Any], model: torch.nn.Module) -> str:
    """What becomes of one more row than is declared, for both choices."""
    inputs = _inputs(BATCH.max + 1, 16)
    with fairlead.freeze(compiled):
        try:
            compiled(*inputs)
        except fairlead.FairleadError as error:
            outcome = error.code
    with fairlead.freeze(compiled, miss="eager") as frozen:
        torch.testing.assert_close(compiled(*inputs), model(*inputs))
    return f"{outcome}; eager, {frozen.misses} miss"


def _inputs(batch: int, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randint(100, (batch, length)), torch.ones(batch, length, dtype=torch.bool)


def _page(rows: list[Row], options: argparse.Namespace) -> str:
    here = describe()
    head = (
        "# Frozen programs on a CPU\n\n"
        f"`{' '.join(('python benchmarks/frozen.py', *sys.argv[1:]))}`. {here.processor}, {here.cores} cores at a load "
        f"of {here.load:.1f}, {options.threads} thread{'s' if options.threads > 1 else ''}, torch {torch.__version__}. "
        "A load beyond the cores is other programs: the slow calls are theirs then.\n\n"
        f"An encoder of two layers, batches of 1 to {BATCH.max} (buckets {list(BATCH.buckets)}) and lengths of 1 to "
        f"{LENGTH.max} (buckets {list(LENGTH.buckets)}); {options.calls:,} calls of sizes drawn from these ranges, "
        'frozen with `weights="constant"`, then a fifth as many thawed. `compiled` counts graphs and Parts that were '
        "compiled during the frozen calls. Milliseconds a call; every hundredth result was compared with eager "
        "mode's.\n\n"
    )
    cells = [
        "| backend | programs | compiled ahead, s | compiled | misses | | p50 | p99 | p99.9 | worst | undeclared |",
        "|---|---:|---:|---:|---:|---|---:|---:|---:|---:|---|",
    ]
    for row in rows:
        facts = f"{row.backend} | {row.programs} | {row.ahead:.1f} | {row.compiled} | {row.misses}"
        cells.append(f"| {facts} | frozen | {_cells(row.frozen)} | {row.undeclared} |")
        cells.append(f"| | | | | | thawed | {_cells(row.thawed)} | |")
    return head + "\n".join(cells) + "\n"


def _cells(latency: Latency) -> str:
    return " | ".join(f"{value:.2f}" for value in msgspec.structs.astuple(latency))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--backends", type=lambda text: text.split(","), default=["eager", "onnxrt", "openvino"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", default="docs/results/frozen-cpu", help="where to write, without the suffix")
    return parser.parse_args()


if __name__ == "__main__":
    main()
