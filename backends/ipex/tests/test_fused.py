"""What Inductor compiles between packed products gives torch's numbers, and is compiled where that is worth it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
import pytest
import torch

from fairlead import interpret
from fairlead.ir import Builder, Graph, Output, Role, Token
from fairlead_ipex import IpexOptions, _executable, _products, _worth, backend
from fairlead_ipex._executable import IpexExecutable

ONE, ZERO = (1, 1), (0, 0)
ACTIVATIONS: Sequence[tuple[str, tuple[object, ...]]] = (
    ("relu", ()),
    ("sigmoid", ()),
    ("silu", ()),
    ("hardswish", ()),
    ("hardsigmoid", ()),
    ("hardtanh", (-1.0, 6.0)),
    ("leaky_relu", (0.1,)),
    ("gelu", ("none",)),
    ("gelu", ("tanh",)),
)


@pytest.fixture
def every_graph_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_executable, "is_worth_fusing", lambda graph: True)


def compiled(graph: Graph, constants: Mapping[int, torch.Tensor], **options: object) -> IpexExecutable:
    return backend.compile(graph, IpexOptions(**options), constants)


def is_fused(run: IpexExecutable) -> bool:
    return "module.py" not in run.readable()


def close(run: IpexExecutable, graph: Graph, inputs: Sequence[torch.Tensor]) -> None:
    """The results are the graph's in float64, NaN for NaN, and what was given is as it was."""
    free = [x for i, x in enumerate(inputs) if i not in run.baked]
    before = [x.clone() for x in free]
    for got, expected in zip(run(free), interpret.run(graph, [x.double() for x in inputs]), strict=True):
        largest = max(1.0, float(expected[expected.isfinite()].abs().max()))
        torch.testing.assert_close(got.double(), expected, rtol=1e-5, atol=2e-6 * largest, equal_nan=True)
    torch.testing.assert_close(free, before, rtol=0, atol=0, equal_nan=True)


def activated() -> tuple[Graph, dict[int, torch.Tensor]]:
    """A linear layer for each activation."""
    b = Builder()
    x = b.input("f32[64, 256]")
    numbers: list[torch.Tensor] = []
    for name, args in ACTIVATIONS:
        w, bias = b.input("f32[128, 256]", role=Role.parameter), b.input("f32[128]", role=Role.parameter)
        b.output(b.op(f"aten.{name}.default", b.op("aten.linear.default", x, w, bias), *args))
        numbers += [torch.randn(128, 256) / 16, torch.randn(128)]
    return b.graph(), dict(enumerate(numbers, start=1))


@pytest.mark.parametrize("products", ["mkl", "onednn"])
@pytest.mark.usefixtures("every_graph_is_worth_it")
def test_what_follows_a_product_is_torchs_with_nan_and_infinity(products: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_products, "_LEAST_WORK", dict.fromkeys(_products._LEAST_WORK, 0))
    graph, constants = activated()
    run = compiled(graph, constants, products=products)
    assert is_fused(run)
    x = torch.randn(64, 256) * 2
    x[0, 0], x[1, 0], x[2, 0] = math.nan, math.inf, -math.inf
    close(run, graph, [x, *constants.values()])


def image_net() -> tuple[Graph, list[torch.Tensor]]:
    """A residual block with its batch norm, a relu6, a transposed convolution, and one of lines."""
    b = Builder()
    shapes = "[32, 16, 3, 3]", *["[32]"] * 4, "[32, 16, 1, 1]", "[32, 16, 2, 2]", "[16, 16, 3]"
    x = b.input("f32[2, 16, 65, 63]")
    weights = [b.input(f"f32{shape}", role=Role.parameter) for shape in shapes]
    w, scale, shift, mean, variance, side, turned, line = weights
    y = b.op("aten.convolution.default", x, w, None, (2, 2), ONE, ONE, False, ZERO, 1)
    y = b.ops("aten._native_batch_norm_legit_no_training.default", y, scale, shift, mean, variance, 0.1, 1e-5)[0]
    beside = b.op("aten.convolution.default", x, side, None, (2, 2), ZERO, ONE, False, ZERO, 1)
    y = b.op("aten.relu.default", b.op("aten.add.Tensor", y, beside))
    b.output(b.op("aten.hardtanh.default", y, 0.0, 6.0))
    z = b.op("aten.convolution.default", y, turned, None, (2, 2), ZERO, ONE, True, ZERO, 1)
    flat = b.op("aten.view.default", b.op("aten.gelu.default", z, "none"), (2, 16, 66 * 64))
    b.output(b.op("aten.convolution.default", flat, line, None, (2,), (1,), (1,), False, (0,), 1))
    torch.manual_seed(1)
    numbers = [torch.randn([int(n) for n in shape[1:-1].split(",")]) for shape in shapes]
    numbers[4] = numbers[4].abs() + 0.5
    return b.graph(), numbers


