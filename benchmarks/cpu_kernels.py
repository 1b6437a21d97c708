"""Which kernels of OpenVINO, ONNX Runtime and torch are the quicker here: decisions 0019, 0031, 0053, 0054.

    python benchmarks/cpu_kernels.py [--out PATH]

The runtimes alone, of float32; the medians of calls that take turns.
"""

from __future__ import annotations

import argparse
import functools
import statistics
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy
import onnxruntime
import openvino
import torch
from openvino import opset13
from peak import seconds
from tables import write_results

from fairlead._compare._machine import describe
from fairlead.ir import parse_graph
from fairlead_onnx import lower
from fairlead_onnxrt._options import OnnxRuntimeOptions
from fairlead_onnxrt._session import open_session
from fairlead_onnxrt._target import TARGET
from fairlead_openvino._conflicts import avoid_conflicts

ROOT = Path(__file__).parents[1]
PRODUCTS = (768, 768), (1024, 1024), (1280, 1280), (1536, 768), (2048, 512), (3072, 768), (3088, 768), (4096, 1024)
"""Terms and columns."""

ROWS = 8, 32, 128, 512
LONGER = (1024, 1024), (2048, 768), (3072, 768), (4096, 1024), (4096, 4096)
LONGER_ROWS = 32, 128, 512
CONVOLUTIONS = (
    ((1, 512, 1599), (512, 512, 3), 2),
    ((1, 512, 1599), (256, 512, 5), 2),
    ((1, 1024, 401), (1024, 1024, 3), 1),
    ((1, 512, 58, 58), (1024, 512, 3, 3), 2),
    ((1, 256, 115, 115), (512, 256, 5, 5), 4),
    ((1, 1024, 32, 32), (512, 1024, 3, 3), 1),
)
"""Shapes of the input and of the weight, and the stride."""

LAYERS = (256, 512, 48, 4), (512, 512, 48, 4), (256, 256, 100, 1), (512, 1024, 32, 16)
"""Features, width, steps and samples of LSTMs."""

FEW = (512, 512), (768, 3072), (2048, 1000), (4096, 4096)
FEW_ROWS = 1, 2, 3, 4

BAGS = (1000, 64, 128, 2), (30000, 300, 32, 64), (30000, 768, 8, 64), (100000, 64, 2048, 4)
"""Rows of the table, its width, bags, and rows of each."""

TURNS = 20
LIBRARIES = "gemm_mlas", "brg"
"""What names of MLAS's kernels and of oneDNN's begin with."""

Run = Callable[[], object]
Pair = tuple[float, float]


class Kernels(msgspec.Struct, frozen=True):
    """Seconds of both ways.

    Of a product by MLAS and by oneDNN, as it is and with longer rows in ONNX Runtime, and by torch and by oneDNN,
    packed, by terms, columns and rows;
    of a convolution as it is and with more channels, by OpenVINO and by oneDNN within torch; of an LSTM as it is and
    packed; and of bags in two steps and in one.
    """

    products: list[tuple[tuple[int, int, int], Pair]]
    longer: list[tuple[tuple[int, int, int], Pair]]
    few: list[tuple[tuple[int, int, int], Pair]]
    convolutions: list[Pair]
    of_torch: list[Pair]
    layers: list[tuple[tuple[int, int, int, int], Pair]]
    bags: list[tuple[tuple[int, int, int, int], Pair]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "docs/results/cpu-kernels")
    options = parser.parse_args()
    result = Kernels(
        [((*shape, rows), product(*shape, rows)) for shape in PRODUCTS for rows in ROWS],
        [((*shape, rows), longer(*shape, rows)) for shape in LONGER for rows in LONGER_ROWS],
        [((*shape, rows), few(*shape, rows)) for shape in FEW for rows in FEW_ROWS],
        [convolution(*case) for case in CONVOLUTIONS],
        [convolution_of_torch(*case) for case in CONVOLUTIONS],
        [(shape, layer(*shape)) for shape in LAYERS],
        [(shape, bag(*shape)) for shape in BAGS],
    )
    write_results(options.out, page(result), msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n")


def product(terms: int, columns: int, rows: int) -> Pair:
    weight, x = numbers(columns, terms), numbers(rows, terms)

    def by(kernel: str) -> Run:
        given = opset13.parameter([rows, terms], numpy.float32)
        found = opset13.matmul(given, opset13.constant(weight), False, True)
        if kernel != LIBRARIES[0]:
            found = opset13.prelu(found, opset13.constant(numpy.ones(1, numpy.float32)))
        return run(openvino.Model([opset13.multiply(found, found)], [given]), kernel, x)

    return in_turns(*(functools.partial(by, kernel) for kernel in LIBRARIES))


def longer(terms: int, columns: int, rows: int) -> Pair:
    """By ONNX Runtime, whose products are MLAS's."""
    graph = parse_graph(
        f'graph @g inference {{\n  in %0 user "x" : f32[{rows}, {terms}]\n'
        f'  in %1 parameter "w" : f32[{columns}, {terms}]\n  in %2 parameter "b" : f32[{columns}]\n'
        f"  %3 = aten.linear.default(%0, %1, %2) : f32[{rows}, {columns}]\n  out %3 user\n}}"
    )
    constants = {1: torch.from_numpy(numbers(columns, terms)), 2: torch.from_numpy(numbers(columns))}
    x = numbers(rows, terms)

    def session(period: int) -> Run:
        target = msgspec.structs.replace(TARGET, contends=period)
        lowered = lower(graph, target=target, constants=constants)
        lowered.externalize(constants)
        made = open_session(graph, lowered.file(), OnnxRuntimeOptions(), constants)
        return lambda: made.session.run(None, {"in0": x})

    return in_turns(lambda: session(0), lambda: session(4096))


def few(terms: int, columns: int, rows: int) -> Pair:
    """By torch's own product, and by oneDNN within torch."""
    weight, bias, x = (torch.from_numpy(numbers(*shape)) for shape in ((columns, terms), (columns,), (rows, terms)))
    packed = torch.ops.mkldnn._reorder_linear_weight(weight, rows)
    return in_turns(
        lambda: lambda: torch.nn.functional.linear(x, weight, bias),
        lambda: lambda: torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], ""),
    )


