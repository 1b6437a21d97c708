"""Which of OpenVINO's kernels is the quicker on this processor: what decision 0053 rests on.

    python benchmarks/openvino_kernels.py [--out PATH]

OpenVINO alone, of float32; the medians of calls that take turns.
"""

from __future__ import annotations

import argparse
import functools
import statistics
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy
import openvino
import torch
from openvino import opset13
from peak import seconds
from tables import write_results

from fairlead._compare._machine import describe

ROOT = Path(__file__).parents[1]
PRODUCTS = (768, 768), (1024, 1024), (2048, 512), (3072, 768), (4096, 1024), (4096, 4096), (1024, 4096), (1280, 10)
"""Terms and columns."""

ROWS = 2, 8, 16, 32, 64, 128, 512
BAGS = (1000, 64, 128, 2), (30000, 300, 32, 64), (30000, 768, 8, 64), (100000, 64, 2048, 4)
"""Rows of the table, its width, bags, and rows of each."""

TURNS = 20
LIBRARIES = "gemm_mlas", "brg"
"""What names of MLAS's kernels and of oneDNN's begin with."""

Run = Callable[[], object]


class Kernels(msgspec.Struct, frozen=True):
    """Seconds of a product by MLAS and by oneDNN, by terms, columns and rows, and of bags in two steps and in one."""

    products: list[tuple[tuple[int, int, int], tuple[float, float]]]
    bags: list[tuple[tuple[int, int, int, int], tuple[float, float]]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "docs/results/openvino-kernels")
    options = parser.parse_args()
    core, generator = openvino.Core(), numpy.random.default_rng(0)

    def run(model: openvino.Model, kernel: str, *given: numpy.ndarray) -> Run:
        properties = {"INFERENCE_NUM_THREADS": torch.get_num_threads(), "ENABLE_CPU_PINNING": False}
        compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32", **properties})
        kernels = [step.get_rt_info()["primitiveType"].value for step in compiled.get_runtime_model().get_ops()]
        if not any(name.startswith(kernel) for name in kernels):
            raise SystemExit(f"OpenVINO has no kernel {kernel}… for it on this processor, but {', '.join(kernels)}")
        request = compiled.create_infer_request()
        for port, array in enumerate(given):
            request.set_input_tensor(port, openvino.Tensor(array))
        return lambda: request.infer()

    def product(terms: int, columns: int, rows: int) -> tuple[float, float]:
        weight = generator.standard_normal((columns, terms), numpy.float32)
        x = generator.standard_normal((rows, terms), numpy.float32)

        def by(kernel: str) -> Run:
            given = opset13.parameter([rows, terms], numpy.float32)
            found = opset13.matmul(given, opset13.constant(weight), False, True)
            if kernel != LIBRARIES[0]:
                found = opset13.prelu(found, opset13.constant(numpy.ones(1, numpy.float32)))
            return run(openvino.Model([opset13.multiply(found, found)], [given]), kernel, x)

        return in_turns(*(functools.partial(by, kernel) for kernel in LIBRARIES))

    def bag(size: int, width: int, count: int, each: int) -> tuple[float, float]:
        numbers = generator.standard_normal((size, width), numpy.float32)
        places = generator.integers(0, size, (count, each))

        def sums(*, in_one: bool) -> Run:
            given, table = opset13.parameter([count, each], numpy.int64), opset13.constant(numbers)
            if in_one:
                found = opset13.embedding_bag_packed_sum(table, given)
            else:
                rows = opset13.gather(table, given, opset13.constant(0))
                found = opset13.reduce_sum(rows, opset13.constant([1]), keep_dims=False)
            return run(openvino.Model([found], [given]), "", places)

        return in_turns(lambda: sums(in_one=False), lambda: sums(in_one=True))

    result = Kernels(
        [((*shape, rows), product(*shape, rows)) for shape in PRODUCTS for rows in ROWS],
        [(shape, bag(*shape)) for shape in BAGS],
    )
    write_results(options.out, page(result), msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n")


def in_turns(first: Callable[[], Run], second: Callable[[], Run]) -> tuple[float, float]:
    """Seconds of a call of each, of which two are made: where their memory lies is by chance."""
    runs = [make() for make in (first, second, first, second)]
    times: list[list[float]] = [[], []]
    for _ in range(TURNS):
        for k, run in enumerate(runs):
            run()  # brings back to the caches what the others have driven out
            times[k % 2] += [seconds(run), seconds(run)]
    return statistics.median(times[0]), statistics.median(times[1])


def page(result: Kernels) -> str:
    machine = describe()
    ratios = {shape: a / b for shape, (a, b) in result.products}
    products = "".join(
        f"| {terms} | {columns} | " + " | ".join(f"{ratios[terms, columns, rows]:.2f}" for rows in ROWS) + " |\n"
        for terms, columns in PRODUCTS
    )
    bags = "".join(
        "| " + " | ".join(map(str, shape)) + f" | {1e3 * a:.3f} | {1e3 * b:.3f} |\n" for shape, (a, b) in result.bags
    )
    return (
        f"# Kernels of OpenVINO\n\n`python benchmarks/openvino_kernels.py`. {machine.processor}, {machine.cores} cores,"
        f" openvino {openvino.__version__.partition('-')[0]}, {torch.get_num_threads()} threads; OpenVINO alone, of "
        "float32. By [decision 0053](../decisions/0053-long-products-are-onednns.md) `openvino` has oneDNN compute "
        "products of many terms and rows, and rows of a table looked up and added in one step.\n\n"
        "## Products with a weight: how many times as fast oneDNN is as MLAS\n\n"
        f"| terms | columns | {' | '.join(f'{rows} rows' for rows in ROWS)} |\n| ---: | ---: |"
        + " ---: |"
        * len(ROWS)
        + f"\n{products}\n## Rows of a table, looked up and added: milliseconds\n\n"
        "| rows of the table | width | sums | rows of each | in two steps | in one |\n"
        f"| ---: | ---: | ---: | ---: | ---: | ---: |\n{bags}"
    )


if __name__ == "__main__":
    main()
