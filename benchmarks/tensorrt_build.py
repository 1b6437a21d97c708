"""TensorRT engines of the bundled models and of the op pack, built and not run: docs/results/tensorrt-build.md.

    python benchmarks/tensorrt_build.py [--models mlp,bert] [--share 1/4] [--out docs/results/tensorrt-build]

Needs ``tensorrt_rtx``, which builds on a machine without a device. Each Part that the backend would get on a device
goes through the whole of Fairlead, and to `fairlead_tensorrt.build`; torch computes its results, so that what comes
after it is built as well.
"""

from __future__ import annotations

import argparse
import collections
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import torch

import fairlead
import fairlead_tensorrt
from fairlead._compare._reference import example, with_dynamic
from fairlead._models import CATALOG
from fairlead._models._captured import mark
from fairlead._models._load import load, with_dtype
from fairlead.errors import FairleadError
from fairlead.ir import DType
from fairlead.registry import registry
from fairlead_onnx.testing import OpCase, graph_of, op_cases
from fairlead_tensorrt import COMPUTE_CAPABILITIES, Engine
from fairlead_tensorrt.testing import BuildOnly

VARIANTS: tuple[tuple[str, DType, bool], ...] = (
    ("f32", DType.f32, False),
    ("f32, dynamic", DType.f32, True),
    ("bf16", DType.bf16, False),
    ("f16", DType.f16, False),
)
"""How each model is built: what it is called, its element type, and whether the sizes that may vary are symbols."""


def main() -> None:
    options = _options()
    backend = BuildOnly()
    registry.register(backend)
    rows = [_row(backend, name, *variant) for name in options.models.split(",") for variant in VARIANTS]
    part, parts = map(int, options.share.split("/"))
    page = _page(rows, _op_pack(op_cases()[part - 1 :: parts]), options.share)
    print(page)
    options.out.with_suffix(".md").write_text(page, "utf-8")


def _row(backend: BuildOnly, name: str, variant: str, dtype: DType, dynamic: bool) -> list[str]:
    """What was built of a model in one variant; nothing where the model has no sizes that vary."""
    model = load(name)
    if dtype is not DType.f32:
        model = with_dtype(model, dtype)
    if dynamic:
        model = with_dynamic(model)
    tensors = example(model, dynamic)
    if dynamic:
        mark(model, tensors)
    backend.made.clear()
    torch._dynamo.reset()
    compiled = fairlead.compile(model.module, backend=backend.name, fallback=("eager",))
    args, kwargs = model.inputs(tensors)
    with torch.no_grad():
        compiled(*args, **kwargs)
    placement = compiled.fairlead.placement
    engines = [made.engine for made in backend.made]
    precisions: collections.Counter[str] = sum(
        (collections.Counter(e.precisions) for e in engines), collections.Counter()
    )
    return [
        name,
        variant,
        f"{placement.native_share:.0%}",
        str(len(engines)),
        str(sum(len(e.layers) for e in engines)),
        ", ".join(f"{dtype} {count}" for dtype, count in sorted(precisions.items())),
        _ranges(engines),
        f"{sum(len(e.named) for e in engines)} of {sum(made.constants for made in backend.made)}",
        f"{sum(len(e.plan) for e in engines) / 1e6:.1f}",
        f"{sum(made.seconds for made in backend.made):.1f}",
    ]


def _ranges(engines: Sequence[Engine]) -> str:
    found = [each for engine in engines for each in engine.ranges.values()]
    shown = dict.fromkeys(f"{_shape(r.smallest)} to {_shape(r.largest)}" for r in found)
    return "; ".join(list(shown)[:2]) or "-"


def _shape(sizes: Sequence[int]) -> str:
    return "x".join(map(str, sizes))


def _op_pack(cases: Sequence[OpCase]) -> dict[str, collections.Counter[str]]:
    """How many cases were built, were declined and failed, by the reason of the last two."""
    found: dict[str, collections.Counter[str]] = {
        each: collections.Counter() for each in ("built", "declined", "failed")
    }
    for case in cases:
        graph = graph_of(case)
        answer = fairlead_tensorrt.backend.supports(graph.nodes[0])
        if not answer.accepted:
            found["declined"][answer.reason] += 1
            continue
        try:
            fairlead_tensorrt.build(graph)
        except FairleadError as error:
            found["failed"][f"{case}: {str(error).splitlines()[0]}"] += 1
        else:
            found["built"][case.op] += 1
    return found


def _page(rows: Sequence[Sequence[str]], ops: Mapping[str, collections.Counter[str]], share: str) -> str:
    sdk = ", ".join(f"{name} {version}" for name, version in fairlead_tensorrt.backend.probe().versions.items())
    headings = (
        "model",
        "built as",
        "taken",
        "engines",
        "layers",
        "layers by element type",
        "sizes",
        "weights by name",
        "MB",
        "s",
    )
    counts = {name: sum(counter.values()) for name, counter in ops.items()}
    lines = [
        "# TensorRT engines that were built\n",
        f"`python benchmarks/tensorrt_build.py`: {sdk}, for compute capabilities "
        f"{' and '.join(COMPUTE_CAPABILITIES)}, on a machine without a device. This is the build-only profile: "
        "**nothing on this page was executed**. What it shows is that a graph was lowered, that TensorRT's parser "
        "read it, and that its builder made an engine of it.\n",
        "## Models\n",
        "Parts as the backend would get them on a device, each an engine. *Taken*: the share of nodes in them. "
        "*Layers*: steps after fusion, and how many of them read or write each element type, by the builder's own "
        "account. *Sizes*: the ranges of inputs whose sizes vary. *Weights by name*: how many of the baked tensors "
        "the network knows by name, as refitting needs; without a driver `tensorrt_rtx` builds no engine that can be "
        "refitted, and reads none back.\n",
        *_table(headings, rows),
        "\n## Op pack\n",
        f"Share {share} of the cases with which `fairlead-onnx` tests runtimes: {counts['built']} built "
        f"({len(ops['built'])} ops), {counts['declined']} declined, {counts['failed']} accepted but not built.\n",
        *_table(("declined because", "cases"), ((r, str(n)) for r, n in ops["declined"].most_common())),
        *(f"\n- not built: {reason}" for reason in ops["failed"]),
    ]
    return "\n".join(lines) + "\n"


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]] | Iterator[Sequence[str]]) -> Iterator[str]:
    for line in (headings, ["---"] * len(headings), *rows):
        yield "| " + " | ".join(each.replace("|", "\\|") for each in line) + " |"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", default=",".join(CATALOG))
    parser.add_argument("--share", default="1/1", help="which of how many parts of the op pack")
    parser.add_argument("--out", type=Path, default=Path("docs/results/tensorrt-build"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