def convolution(given: tuple[int, ...], weight: tuple[int, ...], stride: int) -> Pair:
    """Between two others, as in a network, so that its input is not turned for it."""
    filters, before, x = numbers(*weight), numbers(given[1], 16, *[1] * len(given[2:])), numbers(1, 16, *given[2:])

    def model(*, spread: bool) -> Run:
        parameter = opset13.parameter(list(x.shape), numpy.float32)
        axes = len(given) - 2
        one, none, steps = [1] * axes, [0] * axes, [stride] * axes
        first = opset13.relu(opset13.convolution(parameter, opset13.constant(before), one, none, none, one))
        found = opset13.relu(opset13.convolution(first, opset13.constant(filters), steps, none, none, one))
        whole = openvino.Model([opset13.reduce_sum(found, opset13.constant(1), keep_dims=False)], [parameter])
        if spread:
            avoid_conflicts(whole)
        return run(whole, LIBRARIES[1], x)

    return in_turns(lambda: model(spread=False), lambda: model(spread=True))


def convolution_of_torch(given: tuple[int, ...], weight: tuple[int, ...], stride: int) -> Pair:
    """With packed weights, of images, or of lines as images of one row; the copy that has more channels counts."""
    ops, last = torch.ops.mkldnn, torch.channels_last
    lines = len(given) == 3
    image, filters = (torch.from_numpy(numbers(*shape)) for shape in (given, weight))
    if lines:
        image, filters = image.unsqueeze(2), filters.unsqueeze(2)
    image, steps = image.contiguous(memory_format=last), [1, stride] if lines else [stride, stride]
    zeros = torch.zeros(len(image), 8, *image.shape[2:]).contiguous(memory_format=last)

    def call(*, spread: bool) -> Run:
        held = torch.nn.functional.pad(filters, (0, 0, 0, 0, 0, 8)) if spread else filters
        size = torch.cat([image, zeros], 1).shape if spread else image.shape
        packed = ops._reorder_convolution_weight(held.contiguous(), [0, 0], steps, [1, 1], 1, size)

        def run() -> object:
            x = torch.cat([image, zeros], 1) if spread else image
            return ops._convolution_pointwise(x, packed, None, [0, 0], steps, [1, 1], 1, "none", [], "")

        return run

    return in_turns(lambda: call(spread=False), lambda: call(spread=True))


def layer(features: int, width: int, steps: int, samples: int) -> Pair:
    """An LSTM as torch calls oneDNN for it, and with weights that were packed before."""
    sizes = (4 * width, features), (4 * width, width), (4 * width,), (4 * width,)
    weights = [torch.from_numpy(numbers(*size)) / width**0.5 for size in sizes]
    x, state = torch.from_numpy(numbers(steps, samples, features)), torch.zeros(1, samples, width)
    packed = torch.ops.mkldnn._reorder_mkldnn_rnn_layer_weight(
        *weights[:2], width, False, True, False, [steps, samples, features]
    )

    def call(first: list[torch.Tensor]) -> Run:
        given = x, *first, *weights[2:], state, state, False, (), 2, width, 1, True, False, False, False
        return torch.no_grad()(lambda: torch.ops.aten.mkldnn_rnn_layer(*given))

    return in_turns(lambda: call(weights[:2]), lambda: call(packed))


def bag(size: int, width: int, count: int, each: int) -> Pair:
    held = numbers(size, width)
    places = numpy.random.default_rng(0).integers(0, size, (count, each))

    def sums(*, in_one: bool) -> Run:
        given, table = opset13.parameter([count, each], numpy.int64), opset13.constant(held)
        if in_one:
            found = opset13.embedding_bag_packed_sum(table, given)
        else:
            rows = opset13.gather(table, given, opset13.constant(0))
            found = opset13.reduce_sum(rows, opset13.constant([1]), keep_dims=False)
        return run(openvino.Model([found], [given]), "", places)

    return in_turns(lambda: sums(in_one=False), lambda: sums(in_one=True))


