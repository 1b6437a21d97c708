"""What ``benchmark`` chooses, left out or True, and what a call then takes beside eager and beside the backend alone.

    python benchmarks/quickest.py [--models nets:mamba vit-b] [--backends openxla] [--ways None] [--train] [--out PATH]

Each model and backend has a process of its own, in which all take turns once the choice is made; a ratio is the
median of the turns' ratios. A step of training is one call, its backward, and the weights written as an optimizer does.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch
from tables import write_results

import fairlead
from fairlead._benchmark import ROUNDS, WARM
from fairlead._compare._machine import describe
from fairlead._compare._step import loss_of
from fairlead._models._load import load
from fairlead.placement import GraphPlacement

ROOT = Path(__file__).parents[1]
CANDIDATES = 3
"""The backend, and the two of the default cascade."""


MORE = 30
"""Calls in which graphs are put off that only the first call had, such as transformers' before a config is filled."""


WAYS = {"None": None, "True": True, "False": False}
"""What ``benchmark`` may be, by its text."""


class Row(msgspec.Struct, frozen=True):
    """Milliseconds of eager, speeds over it by what ``benchmark`` is, and by that what was chosen for which graph."""

    model: str
    backend: str
    eager: float
    speeds: dict[str, float]
    choices: dict[str, list[str]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["nets:mamba", "nets:swin", "vit-b"])
    parser.add_argument("--backends", nargs="+", default=["onnxrt", "openvino", "openxla", "tvm"])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS), help="what benchmark is")
    parser.add_argument("--train", action="store_true", help="steps of training")
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--out", type=Path, default=ROOT / "docs/results/quickest")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        row = measured(options.models[0], options.backends[0], options.ways, options.turns, training=options.train)
        print(msgspec.json.encode(row).decode())
        return
    rows: list[Row] = []
    for model in options.models:
        for backend in options.backends:
            command = [sys.executable, __file__, "--one", "--models", model, "--backends", backend]
            command += ["--turns", str(options.turns), *(["--train"] if options.train else []), "--ways", *options.ways]
            found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            rows.append(msgspec.json.decode(found.stdout.splitlines()[-1], type=Row))
            print(rows[-1], file=sys.stderr, flush=True)
            data = msgspec.json.format(msgspec.json.encode(rows), indent=1) + b"\n"
            write_results(options.out, page(rows, options.ways, options.turns, training=options.train), data)


def measured(name: str, backend: str, ways: Sequence[str], turns: int, *, training: bool) -> Row:
    """The row of a model and a backend; a copy of the model for each way, so that none is compiled twice."""
    model = load(name, training=training)
    torch.manual_seed(0)
    compiled = {
        way: fairlead.compile(copy.deepcopy(model.module), backend=backend, benchmark=WAYS[way]) for way in ways
    }
    calls = {"eager": step(model.module, model, training)}
    calls |= {way: step(made, model, training) for way, made in compiled.items()}
    if "True" in ways:  # a backward comes after its forward
        for _ in range((WARM + ROUNDS) * CANDIDATES * (2 if training else 1) + MORE):
            calls["True"]()
    times: dict[str, list[float]] = {each: [] for each in calls}
    for turn in range(turns + 2):
        order = [*calls.items()]
        for each, call in order[turn % len(order) :] + order[: turn % len(order)]:  # whose threads are still about
            took = timed(call)
            if turn > 1:
                times[each].append(took)
    speeds = {way: statistics.median(a / b for a, b in zip(times["eager"], times[way], strict=True)) for way in ways}
    choices = {
        way: [
            f"{graph.name}: {reason}"
            for graph in placed(made)
            for reason in sorted({d.reason for d in graph.declines if " ms a " in d.reason})
        ]
        for way, made in compiled.items()
    }
    return Row(name, backend, 1e3 * statistics.median(times["eager"]), speeds, choices)


def placed(compiled: Any) -> Sequence[GraphPlacement]:
    return compiled.fairlead.placement.graphs


def step(call: Any, model: Any, training: bool) -> Callable[[], None]:
    module = getattr(call, "_orig_mod", call)

    def run() -> None:
        if not training:
            with torch.no_grad():
                call(*model.args, **model.kwargs)
            return
        module.zero_grad(set_to_none=True)
        loss_of(call(*model.args, **model.kwargs)).backward()
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.mul_(1.0)

    return run


def timed(call: Callable[[], None]) -> float:
    call()
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def page(rows: Sequence[Row], ways: Sequence[str], turns: int, *, training: bool) -> str:
    what = "a step of training" if training else "inference"
    named = [f"`benchmark={way}`" for way in ways]
    lines = [
        f"| model | backend | eager, ms | {' | '.join(named)} | choice |",
        f"| --- | --- | ---: |{' ---: |' * len(ways)} --- |",
    ]
    for r in rows:
        chosen = "<br>".join(f"{way}: {each}" for way in ways for each in r.choices[way]) or r.backend
        speeds = " | ".join(f"{r.speeds[way]:.2f}" for way in ways)
        lines.append(f"| {r.model} | {r.backend} | {r.eager:.1f} | {speeds} | {chosen} |")
    machine = describe()
    return (
        f"# What `benchmark` chooses: {what}\n\n`python benchmarks/quickest.py {' '.join(sys.argv[1:])}`. "
        f"{machine.processor}, {machine.cores} cores, torch {torch.__version__} with threads for "
        f"{torch.get_num_threads()}.\n\nSpeeds over eager, all of a row in one process, in {turns} turns after the "
        "choice: the median of the turns' ratios, above 1 where eager is slower. Where a graph is named, its "
        "calls were quicker through what is said there; the others stay with the backend that was asked for. `None` "
        "is what a program has that says nothing of it.\n\n" + "\n".join(lines) + "\n"
    )


if __name__ == "__main__":
    main()
