"""Architectures through Fairlead's backends and torch's own on a CUDA device: docs/results/compare-cuda.md.

    python benchmarks/compare_cuda.py [--models bert,gpt2] [--dtypes float32] [--steps inference]
                                      [--rows 'eager;openxla'] [--turns 80] [--out docs/results/compare-cuda]

Batch 8, whole models. Each model, dtype and kind of step has a process of its own, in which every row is compiled and
verified against float64; of several devices each gets some of them. When all processes of a device are done with that,
they are timed one after another: the rows in turns, each by Triton's ``do_bench``; a ratio is the median of the turns'
ratios.
"""

from __future__ import annotations

import argparse
import os
import queue
import statistics
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import torch
import transformers
from tables import write_results

BATCH = 8
TURNS = 25
RIGHT = 8.0
"""How many times eager's own error a row's may be."""

RIVALS = {
    "cudagraphs": "torch cudagraphs",
    "inductor": "torch inductor",
    "inductor, reduce-overhead": "torch inductor, reduce-overhead",
    "inductor, reduce-overhead, lent": "torch inductor, reduce-overhead",
    "openxla": "torch inductor",
    "onnxrt": "torch inductor",
}
"""Beside what each of Fairlead's rows is held, besides eager."""


class Cell(NamedTuple):
    """What one process measures."""

    model: str
    dtype: str
    step: str


class Row(msgspec.Struct, frozen=True):
    """Milliseconds of each turn, the error beside float64, the share of native nodes, or why there is nothing."""

    name: str
    times: list[float] = []
    error: float = 0.0
    native: float | None = None
    problem: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.times)


class Result(msgspec.Struct, frozen=True):
    """What one process found."""

    model: str
    dtype: str
    step: str
    rows: list[Row]

    def row(self, name: str) -> Row | None:
        return next((r for r in self.rows if r.name == name and r.times), None)


def main() -> None:
    options = _options()
    if options.cell:
        _measure(Cell(*options.cell.split(":")), options.rows, options.patience, options.turns)
        return
    cells = [Cell(m, d, s) for s in options.steps for d in options.dtypes for m in options.models]
    results: list[Result] = []
    passed = ["--rows", ";".join(options.rows), "--patience", str(options.patience), "--turns", str(options.turns)]
    for result in _run(cells, passed):
        results.append(result)
        results.sort(key=lambda r: cells.index(Cell(r.model, r.dtype, r.step)))
        data = msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n"
        write_results(
            Path(options.out), _page(results, options.turns), data
        )  # at once: a machine may be gone before the last one


def _run(cells: Sequence[Cell], options: Sequence[str]) -> Iterator[Result]:
    """The results of all cells, as they come from the devices that torch sees."""
    count = torch.cuda.device_count()
    found: queue.SimpleQueue[Result | None] = queue.SimpleQueue()

    def work(device: int) -> None:
        for result in _run_on(device, cells[device::count], options):
            found.put(result)
        found.put(None)

    for device in range(count):
        threading.Thread(target=work, args=(device,), daemon=True).start()
    for _ in range(count):
        yield from iter(found.get, None)


def _run_on(device: int, cells: Sequence[Cell], options: Sequence[str]) -> Iterator[Result]:
    """Compile all cells at once on a device, and time them one after another."""
    command = [sys.executable, __file__, *options, "--cell"]
    seen = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": seen[device] if seen[0] else str(device)}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": environment}
    started = [subprocess.Popen([*command, ":".join(c)], text=True, **pipes) for c in cells]
    ready = [_line(process) == "ready" for process in started]
    for cell, process, is_ready in zip(cells, started, ready, strict=True):
        line = _line(process, "go\n") if is_ready else ""
        process.wait()
        if line:
            yield msgspec.json.decode(line, type=Result)
        else:
            print(f"{' '.join(cell)}: the process ended with status {process.returncode}", file=sys.stderr)


def _line(process: subprocess.Popen[str], said: str = "") -> str:
    """What the process says next, once it was told ``said``."""
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None, "a pipe"
    assert stdout is not None, "a pipe"
    stdin.write(said)
    stdin.flush()
    return stdout.readline().strip()


def _measure(cell: Cell, names: Sequence[str], patience: float, turns: int) -> None:
    """What the process of a cell does: compile, say so, wait to be told, time, and say what was found."""
    end = time.monotonic() + patience
    subject = Subject(cell)
    rows, steps = {}, {}
    for index, name in enumerate(names):
        late = Row(name, problem=f"not begun within {patience:.0f} seconds")
        rows[name], step = subject.compiled(name, index) if time.monotonic() < end else (late, None)
        if step is not None:
            steps[name] = step
        print(cell, rows[name], file=sys.stderr, flush=True)
    print("ready", flush=True)
    sys.stdin.readline()
    times = _timed(steps, turns)
    found = [msgspec.structs.replace(row, times=times.get(name, [])) for name, row in rows.items()]
    print(msgspec.json.encode(Result(*cell, found)).decode(), flush=True)


