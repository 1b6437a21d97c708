"""Architectures through Fairlead's backends, torch's inductor and the vendors' own paths: docs/results/compare-cpu.md.

    python benchmarks/compare.py [--quick] [--models bert,gpt2] [--threads 1] [--out docs/results/compare-cpu]
    python benchmarks/compare.py --rows tvm,"TVM alone" [--models ...] [--out docs/results/compare-tvm]
    python benchmarks/compare.py --join bert.json gpt2.json [--out docs/results/compare-cpu]

Each row has a process of its own with empty caches; steady state is timed in turns, so that ratios hold on a machine
that others use. Runs of some models each, such as on two cores each of a larger machine, are joined afterwards.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import tables
from rich.console import Console
from stages import LOWERING, measure_apart

from fairlead._compare import Entry, Kind, Report, Row, Settings, Status, Subject, compare
from fairlead._compare import tables as terminal_tables
from fairlead.ir import DType

HERE = Path(__file__).parent

MODELS = ("resnet50", "vit-b", "bert", "gpt2", "llama", "t5", "whisper")

ENTRIES = (
    Entry("eager", Kind.eager, Subject("eager", "eager")),
    Entry("inductor", Kind.baseline, Subject("inductor", "torch")),
    Entry("inductor freezing", Kind.other, Subject("vendors:inductor_freezing", "path")),
    *(
        Entry(name, Kind.backend, Subject(name, "fairlead"))
        for name in ("eager", "inductor", "onnxrt", "openvino", "openxla", "ipex", "tvm")
    ),
    Entry("onnxrt frozen", Kind.other, Subject("vendors:frozen_onnxrt", "path")),
    Entry("onnxrt frozen and watched", Kind.other, Subject("vendors:frozen_watched_onnxrt", "path")),
    Entry("openvino.torch", Kind.other, Subject("vendors:openvino_torch", "path")),
    Entry("openvino.torch AOT", Kind.other, Subject("vendors:openvino_torch_aot", "path")),
    Entry("ORT of torch.onnx.export", Kind.other, Subject("vendors:exported_onnxrt", "path")),
    Entry("ORT alone", Kind.other, Subject("vendors:bare_onnxrt", "path")),
    Entry("OpenVINO alone", Kind.other, Subject("vendors:bare_openvino", "path")),
    Entry("XLA alone", Kind.other, Subject("vendors:bare_openxla", "path")),
    Entry("TVM alone", Kind.other, Subject("vendors:bare_tvm", "path")),
)

QUICK = ("eager", "onnxrt", "openvino", "openxla", "ipex", "tvm")
"""What ``--quick`` keeps beside PyTorch eager: what compiles in seconds."""


class Results(msgspec.Struct, frozen=True):
    """What is written beside the table: the report, and the seconds that Fairlead's own stages take."""

    report: Report
    stages: dict[str, dict[str, dict[str, float]]]


def main() -> None:
    options = _options()
    results = _joined(options.join) if options.join else _run(options)
    for item in terminal_tables(results.report, 160):
        Console(width=160).print(item)
    _write(Path(options.out), results)


def _joined(paths: Sequence[Path]) -> Results:
    """One result of several; raises where they are of other machines, releases or settings."""
    found = [msgspec.json.decode(path.read_bytes(), type=Results) for path in paths]
    first = found[0].report
    for path, each in zip(paths, found, strict=True):
        if _conditions(each.report) != _conditions(first):
            raise SystemExit(f"{path} was measured on another machine or with other settings than {paths[0]}")
    comparisons = tuple(comparison for each in found for comparison in each.report.comparisons)
    stages = {model: seconds for each in found for model, seconds in each.stages.items()}
    return Results(msgspec.structs.replace(first, comparisons=comparisons), stages)


def _conditions(report: Report) -> object:
    return msgspec.structs.replace(report.machine, load=0.0), report.settings


def _run(options: argparse.Namespace) -> Results:
    # The workers import `vendors` from here.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(HERE), os.environ.get("PYTHONPATH"))))
    console = Console(stderr=True)
    rows = _rows(options)
    settings = Settings(
        backends=tuple(each.name for each in rows if each.kind is Kind.backend),
        baselines=tuple(each.name for each in rows if each.kind is Kind.baseline),
        threads=options.threads,
        seconds=0.5 if options.quick else options.seconds,
        training=options.train,
        dynamic=options.dynamic,
        dtype=None if options.dtype is None else DType(options.dtype),
    )
    report = compare(options.models, rows, settings, lambda text: console.print(text, style="dim"))
    plain = not (options.train or options.dtype or options.dynamic)
    return Results(report, {} if not plain else _stages(options.models, settings.backends))


def _rows(options: argparse.Namespace) -> tuple[Entry, ...]:
    """The rows to measure; eager, which all are compared with, is always one."""
    kept = QUICK if options.quick else options.rows
    names = {name: None for each in ENTRIES for name in _names_of(each)}
    if unknown := sorted(set(kept or ()) - set(names)):
        raise SystemExit(f"there is no row {', '.join(unknown)}: name some of {', '.join(names)}")
    return tuple(e for e in ENTRIES if not kept or e.kind is Kind.eager or _names_of(e) & set(kept))


def _names_of(entry: Entry) -> set[str]:
    """``inductor`` is torch's and ours; as the table says it, ``torch inductor`` is torch's."""
    return {entry.name, Row(name=entry.name, kind=entry.kind, status=Status.ok).key}


def _stages(models: Sequence[str], backends: Sequence[str]) -> dict[str, dict[str, dict[str, float]]]:
    lowering = [backend for backend in LOWERING if backend in backends]
    return {model: {backend: measure_apart(model, backend) for backend in lowering} for model in models if lowering}


def _write(out: Path, results: Results) -> None:
    command = " ".join(("python benchmarks/compare.py", *sys.argv[1:]))
    page = tables.markdown(results.report, results.stages, command)
    tables.write_results(out, page, msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n")


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="without inductor and the vendors' paths, half a second a row"
    )
    parser.add_argument("--rows", type=_names, help="these rows beside eager, by name")
    parser.add_argument("--models", type=_names, default=MODELS)
    parser.add_argument("--threads", type=int, help="threads of each row; torch's choice by default")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each row is timed")
    parser.add_argument(
        "--dtype", choices=("bf16", "f16", "f64"), help="of weights and inputs; the models' own by default"
    )
    parser.add_argument("--dynamic", action="store_true", help="three sizes of what may vary, which are symbols")
    parser.add_argument("--train", action="store_true", help="training steps instead of inference")
    parser.add_argument("--join", nargs="+", type=Path, metavar="FILE", help="join the results of earlier runs instead")
    parser.add_argument("--out", default="docs/results/compare-cpu", help="where to write, without the suffix")
    return parser.parse_args()


if __name__ == "__main__":
    main()
