"""What a call loses to memory that the C library gives back after it: ``docs/results/faults.md``.

    python benchmarks/faults.py [--train] [--models nets:lstm nets:swin] [--backends eager ipex]

With ``--train`` a call is a step of training, and the page ``docs/results/faults-training.md``.

Each row is a process for each of `KEEPING`, which are called in turns. A page fault is memory that a call asks the
system for anew.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import torch
from tables import table, write_results

import fairlead
from fairlead import _compile, _heap
from fairlead._compare._machine import describe
from fairlead._compare._step import step
from fairlead._models._load import load

MODELS = ("nets:lstm", "nets:swin", "nets:unet")
BACKENDS = ("eager", "inductor", "ipex", "openxla", "onnxrt", "openvino", "tvm")
KEEPING = ("nothing", "64 MiB", "all")
"""What glibc keeps of what is free: what it has learned by itself, what Fairlead has it keep, and a gibibyte. In
training Fairlead has it keep all.
"""

KEPT = {"MALLOC_TRIM_THRESHOLD_": str(2**30), "MALLOC_MMAP_THRESHOLD_": str(2**25)}
"""Has it keep a gibibyte."""

WARM, TURNS, CALLS = 5, 9, 6


class Turn(msgspec.Struct, frozen=True):
    """The median of a turn's calls."""

    milliseconds: float
    faults: float


class Row(msgspec.Struct, frozen=True):
    """Of the processes of `KEEPING`, in the same turns."""

    model: str
    backend: str
    turns: tuple[tuple[Turn, ...], ...]

    def cells(self) -> list[str]:
        faults = (statistics.median(t.faults for t in turns) for turns in self.turns)
        times = (statistics.median(t.milliseconds for t in turns) for turns in self.turns)
        given_back, *kept = self.turns
        gains = (
            statistics.median(a.milliseconds / b.milliseconds for a, b in zip(given_back, turns, strict=True))
            for turns in kept
        )
        numbers = (*(f"{n:.0f}" for n in faults), *(f"{ms:.1f}" for ms in times), *(f"{g:.2f}" for g in gains))
        return [f"{self.model}, {self.backend}", *numbers]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--batches", type=int, default=1, help="so many times the batch of the model's example")
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--backends", nargs="+", default=BACKENDS)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--row", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row:
        serve(*options.row, training=options.train, batches=options.batches)
        return
    rows = [
        measure(model, backend, options.train, options.batches)
        for model in options.models
        for backend in options.backends
    ]
    out = options.out or Path(__file__).parents[1] / f"docs/results/faults{'-training' * options.train}"
    write_results(
        out,
        page(rows, options.train, options.batches),
        msgspec.json.format(msgspec.json.encode(rows), indent=1) + b"\n",
    )


def measure(model: str, backend: str, training: bool, batches: int) -> Row:
    print(f"{model}: {backend}", file=sys.stderr, flush=True)
    processes = [start(model, backend, keeping, training, batches) for keeping in KEEPING]
    turns: list[list[Turn]] = [[] for _ in processes]
    for _ in range(TURNS):
        for process, found in zip(processes, turns, strict=True):
            process.stdin.write(b"\n")
            process.stdin.flush()
            if not (answer := process.stdout.readline()):
                sys.exit(f"{model} through {backend} ended with {process.wait()}; what it said is above")
            found.append(msgspec.json.decode(answer, type=Turn))
    for process in processes:
        process.communicate()
    return Row(model, backend, tuple(map(tuple, turns)))


def start(model: str, backend: str, keeping: str, training: bool, batches: int) -> subprocess.Popen[bytes]:
    environment = {**os.environ, **(KEPT if keeping == "all" and not training else {})}
    command = [
        sys.executable,
        __file__,
        *["--train"] * training,
        "--batches",
        str(batches),
        "--row",
        model,
        backend,
        keeping,
    ]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def serve(name: str, backend: str, keeping: str, *, training: bool, batches: int) -> None:
    """Answer each line on standard input with a turn."""
    if keeping == "64 MiB" or (keeping == "all" and training):
        _heap.keep_freed_memory()
    if keeping == "all" and training:
        _heap.keep_memory_of_steps()
    _compile.keep_freed_memory = _compile.keep_memory_of_steps = lambda: None
    model = load(name, training=training)
    module = model.module if backend == "eager" else fairlead.compile(model.module, backend=backend, benchmark=False)
    tensors = {name: torch.cat([tensor] * batches) for name, tensor in model.tensors.items()}
    call = step(model, module, tensors, training)
    with torch.set_grad_enabled(training):
        for _ in range(WARM):
            call()
        for _ in sys.stdin:
            calls = []
            for _ in range(CALLS):
                before, start = resource.getrusage(resource.RUSAGE_SELF).ru_minflt, time.perf_counter()
                call()
                seconds = time.perf_counter() - start
                calls.append((1e3 * seconds, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before))
            print(msgspec.json.encode(Turn(*map(statistics.median, zip(*calls, strict=True)))).decode(), flush=True)


def page(rows: list[Row], training: bool, batches: int) -> str:
    heads = [f"{what}, {keeping}" for what in ("faults", "ms") for keeping in KEEPING]
    gains = [f"times as fast, {keeping}" for keeping in KEEPING[1:]]
    head = ["model, backend", *heads, *gains]
    machine = describe()
    call = "step" if training else "call"
    everything = (
        "what a process keeps that trains with Fairlead, and here eager's too"
        if training
        else f"with `{' '.join(f'{k}={v}' for k, v in KEPT.items())}` in the environment, without Fairlead's part"
    )
    command = " ".join(("python benchmarks/faults.py", *sys.argv[1:]))
    return (
        f"# Memory that is asked for at each {call}{' of training' * training}\n\n`{command}`. {machine.processor}, "
        f"{machine.cores} cores, torch {torch.__version__}, {torch.get_num_threads()} threads.\n\nThe C library gives "
        f"memory back to the system after a {call} and asks for it again in the next: each page of 4 KiB is a fault, "
        "in which the system clears it. Whether it does so depends on what the process has freed before, and on what "
        "else lies in its heap. *64 MiB* are what it keeps in a process that has compiled with Fairlead, and here in "
        f"eager's too; *all* is {everything} ([what that is](../memory.md#what-is-given-back-at-each-call)). Three "
        "processes a row, called in turns; medians of turns, and of their ratios."
        f"{f' Batches are {batches} times those of the examples.' * (batches > 1)}\n\n"
        + table(head, [row.cells() for row in rows])
        + "\n"
    )


if __name__ == "__main__":
    main()
