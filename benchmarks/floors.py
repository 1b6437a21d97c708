"""How much longer our executables take than the vendor's runtime alone on the same graph.

    python benchmarks/floors.py [--models bert ...] [--backends onnxrt ...] [--out docs/results/floors]

An executable takes the tensors that a program passes and gives new results; the runtime alone is its own call with
everything bound once (`alone`). Both take turns in one process, a model and a backend each. Of a graph in several Parts
each Part is called by itself, and their times are added up.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import compare
import msgspec
import nets
import torch
from alone import Bind, bound_machine, bound_program, bound_request, bound_session, seeing
from tables import versions_of, write_results

import fairlead
from fairlead._compare._machine import describe
from fairlead._models._load import load

MODELS = (*compare.MODELS, *(f"nets:{name}" for name in nets.__all__))
ALONE: Mapping[str, Bind] = {
    "onnxrt": bound_session,
    "openvino": bound_request,
    "openxla": bound_program,
    "tvm": bound_machine,
}
TURNS, CALLS = 15, 7
SHARE, SECONDS = 0.05, 20e-6
"""An executable may take this part of the runtime's time longer, or so many seconds."""

Run = Callable[[], object]


class Floor(msgspec.Struct, frozen=True):
    """Seconds of ours, of the runtime alone, and of what ours takes longer: each the median of the turns."""

    model: str
    backend: str
    parts: int
    ours: float
    alone: float
    longer: float

    @property
    def is_near(self) -> bool:
        return self.longer <= max(SHARE * self.alone, SECONDS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--backends", nargs="+", choices=ALONE, default=list(ALONE))
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "docs/results/floors")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(msgspec.json.encode(measured(options.models[0], options.backends[0])).decode())
        return
    found: list[Floor] = []
    for model in options.models:
        for backend in options.backends:
            command = [sys.executable, __file__, "--one", "--models", model, "--backends", backend]
            shown = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()[-1]
            print(model, backend, shown, file=sys.stderr, flush=True)
            floor = msgspec.json.decode(shown, type=Floor | None)
            if floor is not None:
                found.append(floor)
                data = msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n"
                write_results(options.out, page(found), data)


def measured(name: str, backend: str) -> Floor | None:
    """None where the backend takes nothing of the model."""
    model = load(name)
    with seeing(backend) as parts, torch.no_grad():
        fairlead.compile(model.module, backend=backend, benchmark=False)(*model.args, **model.kwargs)
    if not parts:
        return None
    given = [part.copied() for part in parts]
    bound = [ALONE[backend](part, inputs) for part, inputs in zip(parts, given, strict=True)]
    alone = [run for run, _ in bound]
    ours: list[Run] = [lambda call=part.executable, x=x: call(list(x)) for part, x in zip(parts, given, strict=True)]
    with torch.no_grad():
        turns = [(sum(map(seconds, ours)), sum(map(seconds, alone))) for _ in range(TURNS)]
    medians = map(statistics.median, (*zip(*turns, strict=True), [first - second for first, second in turns]))
    return Floor(name, backend, len(parts), *medians)


def seconds(run: Run) -> float:
    """Of a call that comes after another, the median of a few."""
    run()
    found = []
    for _ in range(CALLS):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def page(found: Sequence[Floor]) -> str:
    backends = list(dict.fromkeys(floor.backend for floor in found))
    machine = describe()
    command = " ".join(("python benchmarks/floors.py", *sys.argv[1:]))
    lines = [
        "# Executables beside the runtime alone\n",
        f"`{command}`. {machine.processor}, {machine.cores} cores, {torch.get_num_threads()} threads; "
        f"{versions_of(machine)}.\n",
        "Milliseconds of float32 inference: our executables, which take the tensors that a program passes and give new "
        "results; and the vendor's runtime alone on the same graph, its own call with everything bound once. Medians "
        f"of {TURNS} turns in which both were called. Longer by more than {SHARE:.0%} and {SECONDS * 1e6:.0f} "
        f"microseconds is bold: **{sum(not f.is_near for f in found)} of {len(found)}**. A dash is a model "
        "that a backend leaves to others.\n",
        "| model | " + " | ".join(f"{b} | alone | longer" for b in backends) + " |",
        "| --- |" + " ---: |" * 3 * len(backends),
    ]
    at = {(floor.model, floor.backend): floor for floor in found}
    for model in dict.fromkeys(floor.model for floor in found):
        cells = [cell for b in backends for cell in cells_of(at.get((model, b)))]
        lines.append(f"| {model.removeprefix('nets:')} | " + " | ".join(cells) + " |")
    means = [statistics.geometric_mean([1 + f.longer / f.alone for f in found if f.backend == b]) for b in backends]
    lines.append("| geometric mean |" + "".join(f" | | {mean - 1:+.1%} |" for mean in means))
    return "\n".join(lines) + "\n"


def cells_of(floor: Floor | None) -> tuple[str, str, str]:
    if floor is None:
        return "-", "-", "-"
    longer = f"{floor.longer / floor.alone:+.1%}"
    return f"{floor.ours * 1e3:.2f}", f"{floor.alone * 1e3:.2f}", longer if floor.is_near else f"**{longer}**"


if __name__ == "__main__":
    main()
