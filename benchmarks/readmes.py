"""How fast each backend is, written into its README from the tables of compare.py.

    python benchmarks/readmes.py [--check]

Nothing is measured here. With ``--check`` nothing is written, and a README that says otherwise is an error.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from summary import read
from tables import EAGER, FREEZING, INDUCTOR, speed_over, table

from fairlead._compare import Report

BACKENDS = ("ipex", "onnxrt", "openvino", "openxla", "tvm")
NAMES = {"complete-cpu-epyc": "EPYC", "complete-cpu": "Xeon"}
"""The tables in ``docs/results``, and what their processors are called."""

OVER = {EAGER: "eager", INDUCTOR: "Inductor", FREEZING: "freezing"}
MODELS = {
    "resnet50": "ResNet-50",
    "vit-b": "ViT",
    "bert": "BERT",
    "gpt2": "GPT-2",
    "llama": "Llama",
    "t5": "T5",
    "whisper": "Whisper",
    "nets:mobilenet": "MobileNetV2",
    "nets:convnext": "ConvNeXt",
    "nets:swin": "Swin",
    "nets:unet": "U-Net",
    "nets:clip": "CLIP",
    "nets:mamba": "Mamba",
    "nets:mixtral": "Mixtral",
    "nets:wav2vec2": "wav2vec 2.0",
    "nets:lstm": "LSTM",
    "nets:dlrm": "DLRM",
    "nets:graph_sage": "GraphSAGE",
}

READMES = Path(__file__).parents[1] / "backends"
_TABLE = re.compile(r"(?<=<!-- python benchmarks/readmes\.py -->\n).*?(?=<!-- -->)", re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a README says otherwise")
    options = parser.parse_args()
    reports = [(title, read(name)) for name, title in NAMES.items()]
    stale = []
    for backend in BACKENDS:
        path = READMES / backend / "README.md"
        before = path.read_text("utf-8")
        after, places = _TABLE.subn(lambda _, of=backend: f"\n{speeds_of(of, reports)}\n\n", before)
        if not places:
            sys.exit(f"{path} has no place for the table: two comments, as in the other READMEs")
        if after != before and not options.check:
            path.write_text(after, "utf-8")
        stale += [path] if after != before else []
    if stale and options.check:
        sys.exit(f"not what the tables say: {', '.join(map(str, stale))}; run `python benchmarks/readmes.py`")


def speeds_of(backend: str, reports: Sequence[tuple[str, Report]]) -> str:
    """Its table: a row for each model, a column for each processor and for what a backend is compared with."""
    columns = {
        f"{title}, over {name}": speeds(report, backend, over)
        for title, report in reports
        for over, name in OVER.items()
    }
    rows = [[name, *(cell(found.get(model)) for found in columns.values())] for model, name in MODELS.items()]
    means = [f"**{statistics.geometric_mean(found.values()):.2f}**" for found in columns.values()]
    return table(["", *columns], [*rows, ["geometric mean", *means]])


def speeds(report: Report, backend: str, over: str) -> dict[str, float]:
    found = {c.model: speed_over(c, backend, over) for c in report.comparisons}
    return {model: speed for model, speed in found.items() if speed is not None}


def cell(speed: float | None) -> str:
    return "-" if speed is None else f"{speed:.2f}"


if __name__ == "__main__":
    main()