def _timed(steps: dict[str, Callable[[], Any]], turns: int) -> dict[str, list[float]]:
    from triton.testing import do_bench

    times: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(turns):
        for name, step in steps.items():
            times[name].append(do_bench(step, warmup=5, rep=40, return_mode="median"))
    return times


class Subject:
    """A model on the device with its inputs, and what it gives in float64."""

    def __init__(self, cell: Cell) -> None:
        torch.manual_seed(0)
        self.training = cell.step == "training"
        self.module, self.inputs = MODELS[cell.model](self.training)
        self._cast(torch.float64)
        self.right = self.results(self.module)
        self._cast(getattr(torch, cell.dtype))
        self.allowed = RIGHT * _distance(self.results(self.module), self.right)

    def _cast(self, dtype: torch.dtype) -> None:
        self.module.to("cuda", dtype).train(self.training)
        placed = {name: x.to("cuda") for name, x in self.inputs.items()}
        self.inputs = {name: x.to(dtype) if x.is_floating_point() else x for name, x in placed.items()}

    def function(self, index: int) -> Any:
        """The model as a function with code of its own: Dynamo keeps what it compiled by code."""
        module = self.module

        def call(**inputs: torch.Tensor) -> Any:
            return module(**inputs)

        own = call.__code__.replace(co_name=f"row_{index}")
        return types.FunctionType(own, call.__globals__, own.co_name, None, call.__closure__)

    def step(self, function: Any) -> Any:
        """One step: the output; after it, parameters have gradients where it was a training step."""
        if not self.training:
            with torch.no_grad():
                return function(**self.inputs)
        self.module.zero_grad(set_to_none=True)
        output = function(**self.inputs)
        output.loss.backward()
        return output

    def results(self, function: Any) -> list[torch.Tensor]:
        """The logits, and the gradients of a training step."""
        found = [self.step(function).logits.detach().double()]
        if self.training:
            found += [p.grad.double() for p in self.module.parameters() if p.grad is not None]
        return found

    def compiled(self, name: str, index: int) -> tuple[Row, Callable[[], Any] | None]:
        """A row without times, and the step to time where it is right."""
        try:
            run = COMPILERS[name](self.function(index))
            for _ in range(4):  # warmed up, recorded, replayed
                error = _distance(self.results(run), self.right)
        except Exception as problem:
            return Row(name, problem=f"{type(problem).__name__}: {problem}".splitlines()[0]), None
        handle = getattr(run, "fairlead", None)
        row = Row(name, error=error, native=None if handle is None else handle.placement.native_share)
        if error > self.allowed:
            return msgspec.structs.replace(row, problem=f"wrong: error {error:.1e}, {self.allowed:.1e} allowed"), None
        return row, lambda: self.step(run)


def _distance(found: Sequence[torch.Tensor], right: Sequence[torch.Tensor]) -> float:
    """The largest error among the tensors, each beside its norm; of gradients, beside the norm of all of them."""
    logits = (found[0] - right[0]).norm() / right[0].norm()
    if len(right) == 1:
        return float(logits)
    far, size = (torch.stack([t.norm() for t in each]).norm() for each in (_differences(found, right), right[1:]))
    return max(float(logits), float(far / size))


def _differences(found: Sequence[torch.Tensor], right: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [a - b for a, b in zip(found[1:], right[1:], strict=True)]


def _fairlead(function: Any, backend: str, **how: Any) -> Any:
    import fairlead

    return fairlead.compile(function, backend=backend, fullgraph=True, **how)


COMPILERS: dict[str, Callable[[Any], Any]] = {
    "eager": lambda f: f,
    "torch cudagraphs": lambda f: torch.compile(f, backend="cudagraphs", fullgraph=True),
    "cudagraphs": lambda f: _fairlead(f, "cudagraphs"),
    "torch inductor": lambda f: torch.compile(f, fullgraph=True),
    "inductor": lambda f: _fairlead(f, "inductor"),
    "torch inductor, reduce-overhead": lambda f: torch.compile(f, mode="reduce-overhead", fullgraph=True),
    "inductor, reduce-overhead": lambda f: _fairlead(f, "inductor", mode="reduce-overhead"),
    "inductor, reduce-overhead, lent": lambda f: _fairlead(
        f, "inductor", mode="reduce-overhead", options={"lend_results": True}
    ),
    "openxla": lambda f: _fairlead(f, "openxla"),
    "onnxrt": lambda f: _fairlead(f, "onnxrt"),
}
"""How each row is made of a function; those without "torch" are Fairlead's."""


def _vision(config: Any, kind: str) -> Callable[[bool], tuple[torch.nn.Module, dict[str, torch.Tensor]]]:
    def build(training: bool) -> tuple[torch.nn.Module, dict[str, torch.Tensor]]:
        inputs = {"pixel_values": torch.randn(BATCH, 3, 224, 224)}
        if training:
            inputs["labels"] = torch.arange(BATCH) % 2
        module = getattr(transformers, kind)(config())
        for name, parameter in module.named_parameters():
            if name.endswith("layer.2.normalization.weight"):
                torch.nn.init.constant_(parameter, 0.2)  # or gradients grow from block to block until rounding is all
        return module, inputs

    return build


def _text(config: Any, kind: str) -> Callable[[bool], tuple[torch.nn.Module, dict[str, torch.Tensor]]]:
    def build(training: bool) -> tuple[torch.nn.Module, dict[str, torch.Tensor]]:
        inputs = {"input_ids": torch.randint(3, 1000, (BATCH, 128))}
        if training:
            inputs["labels"] = inputs["input_ids"].clone()
        module = getattr(transformers, kind)(config())
        module.loss_type = "ForCausalLM"  # what GPT-2 takes, and logs that it was not told
        return module, inputs

    return build


NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
GPT2 = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "use_cache": False}

