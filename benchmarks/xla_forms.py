"""Which forms of a graph XLA makes the faster code of on a CPU: what decision 0055 rests on.

    python benchmarks/xla_forms.py [--out PATH]

Of float32; the medians of calls that take turns.
"""

from __future__ import annotations

import argparse
import functools
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import msgspec
import numpy
import torch
from jax import lax
from peak import seconds
from tables import write_results

import fairlead
from fairlead._compare._machine import describe
from fairlead._models._load import load
from fairlead.ir import Builder, Role
from fairlead_openxla import OpenXLAOptions, _groups, _lower, backend
from fairlead_openxla._windows import Windows

ROOT = Path(__file__).parents[1]
NETS = "resnet50", "nets:mobilenet", "nets:convnext", "nets:unet", "nets:wav2vec2"
CONVOLUTIONS = (
    ((2, 3, 96, 96), (32, 3, 3, 3), 1),
    ((2, 3, 96, 96), (64, 3, 7, 7), 2),
    ((2, 32, 96, 96), (32, 32, 3, 3), 1),
    ((2, 128, 24, 24), (128, 128, 3, 3), 1),
    ((2, 256, 12, 12), (256, 256, 3, 3), 1),
    ((2, 512, 3, 3), (512, 512, 3, 3), 1),
    ((2, 512, 2, 2), (512, 512, 3, 3), 1),
    ((1, 1, 224, 224), (16, 1, 3, 3), 1),
)
"""Shapes of the image and of the weight, and the stride; the rim is as wide as keeps the size at a stride of one."""

GROUPS, INNER, COLUMNS = 8, 512, 2048
ROWS = 16, 96, 192, 384, 1024
"""Of all groups together, whose sizes are drawn."""

HEIGHTS = 16, 32, 48
TURNS = 25

Run = Callable[[], object]


