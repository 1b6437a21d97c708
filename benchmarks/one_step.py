"""Is a training step faster as one graph than as three?

    python benchmarks/one_step.py [--models llama bert mlp] [--backends openxla inductor] [--turns 15] [--out PATH]

One graph is `fairlead.compile_step`; three are the forward and the backward of a loss compiled by `fairlead.compile`,
and the compiled step of the optimizer, which is AdamW. Both train copies of one model in one process, a step each in
turns; a ratio is the median of the turns' ratios. Before that both have to give eager's losses for ten steps, within a
thousandth.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
import transformers
from torch.nn import functional
from transformers import BertConfig, BertForSequenceClassification, LlamaConfig, LlamaForCausalLM

ROOT = Path(__file__).parents[1]
sys.path.insert(1, str(ROOT))

import fairlead  # noqa: E402 - the folders of this repository come first
from fairlead._compare._machine import describe  # noqa: E402

CHECKED = 10
"""Steps whose losses are compared with eager's."""

Loss = Callable[..., torch.Tensor]


class Case(NamedTuple):
    """A model, its loss, and what that is called with; ``what`` says how large it is."""

    model: torch.nn.Module
    loss: Loss
    batch: tuple[torch.Tensor, ...]
    what: str


def llama() -> Case:
    config = LlamaConfig(
        vocab_size=1000, hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=64, bos_token_id=None, eos_token_id=None, use_cache=False,
    )  # fmt: skip
    ids = torch.randint(0, 1000, (4, 64))
    return Case(LlamaForCausalLM(config), language_loss, (ids,), "Llama, 2 layers of 256, 4 x 64 tokens")


def language_loss(model: torch.nn.Module, ids: torch.Tensor) -> Any:
    return model(input_ids=ids, labels=ids).loss


def bert() -> Case:
    config = BertConfig(
        vocab_size=1000, hidden_size=128, intermediate_size=256, num_hidden_layers=4, num_attention_heads=4,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, num_labels=3,
    )  # fmt: skip
    ids, labels = torch.randint(0, 1000, (8, 32)), torch.randint(0, 3, (8,))
    model = BertForSequenceClassification(config)
    return Case(model, classified, (ids, labels), "BERT with a classifier, 4 layers of 128, 8 x 32 tokens")


def classified(model: torch.nn.Module, ids: torch.Tensor, labels: torch.Tensor) -> Any:
    return functional.cross_entropy(model(input_ids=ids).logits, labels)


def mlp() -> Case:
    layers = [
        torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.GELU(), torch.nn.LayerNorm(512)) for _ in range(6)
    ]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(512, 10))
    batch = torch.randn(16, 512), torch.randint(0, 10, (16,))
    return Case(model, plainly_classified, batch, "6 linear layers of 512 with GELU and layer norm, 16 rows")


def plainly_classified(model: torch.nn.Module, x: torch.Tensor, labels: torch.Tensor) -> Any:
    return functional.cross_entropy(model(x), labels)


CASES = {"llama": llama, "bert": bert, "mlp": mlp}


class Row(NamedTuple):
    """What came of one model on one backend: seconds of each turn, of the first step, and the graphs of each."""

    case: str
    backend: str
    seconds: dict[str, list[float]]
    first: dict[str, float]
    graphs: dict[str, int]

    @property
    def ratio(self) -> float:
        """One graph beside three, in the median of the turns."""
        return statistics.median(a / b for a, b in zip(self.seconds["one"], self.seconds["three"], strict=True))

    def beside_eager(self, name: str) -> float:
        return statistics.median(a / b for a, b in zip(self.seconds[name], self.seconds["eager"], strict=True))


def main() -> None:
    options = _options()
    torch.manual_seed(0)
    rows = [measured(model, backend, options.turns) for model in options.models for backend in options.backends]
    page = _page(rows, options.turns)
    print(page)
    if options.out:
        Path(options.out).with_suffix(".md").write_text(page, "utf-8")