MODELS = {
    "resnet50": _vision(transformers.ResNetConfig, "ResNetForImageClassification"),
    "vit-b": _vision(transformers.ViTConfig, "ViTForImageClassification"),
    "bert": _text(lambda: transformers.BertConfig(**NO_DROPOUT), "BertForMaskedLM"),
    "gpt2": _text(lambda: transformers.GPT2Config(**GPT2), "GPT2LMHeadModel"),
}
"""Models of their usual size, with random weights."""


def _page(results: Sequence[Result], turns: int) -> str:
    device = torch.cuda.get_device_properties(0)
    versions = ", ".join(f"{n} {metadata.version(n)}" for n in ("torch", "triton", "transformers", "jax"))
    head = (
        f"# Backends on CUDA\n\n`python benchmarks/compare_cuda.py {' '.join(sys.argv[1:])}`, {date.today()}. "
        f"{device.name}, CUDA {torch.version.cuda}, {versions}.\n\n"
        f"Batch {BATCH}; images of 224 by 224 pixels, texts of 128 tokens; random weights; float32 as torch "
        "has it by default: products without TF32, convolutions with it. "
        f"Milliseconds a step by `do_bench`, median of {turns} turns of all rows; a ratio is the median of the turns' "
        "ratios, and above one where the first is quicker. A row is verified against float64 before it is timed."
    )
    steps = dict.fromkeys((r.step, r.dtype) for r in results)
    sections = [_section(*step, [r for r in results if (r.step, r.dtype) == step]) for step in steps]
    problems = [
        f"- {r.model}, {r.dtype}, {r.step}, {x.name}: {x.problem}" for r in results for x in r.rows if x.problem
    ]
    problems = ["## Not timed", "\n".join(problems)] if problems else []
    return "\n\n".join([head, *sections, *problems]) + "\n"


def _section(step: str, dtype: str, results: Sequence[Result]) -> str:
    names = dict.fromkeys(row.name for r in results for row in r.rows)
    lines = [["", *(r.model for r in results)], ["---", *("---:" for _ in results)]]
    for name in names:
        found = [r.row(name) for r in results]
        lines.append([f"{name}, ms", *("-" if row is None else f"{row.median:.2f}" for row in found)])
    ours = [name for name in RIVALS if name in names]
    for name in ours:
        for other in (RIVALS[name], "eager"):
            ratios = [_ratio(r, name, other) for r in results]
            lines.append([f"{name} over {other}", *("-" if x is None else f"{x:.2f}" for x in ratios)])
    for name in ours:
        shares = [row.native if (row := r.row(name)) else None for r in results]
        lines.append([f"{name}, native nodes", *("-" if x is None else f"{x:.0%}" for x in shares)])
    return f"## {step.capitalize()}, {dtype}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _ratio(result: Result, name: str, other: str) -> float | None:
    row, rival = result.row(name), result.row(other)
    if row is None or rival is None:
        return None
    return statistics.median(b / a for a, b in zip(row.times, rival.times, strict=True))


def _options() -> argparse.Namespace:
    def names(separator: str) -> Callable[[str], tuple[str, ...]]:
        return lambda text: tuple(text.split(separator))

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", type=names(","), default=tuple(MODELS))
    parser.add_argument("--dtypes", type=names(","), default=("float32", "bfloat16"))
    parser.add_argument("--steps", type=names(","), default=("inference", "training"))
    parser.add_argument("--rows", type=names(";"), default=tuple(COMPILERS), help="separated by semicolons")
    parser.add_argument("--patience", type=float, default=1800.0, help="seconds after which no row is begun")
    parser.add_argument("--turns", type=int, default=TURNS, help="more where a step waits for the host, which is noisy")
    parser.add_argument("--cell", help=argparse.SUPPRESS)
    parser.add_argument("--out", default="docs/results/compare-cuda", help="where to write, without the suffix")
    return parser.parse_args()


if __name__ == "__main__":
    main()