class Forms(msgspec.Struct, frozen=True):
    """Seconds.

    Of a net whose images lie as declared, and with channels last; of a convolution as Eigen's, as the product of a
    matrix of its windows, and as products and sums of each place of the kernel; and of products of groups in eager
    mode, and in tiles of `HEIGHTS` rows and of as many as `openxla` takes.
    """

    nets: dict[str, list[float]]
    convolutions: list[list[float]]
    groups: dict[int, list[float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "docs/results/xla-forms")
    options = parser.parse_args()
    with torch.no_grad():
        result = Forms(
            {name: net(name) for name in NETS},
            [convolution(*case) for case in CONVOLUTIONS],
            {rows: groups(rows) for rows in ROWS},
        )
    write_results(options.out, page(result), msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n")


def net(name: str) -> list[float]:
    def compiled() -> Run:
        model = load(name, training=False)
        call = fairlead.compile(model.module, backend="openxla", benchmark=False)
        run = functools.partial(call, *model.args, **model.kwargs)
        run()
        return run

    with mock.patch.object(_lower, "gives_image", return_value=False):
        declared = compiled()
    return medians(declared, compiled())


def convolution(given: tuple[int, ...], weight: tuple[int, ...], stride: int) -> list[float]:
    x, kernel = (jnp.asarray(numpy.moveaxis(numbers(*shape), 1, -1)) for shape in (given, weight))
    kernel = jnp.moveaxis(kernel, 0, -1)
    pads = tuple((size // 2, size // 2) for size in weight[2:])
    windows = Windows(weight[2:], (stride, stride), pads, (1, 1))

    def of_eigen(x: Any, kernel: Any) -> Any:
        return lax.conv_general_dilated(x, kernel, windows.stride, pads, dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def of_windows(x: Any, kernel: Any) -> Any:
        seen = jnp.concatenate(windows.seen(x), -1)
        return jnp.reshape(seen, (-1, seen.shape[-1])) @ jnp.reshape(kernel, (-1, kernel.shape[-1]))

    def of_places(x: Any, kernel: Any) -> Any:
        matrices = jnp.reshape(kernel, (-1, *kernel.shape[-2:]))
        return sum(seen @ matrix for seen, matrix in zip(windows.seen(x), matrices, strict=True))

    def bound(form: Callable[..., Any]) -> Run:
        made = jax.jit(form).lower(x, kernel).compile(compiler_options=_lower._EXACT | _lower._EIGEN)
        return lambda: made(x, kernel).block_until_ready()

    return medians(*map(bound, (of_eigen, of_windows, of_places)))


def groups(rows: int) -> list[float]:
    """As the experts of a mixture lie in transformers: the matrices as their transposes."""
    b = Builder()
    given, ends_given = b.input(f"f32[{rows}, {INNER}]"), b.input(f"i32[{GROUPS}]")
    stack = b.op("aten.permute.default", b.input(f"f32[{GROUPS}, {COLUMNS}, {INNER}]", role=Role.parameter), (0, 2, 1))
    b.output(b.op("aten._grouped_mm.default", given, stack, ends_given, None, None, to=f"f32[{rows}, {COLUMNS}]"))
    graph = b.graph()
    x, weight = torch.from_numpy(numbers(rows, INNER)), torch.from_numpy(numbers(GROUPS, COLUMNS, INNER))
    counts = numpy.random.default_rng(0).multinomial(rows, [1 / GROUPS] * GROUPS)
    ends = torch.from_numpy(counts.cumsum().astype(numpy.int32))

    def in_tiles(height: int | None) -> Run:
        chosen = _groups._height
        with mock.patch.object(_groups, "_height", side_effect=lambda *given: height or chosen(*given)):
            run = backend.compile(graph, OpenXLAOptions(), {2: weight})
            run([x, ends])
        return lambda: run([x, ends])

    def eager() -> torch.Tensor:
        parts = zip(x.split(counts.tolist()), weight, strict=True)
        return torch.cat([torch.nn.functional.linear(part, matrix) for part, matrix in parts])

    return medians(eager, *map(in_tiles, (*HEIGHTS, None)))


def medians(*runs: Run) -> list[float]:
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(TURNS):
        for run, found in zip(runs, times, strict=True):
            run()  # brings back to the caches what the others have driven out
            found += [seconds(run), seconds(run)]
    return [statistics.median(found) for found in times]


def numbers(*shape: int) -> numpy.ndarray[Any, numpy.dtype[numpy.float32]]:
    return numpy.random.default_rng(0).standard_normal(shape, numpy.float32)


def page(result: Forms) -> str:
    machine = describe()
    return (
        f"# Forms of graphs for XLA on a CPU\n\n`python benchmarks/xla_forms.py`. {machine.processor}, {machine.cores} "
        f"cores, jax {jax.__version__}, torch {torch.__version__}, {torch.get_num_threads()} threads; float32, "
        "milliseconds. [Decision 0055](../decisions/0055-channels-last-in-xla.md) rests on it.\n\n"
        "## Nets through `openxla`: images as they are declared, and with their channels last between convolutions\n\n"
        + table("net", ("as declared", "channels last"), result.nets)
        + "\n## Convolutions: Eigen's, as the product of a matrix of all windows, and as a product for each place\n\n"
        + table(
            "image, weight, stride",
            ("Eigen's", "of windows", "of places"),
            {
                f"{by_size(given)}, {by_size(weight)}, {stride}": found
                for (given, weight, stride), found in zip(CONVOLUTIONS, result.convolutions, strict=True)
            },
        )
        + f"\n## Products of {GROUPS} groups of rows with matrices of {INNER} by {COLUMNS}, in tiles\n\n"
        + table("rows", ("eager", *(f"of {height} rows" for height in HEIGHTS), "as `openxla` chooses"), result.groups)
    )


def table(name: str, columns: tuple[str, ...], rows: dict[Any, list[float]]) -> str:
    head = f"| {name} | {' | '.join(columns)} |\n| --- |{' ---: |' * len(columns)}\n"
    return head + "".join(f"| {k} | {' | '.join(f'{1e3 * v:.2f}' for v in line)} |\n" for k, line in rows.items())


def by_size(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


if __name__ == "__main__":
    main()