def measured(name: str, backend: str, turns: int) -> Row:
    torch._dynamo.reset()
    case = CASES[name]()
    steps, graphs = {}, {}
    for way, make in WAYS.items():
        model = copy.deepcopy(case.model)
        steps[way], graphs[way] = make(model, torch.optim.AdamW(model.parameters(), lr=1e-3), case.loss, backend)
    first = {way: _timed(step, case.batch, time.process_time) for way, step in steps.items()}
    losses = {way: [step(*case.batch).item() for _ in range(CHECKED)] for way, step in steps.items()}
    for way, found in losses.items():
        wrong = max(abs(a - b) / abs(b) for a, b in zip(found, losses["eager"], strict=True))
        if wrong > 1e-3:
            raise SystemExit(f"{name} on {backend} in {way}: a loss is off by {wrong:.1e}")
    seconds: dict[str, list[float]] = {way: [] for way in steps}
    for _ in range(turns):
        for way, step in steps.items():
            seconds[way].append(_timed(step, case.batch, time.perf_counter))
    row = Row(case.what, backend, seconds, first, {way: count() for way, count in graphs.items()})
    print(f"{name} {backend}: {row.ratio:.2f}", file=sys.stderr, flush=True)
    return row


def _timed(step: Callable[..., Any], batch: Sequence[torch.Tensor], clock: Callable[[], float]) -> float:
    started = clock()
    step(*batch)
    return clock() - started


def eagerly(model: torch.nn.Module, optimizer: torch.optim.Optimizer, loss: Loss, backend: str) -> Any:
    return _looped(lambda *batch: loss(model, *batch), optimizer, optimizer.step), lambda: 0


def in_three(model: torch.nn.Module, optimizer: torch.optim.Optimizer, loss: Loss, backend: str) -> Any:
    compiled = fairlead.compile(lambda *batch: loss(model, *batch), backend=backend, benchmark=False)
    update = fairlead.compile(lambda: optimizer.step(), backend=backend, benchmark=False)
    count = lambda: sum(len(each.fairlead.placement.graphs) for each in (compiled, update))  # noqa: E731
    return _looped(compiled, optimizer, update), count


def in_one(model: torch.nn.Module, optimizer: torch.optim.Optimizer, loss: Loss, backend: str) -> Any:
    step = fairlead.compile_step(model, optimizer, loss, backend=backend)
    return step, lambda: len(step.fairlead.placement.graphs)


WAYS = {"eager": eagerly, "three": in_three, "one": in_one}


def _looped(loss: Loss, optimizer: torch.optim.Optimizer, update: Callable[[], Any]) -> Callable[..., torch.Tensor]:
    def step(*batch: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        found = loss(*batch)
        found.backward()
        update()
        return found

    return step


def _page(rows: Sequence[Row], turns: int) -> str:
    machine = describe()
    lines = [
        "# A training step as one graph",
        "",
        f"`python benchmarks/one_step.py --turns {turns} --out docs/results/one-step`. {machine.processor}, "
        f"{machine.cores} cores at a load of {machine.load:.1f}, torch {torch.__version__} with threads for "
        f"{torch.get_num_threads()}, transformers {transformers.__version__}.",
        "",
        "[`fairlead.compile_step`](../training.md#a-whole-step-as-one-graph) beside three graphs, the forward and the "
        "backward of a compiled loss and the compiled step of the optimizer, in turns on copies of one model; AdamW, "
        f"float32. A ratio is the median of {turns} turns' ratios, below 1 where one graph is faster. All give eager's "
        f"losses for {CHECKED} steps, within a thousandth. A first step is in processor seconds of the process, "
        "without those of the C++ compiler that Inductor calls.",
        "",
        "| model | backend | graphs | one, ms | three, ms | **one / three** | one / eager | first step, s | three, s |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        one, three = (1000 * statistics.median(row.seconds[way]) for way in ("one", "three"))
        lines.append(
            f"| {row.case} | {row.backend} | {row.graphs['one']} and {row.graphs['three']} | {one:.1f} | {three:.1f} | "
            f"**{row.ratio:.2f}** | {row.beside_eager('one'):.2f} | {row.first['one']:.1f} | {row.first['three']:.1f} |"
        )
    return "\n".join(lines) + "\n"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks/one_step.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--models", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--backends", nargs="+", default=["openxla", "inductor"])
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--out", help="the page to write")
    return parser.parse_args()


if __name__ == "__main__":
    main()