def numbers(*shape: int) -> numpy.ndarray:
    return numpy.random.default_rng(0).standard_normal(shape, numpy.float32)


@functools.cache
def core() -> openvino.Core:
    return openvino.Core()


def run(model: openvino.Model, kernel: str, *given: numpy.ndarray) -> Run:
    """A call of a model, one of whose steps is such a kernel."""
    properties = {"INFERENCE_NUM_THREADS": torch.get_num_threads(), "ENABLE_CPU_PINNING": False}
    compiled = core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32", **properties})
    kernels = [step.get_rt_info()["primitiveType"].value for step in compiled.get_runtime_model().get_ops()]
    if not any(name.startswith(kernel) for name in kernels):
        raise SystemExit(f"OpenVINO has no kernel {kernel}… for it on this processor, but {', '.join(kernels)}")
    request = compiled.create_infer_request()
    for port, array in enumerate(given):
        request.set_input_tensor(port, openvino.Tensor(array))
    return lambda: request.infer()


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
    return (
        f"# Kernels of OpenVINO, ONNX Runtime and torch\n\n`python benchmarks/cpu_kernels.py`. {machine.processor}, "
        f"{machine.cores} cores, openvino {openvino.__version__.partition('-')[0]}, onnxruntime "
        f"{onnxruntime.__version__}, torch {torch.__version__}, {torch.get_num_threads()} threads; the runtimes alone, "
        "of float32. By [decision 0054](../decisions/0054-rows-that-contend.md) `openvino`, `onnxrt` and `ipex` keep "
        "rows that lie a multiple of 4096 bytes apart, as those of 1024, 2048 and 3072 numbers do, from contending for "
        "the cache; by [decision 0053](../decisions/0053-long-products-are-onednns.md) `openvino` looks up rows of a "
        "table and adds them in one step; and by [decision 0031](../decisions/0031-lstms-in-inference-on-a-cpu.md) "
        "`ipex` packs the weights of LSTMs, and by "
        "[decision 0019](../decisions/0019-ipex-is-torchs-own-kernels-packed.md) those of products.\n\n"
        "## OpenVINO's products with a weight: how many times as fast oneDNN is as MLAS\n\n"
        + by_rows(ROWS, result.products)
        + "\n## ONNX Runtime's products with a weight: how many times as fast with longer rows\n\n"
        + by_rows(LONGER_ROWS, result.longer)
        + "\n## Products of few rows with a weight, in torch: how many times as fast oneDNN's packed ones are\n\n"
        + by_rows(FEW_ROWS, result.few)
        + "\n## OpenVINO's convolutions: milliseconds\n\n"
        + by_convolutions(result.convolutions)
        + "\n## Convolutions by oneDNN within torch, packed: milliseconds\n\n"
        + by_convolutions(result.of_torch)
        + "\n## LSTMs by oneDNN within torch: milliseconds\n\n"
        "| features | width | steps | samples | as torch calls it | packed |\n"
        f"|{' ---: |' * 6}\n{by_shapes(result.layers)}"
        "\n## Rows of a table, looked up and added by OpenVINO: milliseconds\n\n"
        "| rows of the table | width | sums | rows of each | in two steps | in one |\n"
        f"|{' ---: |' * 6}\n{by_shapes(result.bags)}"
    )


def by_convolutions(found: list[Pair]) -> str:
    """A table: a line for each of `CONVOLUTIONS`."""
    lines = "".join(
        f"| {by_size(given)} | {by_size(weight)} | {stride} | {1e3 * a:.2f} | {1e3 * b:.2f} | {a / b:.2f} |\n"
        for (given, weight, stride), (a, b) in zip(CONVOLUTIONS, found, strict=True)
    )
    head = "| input | weight | stride | as they are | with channels more | times as fast |\n"
    return f"{head}| --- | --- | ---: | ---: | ---: | ---: |\n{lines}"


def by_shapes(found: list[tuple[tuple[int, int, int, int], Pair]]) -> str:
    """The lines of a table of both times."""
    return "".join(
        "| " + " | ".join(map(str, shape)) + f" | {1e3 * a:.3f} | {1e3 * b:.3f} |\n" for shape, (a, b) in found
    )


def by_rows(rows: tuple[int, ...], found: list[tuple[tuple[int, int, int], Pair]]) -> str:
    """A table of ratios: a line for each shape, a column for each number of rows."""
    ratios: dict[tuple[int, int], list[str]] = {}
    for (terms, columns, _), (a, b) in found:
        ratios.setdefault((terms, columns), []).append(f"{a / b:.2f}")
    columns = " | ".join("1 row" if count == 1 else f"{count} rows" for count in rows)
    head = f"| terms | columns | {columns} |\n|{' ---: |' * (2 + len(rows))}\n"
    return head + "".join(
        f"| {terms} | {columns} | {' | '.join(line)} |\n" for (terms, columns), line in ratios.items()
    )


def by_size(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


if __name__ == "__main__":
    main()
