"""Microseconds of the host that a call through XLA takes on a CUDA device: docs/results/overhead-cuda.md.

    python benchmarks/overhead_cuda.py [--out docs/results/overhead-cuda]

``added`` is what the call takes beyond jax's executable, called with arrays that are ready, less what torch.compile
spends around the ops with a backend that does nothing. All rows are timed in turns, and differences are taken turn by
turn. Calls follow one another, or each waits until the device has nothing left to do.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any

import jax
import msgspec
import tiny
import torch
from jax import numpy as jnp
from tables import write_results
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func

import fairlead

CALLS = 200
TURNS = 21
REGIMES = {"one after another": False, "device idle": True}

Times = dict[str, list[float]]


def rows(name: str) -> dict[str, Callable[[], Any]]:
    """What is timed, by name."""
    module, example = getattr(tiny, name)()
    module, x = module.eval().cuda(), example.cuda()
    array, weights = jax.dlpack.from_dlpack(x), [jax.dlpack.from_dlpack(p.detach()) for p in module.parameters()]

    def program(x: Any, *weights: Any) -> Any:
        return jnp.matmul(x, weights[0].T) + weights[1] if weights else x + 1

    alone = jax.jit(program).lower(array, *weights).compile()
    graphs: list[torch.fx.GraphModule] = []

    def nothing(gm: torch.fx.GraphModule, inputs: Any) -> Any:
        graphs.append(gm)
        return make_boxed_func(gm.forward)

    plain = torch.compile(module, backend=aot_autograd(fw_compiler=nothing))
    ours, inductor = fairlead.compile(module, backend="openxla", fallback=()), torch.compile(module)
    torch.testing.assert_close(ours(x), module(x))
    plain(x)
    given = (*(p.detach() for p in module.parameters()), x)
    return {
        "ops alone": lambda: graphs[0](*given),
        "torch.compile, no-op backend": lambda: plain(x),
        "torch.compile, Inductor": lambda: inductor(x),
        "XLA alone": lambda: alone(array, *weights),
        "XLA between from_dlpack of jax and of torch": lambda: torch.from_dlpack(
            alone(jax.dlpack.from_dlpack(x), *weights)
        ),
        "fairlead openxla": lambda: ours(x),
    }


def timed(row: Callable[[], Any], waits: bool) -> float:
    """Microseconds of a call, median where each is timed by itself."""
    torch.cuda.synchronize()
    if not waits:
        start = time.perf_counter()
        for _ in range(CALLS):
            row()
        return (time.perf_counter() - start) / CALLS * 1e6
    each = []
    for _ in range(CALLS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        row()
        each.append((time.perf_counter() - start) * 1e6)
    return statistics.median(each)


def measured(found: dict[str, Callable[[], Any]], waits: bool) -> Times:
    times: Times = {name: [] for name in found}
    with torch.no_grad():
        for turn in range(-1, TURNS):  # the first warms up
            for name, row in found.items():
                taken = timed(row, waits)
                if turn >= 0:
                    times[name].append(taken)
    return times


def added(times: Times) -> float:
    """Of `measured`, what Fairlead adds."""
    columns = ("fairlead openxla", "XLA alone", "torch.compile, no-op backend", "ops alone")
    turns = zip(*(times[name] for name in columns), strict=True)
    return statistics.median(ours - alone - (plain - ops) for ours, alone, plain, ops in turns)


def page(results: dict[str, dict[str, Times]]) -> str:
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("torch", "jax"))
    lines = [
        "# What Fairlead adds to a call on CUDA\n",
        f"`python benchmarks/overhead_cuda.py`, {date.today()}. {torch.cuda.get_device_name()}, CUDA "
        f"{torch.version.cuda}, {versions}. Microseconds of the host a call, median of {TURNS} turns.\n",
        "`added` = (fairlead openxla - XLA alone) - (no-op backend - ops alone).",
    ]
    for model, regimes in results.items():
        lines += [f"\n## {model}\n", f"| | {' | '.join(regimes)} |", f"| --- |{' ---: |' * len(regimes)}"]
        for name in next(iter(regimes.values())):
            cells = [f"{statistics.median(times[name]):.1f}" for times in regimes.values()]
            lines.append(f"| {name} | {' | '.join(cells)} |")
        lines.append(f"| added | {' | '.join(f'{added(times):.1f}' for times in regimes.values())} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", default="docs/results/overhead-cuda", help="where to write, without the suffix")
    options = parser.parse_args()
    results = {}
    for name in tiny.__all__:
        torch.manual_seed(0)
        found = rows(name)
        results[name] = {regime: measured(found, waits) for regime, waits in REGIMES.items()}
    text = page(results)
    print(text)
    write_results(Path(options.out), text, msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n")


if __name__ == "__main__":
    main()