@pytest.mark.usefixtures("every_graph_is_worth_it")
def test_convolutions_are_torchs_however_images_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_executable, "is_of_stretches", lambda graph: False)
    graph, numbers = image_net()
    run = compiled(graph, dict(enumerate(numbers, start=1)))
    assert is_fused(run)
    x = torch.randn(2, 16, 65, 63)
    close(run, graph, [x, *numbers])
    close(run, graph, [x.contiguous(memory_format=torch.channels_last), *numbers])
    x[0, 0, 8, 8] = math.nan
    close(run, graph, [x, *numbers])


@pytest.mark.usefixtures("every_graph_is_worth_it", "kernels")
def test_bfloat16_is_as_near_as_it_is_packed_without_a_compiler() -> None:
    b = Builder()
    x, w = b.input("bf16[64, 256]"), b.input("bf16[512, 256]", role=Role.parameter)
    b.output(b.op("aten.sin.default", b.op("aten.relu.default", b.op("aten.linear.default", x, w, None))))
    graph, constants = b.graph(), {1: (torch.randn(512, 256) / 16).bfloat16()}
    given = torch.randn(64, 256).bfloat16()
    (expected,) = interpret.run(graph, [given.double(), constants[1].double()])
    for fuse in (True, False):
        run = compiled(graph, constants, fuse=fuse)
        assert is_fused(run) is fuse
        torch.testing.assert_close(run([given])[0].double(), expected, rtol=0, atol=3e-2)


@pytest.mark.usefixtures("every_graph_is_worth_it", "kernels")
def test_a_product_of_bfloat16_that_the_program_reads_in_float32_is_rounded_first() -> None:
    b = Builder()
    x, w = b.input("bf16[64, 256]"), b.input("bf16[512, 256]", role=Role.parameter)
    first = b.op("aten.linear.default", x, w, None)
    to = (Token("dtype", "f32"), None, None, None, False, None)
    b.output(b.op("aten._to_copy.default", first, *to, to="f32[64, 512]"))
    graph = b.graph()
    given, weight = torch.randn(64, 256).bfloat16(), (torch.randn(512, 256) / 16).bfloat16()
    run = compiled(graph, {1: weight})
    assert is_fused(run)
    (found,) = run([given])
    assert found.dtype is torch.float32
    assert torch.equal(found, found.bfloat16().float())
    torch.testing.assert_close(found, torch.nn.functional.linear(given.float(), weight.float()), rtol=2**-7, atol=1e-3)


@pytest.mark.usefixtures("every_graph_is_worth_it")
def test_new_weights_are_seen_and_compiled_once_more() -> None:
    graph, constants = activated()
    run = compiled(graph, constants)
    x = torch.randn(64, 256)
    for fuses in (True, True, False):
        assert is_fused(run) is fuses
        close(run, graph, [x, *constants.values()])
        constants = {i: tensor * 1.5 for i, tensor in constants.items()}
        run.refit(constants)


def large(rows: int | str, op: str = "sin") -> tuple[Graph, dict[int, torch.Tensor]]:
    """A linear layer and ten passes over its result."""
    b = Builder()
    x, w = b.input(f"f32[{rows}, 64]"), b.input("f32[512, 64]", role=Role.parameter)
    y = b.op("aten.linear.default", x, w, None)
    for _ in range(10):
        y = b.op(f"aten.{op}.default", y)
    b.output(y)
    return b.graph(), {1: torch.randn(512, 64) / 8}


@pytest.mark.parametrize(
    ("rows", "options", "fuses"),
    [(256, {}, True), (256, {"fuse": False}, False), (32, {}, False), ("n", {}, False)],
    ids=["large", "told not to", "small", "unknown size"],
)
def test_a_graph_is_compiled_where_it_is_large_and_its_sizes_are_known(
    rows: int | str, options: dict[str, object], fuses: bool
) -> None:
    graph, constants = large(rows)
    run = compiled(graph, constants, **options)
    assert is_fused(run) is fuses
    close(run, graph, [torch.randn(256 if rows == "n" else int(rows), 64), *constants.values()])


def test_what_inductor_declines_or_the_graph_writes_is_not_compiled() -> None:
    assert _worth.can_be_fused(large(256)[0])
    assert not _worth.can_be_fused(large(256, "erfinv")[0])  # fewer digits near 1 than torch's
    b = Builder()
    x = b.input("f32[4]", role=Role.buffer)
    written = b.op("aten.sin.default", x)
    b.output(written)
    graph = b.graph()
    assert not _worth.can_be_fused(msgspec.structs.replace(graph, outputs=(Output(written, Role.mutation, 0),)))


def test_without_a_compiler_torch_runs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_worth, "_inductor_is_ready", lambda: False)
    graph, constants = large(256)
    assert backend.declines_graph(graph) == "slower than Inductor here: little to pack beside what it fuses"
    run = compiled(graph, constants)
    assert not is_fused(run)
    close(run, graph, [torch.randn(256, 64), *constants.values()])
