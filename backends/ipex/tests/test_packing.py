"""What is packed, folded and fused gives torch's numbers, at any number of rows, and NaN where torch has it."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Mapping

import pytest
import torch

from fairlead import interpret, processor
from fairlead.ir import Builder, Graph, Role, Value, to_text
from fairlead_ipex import IpexOptions, _executable, _products, backend
from fairlead_ipex._executable import IpexExecutable
from fairlead_ipex._gelu import recognize_gelu

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
PACKED = ("mkldnn", "mkl")
HAS_BF16 = bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())  # a processor with AVX2 alone has none


def weights(b: Builder, *types: str) -> list[Value]:
    return [b.input(t, role=Role.parameter) for t in types]


def compiled(graph: Graph, constants: Mapping[int, torch.Tensor], **options: object) -> IpexExecutable:
    """Without compiling anything: what is packed is a call of the module."""
    run = backend.compile(graph, IpexOptions(**{"fuse": False, **options}), constants)
    assert run.baked == frozenset(constants)
    return run


def ops(run: IpexExecutable) -> list[str]:
    """What the module calls, in order."""
    return [str(n.target) for n in run.module.graph.nodes if n.op == "call_function"]


def is_packed(run: IpexExecutable) -> bool:
    return any(name.startswith(PACKED) for name in ops(run))


def check(run: IpexExecutable, graph: Graph, inputs: list[torch.Tensor], tolerance: float) -> None:
    """The results are those of the graph in float64, to so many times the size of the largest."""
    free = [x for i, x in enumerate(inputs) if i not in run.baked]
    before = [x.clone() for x in free]
    wide = [x.double() if x.is_floating_point() else x for x in inputs]
    for got, expected in zip(run(free), interpret.run(graph, wide), strict=True):
        scale = max(1.0, expected[expected.isfinite()].abs().max().item())
        torch.testing.assert_close(got.double(), expected, rtol=0, atol=tolerance * scale, equal_nan=True)
    torch.testing.assert_close(free, before, rtol=0, atol=0, equal_nan=True)


def linear(rows: int | str, dtype: str, activation: str = "", *args: object) -> tuple[Graph, dict[int, torch.Tensor]]:
    b = Builder()
    x, w, bias = b.input(f"{dtype}[{rows}, 256]"), *weights(b, f"{dtype}[512, 256]", f"{dtype}[512]")
    y = b.op("aten.linear.default", x, w, bias)
    b.output(b.op(activation, y, *args) if activation else y)
    torch.manual_seed(0)
    made = torch.randn(512, 256, dtype=DTYPES[dtype]) / 16, torch.randn(512, dtype=DTYPES[dtype])
    return b.graph(), dict(enumerate(made, start=1))


@pytest.mark.parametrize("products", ["mkl", "onednn"])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.usefixtures("kernels")
def test_a_linear_layer_is_packed_and_right(dtype: str, products: str) -> None:
    graph, constants = linear(64, dtype)
    run = compiled(graph, constants, products=products)
    assert is_packed(run)
    x = torch.randn(64, 256, dtype=DTYPES[dtype])
    check(run, graph, [x, *constants.values()], 1e-6 if dtype == "f32" else 4e-3)


@pytest.mark.skipif(not HAS_BF16, reason="oneDNN has no bfloat16 on this processor")
@pytest.mark.parametrize(("bits", "tolerance"), [("int8", 1e-2), ("int4", 1.2e-1)])
@pytest.mark.parametrize("rows", [0, 1, 64, "n"])
def test_weights_in_fewer_bits_are_near(rows: int | str, bits: str, tolerance: float) -> None:
    graph, constants = linear(rows, "bf16")
    run = compiled(graph, constants, weights=bits)
    assert any("_weight_int" in name for name in ops(run))
    x = torch.randn(5 if rows == "n" else int(rows), 256, dtype=torch.bfloat16)
    expected = torch.nn.functional.linear(x, constants[1], constants[2])
    assert (run([x])[0] - expected).norm() <= tolerance * expected.norm()


def test_weights_of_float32_have_no_kernels_in_fewer_bits() -> None:
    assert not any("_weight_int" in name for name in ops(compiled(*linear(64, "f32"), weights="int8")))


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("rows", [0, 1, 3])
@pytest.mark.parametrize("is_of_intel", [False, True])
@pytest.mark.usefixtures("kernels")
def test_few_rows_are_packed_where_mkl_is_not_at_home(
    is_of_intel: bool, rows: int, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_products, "_has_avx2_alone", lambda: False)
    monkeypatch.setattr(processor, "is_intel", lambda: is_of_intel)
    b = Builder()
    x, w, bias = b.input(f"{dtype}[{rows}, 768]"), *weights(b, f"{dtype}[768, 768]", f"{dtype}[768]")
    b.output(b.op("aten.linear.default", x, w, bias))
    constants = {1: torch.randn(768, 768, dtype=DTYPES[dtype]) / 28, 2: torch.randn(768, dtype=DTYPES[dtype])}
    run = compiled(b.graph(), constants)
    assert is_packed(run) is (rows > 0 and not is_of_intel)
    x = torch.randn(rows, 768, dtype=DTYPES[dtype])
    torch.testing.assert_close(run([x])[0], torch.nn.functional.linear(x, constants[1], constants[2]))


def test_few_rows_and_few_weights_are_left_to_torch() -> None:
    assert not is_packed(compiled(*linear(1, "f32")))


@pytest.mark.parametrize("rows", [0, 1, 3, 40])
def test_any_number_of_rows_may_come_where_it_is_unknown(rows: int) -> None:
    graph, constants = linear("n", "f32")
    run = compiled(graph, constants)
    assert is_packed(run)
    x = torch.randn(rows, 256)
    torch.testing.assert_close(run([x])[0], torch.nn.functional.linear(x, constants[1], constants[2]))


def test_weights_that_are_turned_are_packed_as_well() -> None:
    b = Builder()
    x, w, bias = b.input("f32[2, 32, 256]"), *weights(b, "f32[256, 512]", "f32[512]")
    flat = b.op("aten.view.default", x, (64, 256))
    b.output(b.op("aten.addmm.default", bias, flat, w))
    b.output(b.op("aten.mm.default", flat, w))
    constants = {1: torch.randn(256, 512) / 16, 2: torch.randn(512)}
    run = compiled(b.graph(), constants)
    assert sum(name.startswith(PACKED) for name in ops(run)) == 2
    check(run, b.graph(), [torch.randn(2, 32, 256), *constants.values()], 1e-6)


@pytest.mark.parametrize(
    ("rows", "columns", "maker"), [(2, 768, "linear_by_convolution"), (3, 256, "_mkl_linear"), (1, 768, "aten.linear")]
)
def test_with_avx2_alone_large_weights_are_those_of_a_convolution(
    rows: int, columns: int, maker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_products, "_has_avx2_alone", lambda: True)
    b = Builder()
    x, other = b.input(f"f32[{rows}, 1, {columns}]"), b.input(f"f32[{rows}, 1, 768]")
    w, bias = weights(b, f"f32[768, {columns}]", "f32[768]")
    b.output(b.op("aten.add.Tensor", b.op("aten.linear.default", x, w, bias), other))
    b.output(b.op("aten.silu.default", b.op("aten.linear.default", other, *weights(b, "f32[768, 768]", "f32[768]"))))
    graph = b.graph()
    numbers = [numbers_of(f"f32{list(i.value.tensor.shape)}") for i in graph.inputs]
    numbers[:2] = torch.randn(columns, 1, rows).permute(2, 1, 0), torch.randn(1, 1, 768).expand(rows, 1, 768)
    run = compiled(graph, dict(enumerate(numbers[2:], start=2)))
    assert maker in ops(run)[0]
    check(run, graph, numbers, 1e-6)


ACTIVATIONS = [
    ("aten.relu.default", ()),
    ("aten.sigmoid.default", ()),
    ("aten.tanh.default", ()),
    ("aten.silu.default", ()),
    ("aten.hardswish.default", ()),
    ("aten.hardsigmoid.default", ()),
    ("aten.hardtanh.default", (-1.0, 6.0)),
    ("aten.leaky_relu.default", (0.1,)),
    ("aten.gelu.default", ("none",)),
    ("aten.gelu.default", ("tanh",)),
]


@pytest.mark.parametrize("finite", [False, True], ids=["any", "finite"])
@pytest.mark.parametrize(("op", "args"), ACTIVATIONS, ids=lambda x: str(x) if isinstance(x, str) else "")
def test_an_activation_after_a_product_is_torchs(op: str, args: tuple[object, ...], finite: bool) -> None:
    graph, constants = linear(64, "f32", op, *args)
    run = compiled(graph, constants, products="onednn", finite=finite)
    x = torch.randn(64, 256) * 2
    if not finite:
        x[0, 0], x[1, 0], x[2, 0] = math.nan, math.inf, -math.inf
    (expected,) = interpret.run(graph, [x, *constants.values()])
    torch.testing.assert_close(run([x])[0], expected, rtol=1e-5, atol=1e-5, equal_nan=True)
    if finite:
        assert len(ops(run)) == 1


def image_net(dtype: str) -> tuple[Graph, list[torch.Tensor]]:
    """A residual block: convolution, batch norm, the sum with another convolution, relu, and a grouped one."""
    b = Builder()
    x = b.input(f"{dtype}[2, 16, 65, 63]")
    shapes = "[32, 16, 3, 3]", *["[32]"] * 4, "[32, 16, 1, 1]", "[32, 16, 3, 3]", "[32]"
    types = [dtype + shape for shape in shapes]
    w, scale, shift, mean, variance, side, deep, bias = weights(b, *types)
    zero = (0, 0)
    y = b.op("aten.convolution.default", x, w, None, (2, 2), (1, 1), (1, 1), False, zero, 1)
    y = b.ops("aten._native_batch_norm_legit_no_training.default", y, scale, shift, mean, variance, 0.1, 1e-5)[0]
    beside = b.op("aten.convolution.default", x, side, None, (2, 2), zero, (1, 1), False, zero, 1)
    y = b.op("aten.relu.default", b.op("aten.add.Tensor", y, beside))
    b.output(b.op("aten.convolution.default", y, deep, bias, (1, 1), (2, 2), (2, 2), False, zero, 2))
    torch.manual_seed(1)
    numbers = [numbers_of(t) for t in types]
    numbers[4] = numbers[4].abs() + 0.5
    return b.graph(), numbers


def numbers_of(type_: str) -> torch.Tensor:
    dtype, _, shape = type_[:-1].partition("[")
    return torch.randn([int(n) for n in shape.split(",")], dtype=DTYPES[dtype])


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.usefixtures("kernels")
def test_convolutions_are_packed_with_their_batch_norm_and_sum(dtype: str) -> None:
    graph, numbers = image_net(dtype)
    run = compiled(graph, dict(enumerate(numbers, start=1)))
    assert not any("batch_norm" in name or "aten.convolution" in name for name in ops(run))
    assert any("aten.add" in name for name in ops(run)) is any("_to_copy" in name for name in ops(run))
    x = torch.randn(2, 16, 65, 63, dtype=DTYPES[dtype])
    check(run, graph, [x, *numbers], 2e-6 if dtype == "f32" else 2e-2)


GEOMETRIES = {
    "lines": ("[2, 96, 40]", "[96, 96, 3]", "[96]", (2,), (1,), (1,), False, (0,), 1),
    "volumes": ("[1, 16, 8, 8, 8]", "[24, 16, 3, 3, 3]", "[24]", (1, 1, 1), (1, 1, 1), (1, 1, 1), False, (0, 0, 0), 1),
    "transposed": ("[2, 64, 9, 8]", "[64, 32, 2, 2]", "[32]", (2, 2), (0, 0), (1, 1), True, (0, 0), 1),
    "padded": ("[2, 64, 9, 8]", "[64, 32, 3, 3]", "[32]", (2, 2), (1, 0), (1, 1), True, (1, 0), 1),
}


@pytest.mark.parametrize("kind", GEOMETRIES)
def test_other_convolutions_are_packed_with_their_batch_norm_and_activation(kind: str) -> None:
    types = [f"f32{shape}" for shape in GEOMETRIES[kind][:3]]
    b = Builder()
    x, w, bias = b.input(types[0]), *weights(b, *types[1:])
    norm = weights(b, *[types[2]] * 4)
    y = b.op("aten.convolution.default", x, w, bias, *GEOMETRIES[kind][3:])
    y = b.ops("aten._native_batch_norm_legit_no_training.default", y, *norm, 0.1, 1e-5)[0]
    b.output(b.op("aten.silu.default", y))
    numbers = [numbers_of(t) for t in (*types, *[types[2]] * 4)]
    numbers[-1] = numbers[-1].abs() + 0.5
    run = compiled(b.graph(), dict(enumerate(numbers[1:], start=1)))
    assert sum("convolution" in name and "mkldnn" in name for name in ops(run)) == 1
    assert not any("silu" in name or "batch_norm" in name for name in ops(run))
    check(run, b.graph(), numbers, 2e-6)


def test_lines_of_one_channel_come_as_a_group_norm_takes_them() -> None:
    b = Builder()
    x, w = b.input("f32[1, 1, 4000]"), *weights(b, "f32[64, 1, 10]")
    y = b.op("aten.convolution.default", x, w, None, (2,), (0,), (1,), False, (0,), 1)
    b.output(b.ops("aten.native_group_norm.default", y, None, None, 1, 64, 1996, 64, 1e-5)[0])
    numbers = [torch.randn(1, 1, 4000), torch.randn(64, 1, 10)]
    run = compiled(b.graph(), {1: numbers[1]})
    assert is_packed(run)
    check(run, b.graph(), numbers, 2e-6)


@pytest.mark.parametrize(
    ("size", "unknown", "kernel", "stride", "groups"),
    [((1, 384, 400), (1, 384, "s0"), 3, 2, 1), ((4, 768, 50), ("s0", 768, 50), 128, 1, 16)],
    ids=["length", "batch"],
)
def test_lines_of_unknown_size_are_packed_as_others_are(
    size: tuple[int, ...],
    unknown: tuple[int | str, ...],
    kernel: int,
    stride: int,
    groups: int,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """oneDNN says what it runs: nothing is packed in a call."""
    verbose, channels = torch.backends.mkldnn.verbose, size[1]
    weight = torch.randn(channels, channels // groups, kernel)
    executed = []
    for given in (unknown, size):
        b = Builder()
        x, w = b.input(f"f32[{', '.join(map(str, given))}]"), *weights(b, f"f32{list(weight.shape)}")
        geometry = (stride,), (kernel // 2,), (1,), False, (0,), groups
        b.output(b.op("aten.convolution.default", x, w, None, *geometry))
        run = compiled(b.graph(), {1: weight})
        numbers = torch.randn(size)
        check(run, b.graph(), [numbers, weight], 2e-6)
        capfd.readouterr()
        with verbose(torch.backends.mkldnn.VERBOSE_ON):  # type: ignore[no-untyped-call]
            run([numbers])
        said = capfd.readouterr().out.splitlines()
        executed.append([line.split(",exec,")[1].split(",")[1] for line in said if ",exec," in line])
    assert "convolution" in executed[1]
    assert executed[0] == executed[1]


@pytest.mark.parametrize("products", ["mkl", "onednn"])
def test_operands_of_a_linear_layer_may_lie_anyhow(products: str) -> None:
    b = Builder()
    x, other = (b.input("f32[64, 256]"), b.input("f32[64, 256]"))
    w = b.input("f32[256, 256]", role=Role.parameter)
    b.output(b.op("aten.add.Tensor", other, b.op("aten.linear.default", x, w, None)))
    numbers = [torch.randn(256, 64).t(), torch.randn(1, 256).expand(64, 256), torch.randn(256, 256) / 16]
    run = compiled(b.graph(), {2: numbers[2]}, products=products)
    check(run, b.graph(), numbers, 1e-6)


@pytest.mark.parametrize(
    "shape", [(2, 32, 256), (2, 32, 24, 24), (1, 32, 10, 9, 8)], ids=["lines", "images", "volumes"]
)
def test_operands_of_a_convolution_may_lie_anyhow(shape: tuple[int, ...]) -> None:
    b = Builder()
    x, other = (b.input(f"f32{list(shape)}") for _ in range(2))
    sizes = [32, 32, *[3] * (len(shape) - 2)]
    w = b.input(f"f32{sizes}", role=Role.parameter)
    one, zero = ((n,) * (len(shape) - 2) for n in (1, 0))
    y = b.op("aten.convolution.default", x, w, None, one, one, one, False, zero, 1)
    b.output(b.op("aten.add.Tensor", y, other))
    turned = torch.randn(shape[::-1]).permute(*reversed(range(len(shape))))
    numbers = [turned, torch.randn(shape[1], *[1] * (len(shape) - 2)).expand(shape), torch.randn(sizes) / 16]
    run = compiled(b.graph(), {2: numbers[2]})
    assert is_packed(run)
    check(run, b.graph(), numbers, 2e-6)


CONTENDING = {
    "lines": ("[2, 512, 70]", "[352, 512, 3]", (2,), (1,), (1,)),
    "images": ("[2, 512, 9, 30]", "[256, 512, 3, 3]", (2, 2), (1, 0), (1, 1)),
    "strides of 1": ("[1, 1024, 5, 14]", "[64, 1024, 3, 3]", (1, 1), (1, 1), (1, 1)),
}


@pytest.mark.parametrize("fuse", [False, True])
@pytest.mark.parametrize("kind", CONTENDING)
def test_positions_that_contend_for_the_cache_get_channels_of_zeros(
    kind: str, fuse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processor, "has_avx512", lambda: True)
    monkeypatch.setattr(_executable, "is_worth_fusing", lambda graph: fuse)
    monkeypatch.setattr(_executable, "is_of_stretches", lambda graph: False)
    shape, weight, *geometry = CONTENDING[kind]
    b = Builder()
    x, (w, bias) = b.input(f"f32{shape}"), weights(b, f"f32{weight}", f"f32[{weight[1:].split(',')[0]}]")
    rest = False, (0,) * len(geometry[0]), 1
    b.output(b.op("aten.silu.default", b.op("aten.convolution.default", x, w, bias, *geometry, *rest)))
    torch.manual_seed(0)
    numbers = [torch.randn(i.value.tensor.shape) for i in b.graph().inputs]
    numbers[1] /= math.sqrt(numbers[1][0].numel())
    run = compiled(b.graph(), dict(enumerate(numbers[1:], start=1)), fuse=fuse)
    assert ("module.py" not in run.readable()) is fuse
    assert any("aten.cat" in name for name in ops(run))
    check(run, b.graph(), numbers, 2e-6)
    numbers[0].view(-1)[:2] = torch.tensor([math.nan, math.inf])
    check(run, b.graph(), numbers, 2e-6)


@pytest.mark.parametrize(
    ("shape", "weight", "stride", "groups"),
    [
        ((1, 512, 70), (512, 512, 2), 2, 1),  # windows that do not overlap
        ((1, 500, 70), (512, 500, 3), 2, 1),
        ((1, 512, 70), (512, 512, 3), 1, 1),
        ((1, 512, 20), (512, 512, 3), 2, 1),  # few positions
        ((1, 512, 70), (64, 512, 3), 2, 1),  # each number is read seldom
        ((1, 1024, 70), (512, 512, 3), 1, 2),
    ],
)
def test_other_convolutions_get_none(
    shape: tuple[int, ...], weight: tuple[int, ...], stride: int, groups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processor, "has_avx512", lambda: True)
    b = Builder()
    x, (w,) = b.input(f"f32{list(shape)}"), weights(b, f"f32{list(weight)}")
    b.output(b.op("aten.convolution.default", x, w, None, (stride,), (1,), (1,), False, (0,), groups))
    run = compiled(b.graph(), {1: torch.randn(weight)})
    assert is_packed(run)
    assert not any("aten.cat" in name for name in ops(run))


def test_small_convolutions_are_left_to_torch() -> None:
    b = Builder()
    x, w = b.input("f32[1, 3, 8, 8]"), *weights(b, "f32[8, 3, 3, 3]")
    b.output(b.op("aten.convolution.default", x, w, None, (1, 1), (1, 1), (1, 1), False, (0, 0), 1))
    assert not is_packed(compiled(b.graph(), {1: torch.randn(8, 3, 3, 3)}))


PADS = {
    "alike": ([1, 1, 2, 2], True),
    "none": ([0, 0, 0, 0], True),
    "one sided": ([0, 1, 0, 1], False),
}


@pytest.mark.parametrize("pads", PADS)
def test_a_convolution_pads_by_itself_what_is_padded_alike(pads: str) -> None:
    graph = padded_net(PADS[pads][0])
    numbers = [torch.randn(2, 16, 30, 31), torch.randn(16, 16, 3, 3)]
    run = compiled(graph, {1: numbers[1]})
    assert is_packed(run)
    assert ("aten.constant_pad_nd.default" not in ops(run)) is PADS[pads][1]
    check(run, graph, numbers, 1e-6)


def test_zeros_are_multiplied_by_weights_that_are_infinite() -> None:
    graph = padded_net(PADS["alike"][0])
    weight = torch.randn(16, 16, 3, 3)
    weight[0, 0, 0, 0] = math.inf
    run = compiled(graph, {1: weight})
    x = torch.ones(2, 16, 30, 31)
    (expected,) = interpret.run(graph, [x, weight])
    assert expected.isnan().any()
    assert run([x])[0].isnan().equal(expected.isnan())


def padded_net(pads: list[int]) -> Graph:
    b = Builder()
    x, w = b.input("f32[2, 16, 30, 31]"), *weights(b, "f32[16, 16, 3, 3]")
    one, zero = (1, 1), (0, 0)
    padded = b.op("aten.constant_pad_nd.default", x, pads, 0)
    b.output(b.op("aten.convolution.default", padded, w, None, one, one, one, False, zero, 1))
    return b.graph()


def test_a_small_convolution_takes_its_batch_norm() -> None:
    types = "f32[1, 3, 8, 8]", "f32[8, 3, 3, 3]", *["f32[8]"] * 4
    b = Builder()
    x, (w, *norm) = b.input(types[0]), weights(b, *types[1:])
    y = b.op("aten.convolution.default", x, w, None, (1, 1), (1, 1), (1, 1), False, (0, 0), 1)
    b.output(b.ops("aten._native_batch_norm_legit_no_training.default", y, *norm, 0.1, 1e-5)[0])
    numbers = [numbers_of(t) for t in types]
    numbers[-1] = numbers[-1].abs() + 0.5
    run = compiled(b.graph(), dict(enumerate(numbers[1:], start=1)))
    assert is_packed(run)
    assert not any("batch_norm" in name for name in ops(run))
    check(run, b.graph(), numbers, 2e-6)


def test_a_nan_in_an_image_reaches_the_result() -> None:
    graph, numbers = image_net("f32")
    x = torch.randn(2, 16, 65, 63)
    x[0, 0, 8, 8] = math.nan
    check(compiled(graph, dict(enumerate(numbers, start=1))), graph, [x, *numbers], 2e-6)


def test_statistics_that_are_no_numbers_are_not_folded() -> None:
    graph, numbers = image_net("f32")
    numbers[3][2] = math.inf
    x = torch.randn(2, 16, 65, 63)
    run = compiled(graph, dict(enumerate(numbers, start=1)))
    (expected,) = interpret.run(graph, [x, *numbers])
    largest = float(expected[expected.isfinite()].abs().max())
    torch.testing.assert_close(run([x])[0], expected, equal_nan=True, rtol=1e-5, atol=2e-6 * largest)


def test_what_only_an_activation_reads_is_written_over() -> None:
    assert ops(compiled(*linear(64, "f32", "aten.relu.default")))[-1] == "aten.relu_.default"


def test_what_is_read_twice_is_not_written_over() -> None:
    b = Builder()
    x, w = b.input("f32[64, 256]"), *weights(b, "f32[256, 256]")
    y = b.op("aten.linear.default", x, w, None)
    both = b.op("aten.add.Tensor", b.op("aten.tanh.default", y), y)
    b.output(b.op("aten.relu.default", both))
    b.output(both)
    constants = {1: torch.randn(256, 256) / 16}
    check(compiled(b.graph(), constants), b.graph(), [torch.randn(64, 256), constants[1]], 1e-6)


def test_float32_is_not_rounded_to_fewer_bits() -> None:
    graph, constants = linear(64, "f32")
    constants[1].fill_(1.0)
    constants[2].zero_()
    x = torch.zeros(64, 256)
    x[:, 0], x[:, 1] = 1.0, 2.0**-20
    for products in ("mkl", "onednn"):
        assert compiled(graph, constants, products=products)([x])[0].eq(1 + 2.0**-20).all()


def test_gelu_that_is_written_out_is_one_op() -> None:
    b = Builder()
    x = b.input("f32[4, 8]")
    cube = b.op("aten.mul.Tensor", b.op("aten.pow.Tensor_Scalar", x, 3.0), 0.044715)
    inner = b.op("aten.mul.Tensor", b.op("aten.add.Tensor", x, cube), math.sqrt(2 / math.pi))
    curve = b.op("aten.add.Tensor", b.op("aten.tanh.default", inner), 1.0)
    b.output(b.op("aten.mul.Tensor", b.op("aten.mul.Tensor", x, 0.5), curve))
    text = to_text(recognize_gelu(b.graph()))
    assert [line.split(" = ")[1] for line in text.splitlines() if " = " in line] == [
        'aten.gelu.default(%0, "tanh") : f32[4, 8]'
    ]


def test_importing_the_backend_does_not_load_torch() -> None:
    code = "import fairlead_ipex, sys; print({'torch', 'numpy'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"


def of_groups(rows: int | str, dtype: str) -> tuple[Graph, list[torch.Tensor]]:
    """Rows by the matrix of their group, which lies the other way round."""
    b = Builder()
    x, w, ends = (
        b.input(f"{dtype}[{rows}, 256]"),
        b.input(f"{dtype}[4, 512, 256]", role=Role.parameter),
        b.input("i32[4]"),
    )
    matrices, made = b.op("aten.permute.default", w, (0, 2, 1)), f"{dtype}[{rows}, 512]"
    b.output(b.op("aten._grouped_mm.default", x, matrices, ends, None, None, to=made))
    torch.manual_seed(0)
    return b.graph(), [torch.randn(4, 512, 256, dtype=DTYPES[dtype]) / 16]


@pytest.mark.parametrize("ends", [(16, 32, 48, 64), (0, 40, 40, 64), (64, 64, 64, 64), (0, 0, 0, 64)])
@pytest.mark.parametrize(("rows", "dtype"), [(64, "f32"), ("n", "f32"), (64, "bf16")])
@pytest.mark.usefixtures("kernels")
def test_products_of_groups_are_packed_and_right(rows: int | str, dtype: str, ends: tuple[int, ...]) -> None:
    graph, (matrices,) = of_groups(rows, dtype)
    run = compiled(graph, {1: matrices})
    assert "fairlead_ipex.products_of_groups.default" in ops(run)
    x = torch.randn(64, 256, dtype=DTYPES[dtype])
    groups = torch.tensor(ends, dtype=torch.int32)
    (got,) = run([x, groups])
    parts = x.double().split(groups.diff(prepend=groups.new_zeros(1)).tolist())
    expected = torch.cat([rows @ w.t() for rows, w in zip(parts, matrices.double(), strict=True)])
    torch.testing.assert_close(
        got.double(), expected, rtol=0, atol=(1e-6 if dtype == "f32" else 4e-3) * expected.abs().max()
    )
    assert got.dtype is x.dtype


def test_rows_behind_the_last_group_are_zeros() -> None:
    graph, (matrices,) = of_groups(64, "f32")
    x, ends = torch.randn(64, 256), torch.tensor([8, 8, 16, 40], dtype=torch.int32)
    (got,) = compiled(graph, {1: matrices})([x, ends])
    assert (got[40:] == 0).all()
    torch.testing.assert_close(got[16:40], x[16:40] @ matrices[3].t(), rtol=0, atol=1e-5)


def test_groups_of_few_rows_are_left_to_torch() -> None:
    graph, (matrices,) = of_groups(15, "f32")
    assert "fairlead_ipex.products_of_groups.default" not in ops(compiled(graph, {1: matrices}))
