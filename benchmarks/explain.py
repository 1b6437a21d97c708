"""Does `fairlead.explain` name every graph break that torch names, and what does it take beside one compilation?

    python benchmarks/explain.py [PROGRAM...] [--out PATH]

For each architecture of transformers, three programs in turn, each from an empty Dynamo: one compilation with its first
call, `fairlead.explain`, and `torch._dynamo.explain`. Most architectures have no break as they are. So all of them come
a second time, watched, with hooks that look at what their layers give, as somebody does who searches for large numbers;
and then those whose own code breaks graphs. Times are processor seconds, the median of the turns. Exit status 1 where
torch names a break that Fairlead does not, where a graph has no placement, or where explaining takes 1.5 times a
compilation in the median.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import architectures
import torch
from architectures import TEXT, Architecture, ids, masked

import fairlead
from fairlead._compare._machine import describe
from fairlead.explanation import Explanation

TURNS = 3
"""How often an architecture is compiled and explained as it is; once where its graphs are to break."""

LIMIT = 1.5
"""Times a compilation that explaining may take."""

Built = tuple[torch.nn.Module, dict[str, Any]]


class Program(NamedTuple):
    """Something to explain. ``breaks``: its graphs are meant to break."""

    name: str
    breaks: bool
    build: Callable[[], Built]


BREAKING = {
    "longformer": Architecture("LongformerForMaskedLM", "LongformerConfig", {**TEXT, "attention_window": 4}, masked),
    "big-bird": Architecture(
        "BigBirdForMaskedLM", "BigBirdConfig", {**TEXT, "block_size": 4, "num_random_blocks": 1}, lambda: ids(48)
    ),
    "reformer": Architecture(
        "ReformerModelWithLMHead",
        "ReformerConfig",
        {
            "vocab_size": 96,
            "hidden_size": 32,
            "num_attention_heads": 2,
            "attention_head_size": 16,
            "feed_forward_size": 64,
            "attn_layers": ["local", "lsh"],
            "axial_pos_embds": False,
            "max_position_embeddings": 64,
            "local_attn_chunk_length": 4,
            "lsh_attn_chunk_length": 4,
            "num_hashes": 1,
            "num_buckets": 4,
            "is_decoder": True,
            "use_cache": False,
        },
        lambda: ids(16),
    ),
}
"""Architectures whose own code breaks graphs."""

HEAD = (
    "| | graphs | torch's | breaks | torch's | guards | nodes placed | native | compile, s | explain |\n"
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
)


class Row(NamedTuple):
    """What came of one program: breaks as file and line, as often as each was met, and seconds."""

    program: Program
    ours: Explanation
    torchs: Counter[tuple[str, int]]
    graphs: int
    compiled: float
    explained: float

    @property
    def breaks(self) -> Counter[tuple[str, int]]:
        """The breaks that Fairlead names."""
        return Counter((b.line.file, b.line.line) for f in self.ours.frames for b in f.breaks if b.line)

    @property
    def missing(self) -> Counter[tuple[str, int]]:
        """The breaks that torch alone names."""
        return self.torchs - self.breaks

    @property
    def placed(self) -> int:
        """The nodes of which Fairlead says where they ran."""
        return sum(graph.total for graph in self.ours.placement.graphs)

    @property
    def ratio(self) -> float:
        return self.explained / self.compiled

    @property
    def good(self) -> bool:
        """Whether every break is named, and every graph has a placement."""
        return not self.missing and len(self.ours.placement.graphs) == len(self.ours.graphs)

    def __str__(self) -> str:
        """A line of the table, and one for each break that is missing."""
        ours = self.ours
        counts = len(ours.graphs), self.graphs, self.breaks.total(), self.torchs.total(), sum(ours.guards.values())
        share = f"{ours.placement.native_share:.1%}"
        cells = (self.program.name, *counts, self.placed, share, f"{self.compiled:.2f}", f"{self.ratio:.2f}x")
        missing = (f"\nnot named: {file}:{line}, {times} times\n" for (file, line), times in self.missing.items())
        return "\n".join((f"| {' | '.join(map(str, cells))} |", *missing))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="PROGRAM", help="all by default")
    parser.add_argument("--backend", default="eager")
    parser.add_argument("--out", help="where to write the page, without the suffix")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print(HEAD)
    rows: list[Row] = []
    for program in programs():
        if not arguments.names or program.name in arguments.names:
            rows.append(measured(program, arguments.backend))
            print(rows[-1], flush=True)
    page = written(rows, arguments.backend)
    print(page.partition(HEAD)[0])
    if arguments.out:
        Path(arguments.out).with_suffix(".md").write_text(page, "utf-8")
    sys.exit(not all(row.good for row in rows) or _median(rows) >= LIMIT)


def programs() -> Iterator[Program]:
    """The architectures as they are, the same watched, and what breaks by itself."""
    for name in architectures.ARCHITECTURES:
        yield Program(name, False, functools.partial(_plain, name))
    for name in architectures.ARCHITECTURES:
        yield Program(f"{name}, watched", True, functools.partial(_watched, name))
    for name, architecture in BREAKING.items():
        yield Program(name, True, functools.partial(architectures.made, architecture))
    yield Program("detr, with its loss", True, _detr_with_its_loss)
    yield Program("wav2vec2, in training", True, _wav2vec2_in_training)


def measured(program: Program, backend: str) -> Row:
    """All of one program."""
    model, inputs = program.build()
    compiled, explained = [], []
    with torch.no_grad():
        for _ in range(1 if program.breaks else TURNS):
            compiled.append(seconds(lambda: fairlead.compile(model, backend=backend)(**inputs))[0])
            taken, ours = seconds(lambda: fairlead.explain(model, backend=backend)(**inputs))
            explained.append(taken)
        torch._dynamo.reset()
        torchs = torch._dynamo.explain(model)(**inputs)
    places = Counter((s.filename, s.lineno) for r in torchs.break_reasons for s in r.user_stack[-1:])
    medians = statistics.median(compiled), statistics.median(explained)
    return Row(program, ours, places, torchs.graph_count, *medians)


def _plain(name: str) -> Built:
    model, inputs = architectures.build(name)
    return model.eval(), inputs


def _watched(name: str) -> Built:
    """With a hook on every layer that says where numbers are large, which needs the numbers."""
    model, inputs = _plain(name)

    def look(module: torch.nn.Module, args: Any, output: Any) -> None:
        first = output[0] if isinstance(output, tuple) else output
        if isinstance(first, torch.Tensor) and first.abs().max() > 1e6:
            print(f"large numbers from {type(module).__name__}")

    for layers in (m for m in model.modules() if isinstance(m, torch.nn.ModuleList)):
        for layer in layers:
            layer.register_forward_hook(look)
    return model, inputs


def _detr_with_its_loss() -> Built:
    """Which matches boxes in SciPy."""
    model, inputs = _plain("detr")
    box = {"class_labels": torch.tensor([1]), "boxes": torch.tensor([[0.5, 0.5, 0.2, 0.2]])}
    return model, {**inputs, "labels": [box, box]}


def _wav2vec2_in_training() -> Built:
    """Which masks spectra with numbers of NumPy, and drops layers."""
    model, inputs = architectures.build("wav2vec2")
    config = {"apply_spec_augment": True, "mask_time_prob": 0.5, "mask_time_length": 2, "layerdrop": 0.1}
    for name, value in config.items():
        setattr(model.config, name, value)
    return model.train(), inputs


def seconds(function: Callable[[], Any]) -> tuple[float, Any]:
    torch._dynamo.reset()
    began = time.process_time()
    result = function()
    return time.process_time() - began, result


def written(rows: Sequence[Row], backend: str) -> str:
    """The page."""
    here, command = describe(), " ".join(("python benchmarks/explain.py", *sys.argv[1:]))
    versions = f"torch {torch.__version__}, transformers {here.versions['transformers']}"
    missing = sum(r.missing.total() for r in rows)
    plain = [r for r in rows if not r.program.breaks]
    broken = [r for r in rows if r.program.breaks]
    named = "All of these" if not missing else f"All but {missing} of these"
    return (
        "# Graph breaks that explain names\n\n"
        f"`{command}`. {here.processor}, {here.cores} cores at a load of {here.load:.1f}, {versions}. A load beyond "
        "the cores is other programs; times are processor seconds, and what counts is their ratio.\n\n"
        f"{len(plain)} architectures of transformers as they are, and {len(broken)} programs whose graphs are to "
        "break: the same watched, by a hook on each layer that branches on what the layer gave, and some that break by "
        f"their own code. `torch._dynamo.explain` names {sum(r.torchs.total() for r in plain)} breaks in the first and "
        f"{sum(r.torchs.total() for r in broken)} in {sum(bool(r.torchs) for r in broken)} of the others. {named} are "
        f"named by `fairlead.explain`, at their lines, which names {sum(r.breaks.total() for r in rows)} in all: also "
        "those of functions that torch made no graph of.\n\n"
        f"On the backend `{backend}`, whose compilation takes no time of its own, explaining takes "
        f"{_median(plain):.2f} times a compilation in the median of the architectures as they are, "
        f"{max(r.ratio for r in plain):.2f} at the most ({TURNS} turns each), and {_median(broken):.2f} where graphs "
        f"break, {max(r.ratio for r in broken):.2f} at the most (one turn each). "
        "What is compiled again more often than Dynamo has it by default, as functions of big-bird are, a compilation "
        "gives up and explaining does not: the graphs are more, and take their time.\n\n"
        f"{HEAD}\n" + "\n".join(map(str, rows)) + "\n"
    )


def _median(rows: Sequence[Row]) -> float:
    return statistics.median(row.ratio for row in rows)


if __name__ == "__main__":
    main()
