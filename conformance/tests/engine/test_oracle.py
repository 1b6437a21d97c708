"""What the oracle lets pass, and what it does not: a fault is judged, an honest rounding is not."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch

from fairlead.interpret import torch_dtype
from fairlead.ir import Builder, DType, Graph
from fairlead_conformance._oracle import Reference, compare
from fairlead_conformance._oracle._spacing import SPACINGS

from .faulty import Faulty, failure, honest

MISMATCH = ("FAIL_MISMATCH", "values")


def one(op: str, *types: str, **attributes: Any) -> Graph:
    """A graph of one op on inputs of these types; further arguments by name."""
    b = Builder("one")
    inputs = [b.input(type_, f"x{i}") for i, type_ in enumerate(types)]
    b.output(b.op(op, *inputs, **attributes))
    return b.graph()


def chain(dtype: str) -> Graph:
    """softmax(relu(x w' + b)) v, as in a small net."""
    b = Builder("chain")
    x, w, c = b.input(f"{dtype}[16, 64]", "x"), b.input(f"{dtype}[32, 64]", "w"), b.input(f"{dtype}[32]", "c")
    v = b.input(f"{dtype}[32, 8]", "v")
    y = b.op("aten.relu.default", b.op("aten.linear.default", x, w, c))
    b.output(b.op("aten.mm.default", b.op("aten._softmax.default", y, 1, False), v))
    return b.graph()


def eager(graph: Graph, inputs: Sequence[Any]) -> list[torch.Tensor]:
    from fairlead.interpret import run

    return list(run(graph, inputs))


def on(change: Callable[[list[torch.Tensor]], list[torch.Tensor]]) -> Callable[[list[Any], Graph, Any], Any]:
    """A fault of operands, computed by torch."""
    return lambda results, graph, inputs: eager(graph, change(list(inputs)))


def after(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[list[Any], Graph, Any], Any]:
    """A fault of results."""
    return lambda results, graph, inputs: [change(r) for r in results]


def bits_kept(kept: int) -> Callable[[list[torch.Tensor]], list[torch.Tensor]]:
    """Float32 operands with only so many bits of their mantissa, as matrix units take them."""
    mask = -(1 << (23 - kept))
    return lambda inputs: [(x.contiguous().view(torch.int32) & mask).view(torch.float32) for x in inputs]


def narrowed(x: torch.Tensor) -> torch.Tensor:
    return x.float().double() if x.dtype is torch.float64 else x


def last_row_dropped(x: torch.Tensor) -> torch.Tensor:
    x = x.clone()
    x[-1] = 0
    return x


def attention(dtype: str) -> Graph:
    """softmax(q k' / sqrt(8)) v."""
    b = Builder("attention")
    q, k, v = (b.input(f"{dtype}[2, 4, 6, 8]", name) for name in "qkv")
    out, _ = b.ops("nn.scaled_dot_product_attention", q, k, v, None, 0.0, False, 8**-0.5)
    b.output(out)
    return b.graph()


MM = one("aten.mm.default", "f32[16, 128]", "f32[128, 8]")
LARGE = one("aten.mm.default", "f32[8, 4096]", "f32[4096, 8]")
EXP = one("aten.exp.default", "f32[16, 16]")
TANH = one("aten.tanh.default", "f32[16, 16]")
FAULTS: dict[str, tuple[Graph, Any]] = {
    "bfloat16 products": (MM, on(bits_kept(7))),
    "bfloat16 products, many terms": (LARGE, on(bits_kept(7))),
    "tf32 products": (MM, on(bits_kept(10))),
    "a tenth too large": (MM, after(lambda x: x * 1.1)),
    "a millionth too large": (EXP, after(lambda x: x * (1 + 2e-6))),
    "the last row dropped": (MM, after(last_row_dropped)),
    "one element": (MM, after(lambda x: torch.cat([x[:-1], x[-1:] + torch.eye(1, 8) * 1e-3]))),
    "a rational tanh": (TANH, lambda results, graph, inputs: [pade(inputs[0])]),
    "exp two hundredths off": (EXP, after(lambda x: x * 1.02)),
    "erf a thousandth off": (one("aten.erf.default", "f32[64]"), after(lambda x: x * 0.999)),
    "the wrong gelu": (
        one("aten.gelu.default", "f32[64]"),
        lambda results, graph, inputs: [torch.nn.functional.gelu(inputs[0], approximate="tanh")],
    ),
    "float64 in float32": (one("aten.sin.default", "f64[64]"), after(narrowed)),
    "an incomplete gamma function a ten-thousandth off": (
        one("aten.igammac.default", "f32[64]", "f32[64]"),
        after(lambda x: x * (1 + 1e-4)),
    ),
    "a sum in float16": (
        one("aten.sum.dim_IntList", "f16[8, 256]", dim=[1]),
        lambda results, graph, inputs: [sequential(inputs[0])],
    ),
    "an average that counts its own": (
        one("aten.var.correction", "f32[4, 8]", dim=[1], correction=1),
        after(lambda x: x * 7 / 8),
    ),
    "not a number taken for zero": (one("aten.relu.default", "f32[8]"), after(lambda x: x.nan_to_num(0.0))),
    "the sign of zero": (one("aten.neg.default", "f32[8]"), after(lambda x: x + 0.0)),
    "a quotient by the reciprocal": (
        one("aten.div.Tensor", "f32[64]", "f32[64]"),
        lambda results, graph, inputs: [inputs[0] * (1 / inputs[1])],
    ),
    "nearly zero taken for zero": (
        one("aten.mul.Tensor", "f32[8]", "f32[8]"),
        after(lambda x: torch.where(x.abs() < 2.0**-126, 0.0, x)),
    ),
    "rounded half away": (
        one("aten.round.default", "f32[8]"),
        lambda results, graph, inputs: [(inputs[0].abs() + 0.5).floor() * inputs[0].sign()],
    ),
    "a small net in bfloat16": (
        chain("f32"),
        lambda results, graph, inputs: [eager(chain("bf16"), [x.bfloat16() for x in inputs])[0].float()],
    ),
    "a small net with tf32 products": (chain("f32"), on(bits_kept(10))),
    "attention with tf32 products": (attention("f32"), on(bits_kept(10))),
}
"""A graph, and what a faulty backend makes of its right results."""


def pade(x: torch.Tensor) -> torch.Tensor:
    return (x * (27 + x * x) / (27 + 9 * x * x)).clamp(-1, 1)


def sequential(x: torch.Tensor) -> torch.Tensor:
    total = torch.zeros(len(x), dtype=x.dtype)
    for column in x.T:
        total = total + column
    return total


def special(graph: Graph) -> list[torch.Tensor] | None:
    """Inputs for graphs of eight numbers: those at which careless code shows."""
    shapes = [item.value.tensor.shape for item in graph.inputs]
    if shapes[0] != (8,):
        return None
    first = torch.tensor([0.0, -0.0, math.nan, math.inf, 2.5, -0.5, 1e-20, -3e-25])
    return [first, torch.tensor([1.0, 1.0, 1.0, 2.0, 3.0, 1e-30, 1e-20, 1e-15])][: len(shapes)]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(fault: str) -> None:
    graph, change = FAULTS[fault]
    faulty = Faulty(lambda graph, inputs: change(honest(graph, inputs), graph, inputs), extern_aten=("*",))
    assert failure(faulty, graph, special(graph)) == MISMATCH


@pytest.mark.parametrize("fault", FAULTS)
def test_the_same_graph_without_the_fault_passes(fault: str) -> None:
    graph, _ = FAULTS[fault]
    for seed in range(3):
        assert failure(Faulty(), graph, special(graph), seed) == ("", "")
        assert failure(Faulty(eager, extern_aten=("*",)), graph, special(graph), seed) == ("", "")


def test_declared_numerics_let_pass_what_they_name_and_no_more() -> None:
    def faults(*numerics: str) -> set[str]:
        names = ("tf32 products", "nearly zero taken for zero", "bfloat16 products")
        found = set()
        for name in names:
            graph, change = FAULTS[name]
            run = lambda graph, inputs, change=change: change(honest(graph, inputs), graph, inputs)  # noqa: E731
            if failure(Faulty(run, extern_aten=("*",), numerics=numerics), graph, special(graph))[0]:
                found.add(name)
        return found

    assert faults() == {"tf32 products", "nearly zero taken for zero", "bfloat16 products"}
    assert faults("tf32") == {"nearly zero taken for zero", "bfloat16 products"}
    assert faults("ftz") == {"tf32 products", "bfloat16 products"}


@pytest.mark.parametrize("op", ["aten.neg.default", "aten.ceil.default", "aten.logical_not.default"])
def test_what_is_nearly_zero_may_be_read_as_zero_where_that_is_declared(op: str) -> None:
    b = Builder("tiny")
    x = b.input("bf16[8]", "x")
    b.output(b.op(op, x))
    graph = b.graph()
    inputs = [torch.tensor([0.0, 3e-39, -6e-39, 1.5e-38, -1.0, 0.5, 3.0, -2e-39], dtype=torch.bfloat16)]
    nearly_zero = [torch.full((8,), 3e-39, dtype=torch.bfloat16)]
    flush = lambda graph, inputs: eager(graph, [torch.where(inputs[0].abs() < 2.0**-126, 0, inputs[0])])  # noqa: E731
    wrong = lambda graph, inputs: eager(graph, [-inputs[0] - 1])  # noqa: E731
    declared = {"extern_aten": ("*",), "numerics": ("ftz",)}
    for given in (inputs, nearly_zero):
        assert failure(Faulty(flush, **declared), graph, given) == ("", "")
        assert failure(Faulty(flush, extern_aten=("*",)), graph, given) == MISMATCH
    assert failure(Faulty(wrong, **declared), graph, inputs) == MISMATCH


def test_the_bits_of_a_number_may_be_those_of_zero_where_that_is_declared() -> None:
    graph = one("aten.view.dtype", "f32[3]", dtype=DType.i32)
    inputs = [torch.tensor([1.0, -0.0, 1e-40])]
    assert failure(Faulty(honest, extern_aten=("*",), numerics=("ftz",)), graph, inputs) == ("", "")


def test_a_nan_may_come_out_anywhere_along_the_lines_of_a_transform_and_nowhere_else() -> None:
    b = Builder("transform")
    x = b.input("c64[2, 7]", "x")
    b.output(b.op("aten._fft_c2r.default", x, [1], 2, 12))
    graph, given = b.graph(), torch.randn(2, 7, dtype=torch.complex64)
    given[0, 1] = math.nan

    reference = Reference(graph)
    (expected,) = reference.expected([given])

    def problem(row: int) -> str:
        got = expected.eager.clone()
        got[row] = math.nan
        return compare(got, expected, also=reference.also_right([given], [expected], [got])[0]).problem

    assert problem(0) == ""
    assert problem(1).startswith("12 of 24 elements are wrong: nan and not")


def test_halves_may_be_computed_in_float32() -> None:
    b = Builder("half")
    x = b.input("bf16[64, 64]", "x")
    b.output(b.op("aten.floor.default", b.op("aten.mul.Tensor", x, 3.0)))
    b.output(b.op("aten.mul.Tensor", b.op("aten.sub.Tensor", x, 1.0), x))
    wide = lambda graph, inputs: [  # noqa: E731
        (inputs[0].float() * 3).floor().bfloat16(),
        ((inputs[0].float() - 1) * inputs[0].float()).bfloat16(),
    ]
    assert failure(Faulty(wide, extern_aten=("*",)), b.graph()) == ("", "")


def test_another_order_of_summation_passes() -> None:
    backwards = lambda graph, inputs: [torch.flip(inputs[0], [1]).cumsum(1)[:, -1]]  # noqa: E731
    graph = one("aten.sum.dim_IntList", "f32[16, 1000]", dim=[1])
    for seed in range(5):
        assert failure(Faulty(backwards, extern_aten=("*",)), graph, seed=seed) == ("", "")


@pytest.mark.parametrize(("wrong", "verdict"), [(0.0, ("", "")), (1e-5, MISMATCH)])
def test_a_mean_over_several_dimensions_may_add_all_their_elements_in_a_row(
    wrong: float, verdict: tuple[str, str]
) -> None:
    def in_a_row(graph: Graph, inputs: Sequence[Any]) -> list[torch.Tensor]:
        (x,) = inputs
        total = np.add.accumulate(x.numpy().ravel(), dtype=np.float32)[-1]  # torch.cumsum adds up in float64
        mean = torch.full((1, 1, 1), float(total) / x.numel() + wrong)
        return [torch.var(x, correction=1).view(1, 1, 1), mean]

    b = Builder("statistics")
    for result in b.ops("aten.var_mean.correction", b.input("f32[8, 8, 8]", "x"), [0, 1, 2], 1, True):
        b.output(result)
    for seed in range(20):
        x = torch.randn(8, 8, 8, generator=torch.Generator().manual_seed(seed)) * 3
        assert failure(Faulty(in_a_row, extern_aten=("*",)), b.graph(), [x]) == verdict


@pytest.mark.parametrize("size", [1.0, 4.0, 9.0])
def test_scores_may_add_up_in_any_order_before_their_exponentials(size: float) -> None:
    """An error in a score, small beside its terms, is as large a share of the result as the terms are large."""

    def term_by_term(graph: Graph, inputs: Sequence[Any]) -> list[torch.Tensor]:
        q, k, v = inputs
        scores = torch.zeros(2, 4, 6, 6)
        for i in range(8):
            scores = scores + q[..., i, None] * 8**-0.5 * k[..., None, :, i]
        return [torch.softmax(scores, -1) @ v]

    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        inputs = [(torch.rand(2, 4, 6, 8, generator=generator) * 2 - 1) * size for _ in range(3)]
        assert failure(Faulty(term_by_term, extern_aten=("*",)), attention("f32"), inputs) == ("", "")


@pytest.mark.parametrize(
    ("shift", "far", "verdict"), [(0.0, 1, ("", "")), (1e-5, 1, MISMATCH), (0.0, 10, ("", "")), (1e-4, 10, MISMATCH)]
)
def test_points_may_become_pixels_in_other_steps(shift: float, far: int, verdict: tuple[str, str]) -> None:
    def by_pixels(graph: Graph, inputs: Sequence[Any]) -> list[torch.Tensor]:
        image, points = inputs
        size = torch.tensor([20.0, 5.0])
        pixels = (points + shift) * (size / 2) + (size / 2 - 0.5)  # not ((p + 1) size - 1) / 2
        exactly = (2 * pixels.double() + 1) / size - 1
        return [r.float() for r in eager(wide, [image.double(), exactly])]

    narrow, wide = (
        one("aten.grid_sampler_2d.default", f"{t}[2, 3, 5, 20]", f"{t}[2, 13, 10, 2]", **BICUBIC)
        for t in ("f32", "f64")
    )
    for seed in range(10):
        generator = torch.Generator().manual_seed(seed)
        image = torch.randn(2, 3, 5, 20, generator=generator) * 4
        points = torch.randn(2, 13, 10, 2, generator=generator) * far
        assert failure(Faulty(by_pixels, extern_aten=("*",)), narrow, [image, points]) == verdict


@pytest.mark.parametrize(("honest", "least"), [(True, 0), (False, 20)])
def test_a_norm_of_few_elements_may_add_them_in_any_order(honest: bool, least: int) -> None:
    def turned(graph: Graph, inputs: Sequence[Any]) -> list[torch.Tensor]:
        x = inputs[0].flip(1)
        apart = x - x.sum(1, True) * (1 / 3)
        variance = (apart**2).sum(1, True) if honest else (x**2).sum(1, True) - x.sum(1, True) ** 2 / 3
        return [(apart * torch.rsqrt(variance * (1 / 3) + 1e-5)).flip(1)]

    b = Builder("norm")
    b.output(b.ops("aten.native_layer_norm.default", b.input("f64[1, 3]", "x"), [3], None, None, 1e-5)[0])
    graph = b.graph()
    found = []
    for seed in range(40):
        x = torch.randn(1, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) * 0.3 - 4.7
        found.append(failure(Faulty(turned, extern_aten=("*",)), graph, [x]))
    assert set(found) <= {("", ""), MISMATCH}
    assert least <= found.count(MISMATCH) <= 2 * least


def test_the_absolute_value_of_a_real_number_is_exact() -> None:
    def above(graph: Graph, inputs: Sequence[Any]) -> list[torch.Tensor]:
        return [torch.nextafter(inputs[0].abs(), torch.tensor(math.inf))]

    assert failure(Faulty(above, extern_aten=("*",)), one("aten.abs.default", "f32[16]")) == MISMATCH


BICUBIC = {"interpolation_mode": 2, "padding_mode": 2, "align_corners": False}


def test_a_pool_may_average_rows_before_columns() -> None:
    turned = lambda graph, inputs: [inputs[0].unfold(2, 3, 3).mean(-1).unfold(3, 3, 3).mean(-1)]  # noqa: E731
    graph = one("aten._adaptive_avg_pool2d.default", "f64[8, 8, 30, 30]", output_size=[10, 10])
    for seed in range(5):
        assert failure(Faulty(turned, extern_aten=("*",)), graph, seed=seed) == ("", "")


def test_integers_that_rounding_decides_are_left_open_and_others_are_not() -> None:
    b = Builder("floor")
    x = b.input("f32[64]", "x")
    scaled = b.op("aten.exp.default", b.op("aten.log.default", x))
    b.output(b.op("aten._to_copy.default", scaled, dtype=DType.i64))
    graph = b.graph()
    inputs = [torch.arange(1, 65).float() + torch.tensor([0.0, 0.5]).repeat(32)]
    other = lambda graph, inputs: [(inputs[0] * (1 - 2e-7)).long()]  # noqa: E731
    off = lambda graph, inputs: [inputs[0].long() + 1]  # noqa: E731
    assert failure(Faulty(other, extern_aten=("*",)), graph, inputs) == ("", "")
    assert failure(Faulty(off, extern_aten=("*",)), graph, inputs) == MISMATCH


def test_what_becomes_of_an_infinity_is_not_left_open() -> None:
    b = Builder("isfinite")
    b.output(b.op("aten.ne.Tensor", b.op("aten.add.Tensor", b.input("f32[2]", "x"), 1.5, alpha=3), math.inf))
    inputs = [torch.tensor([math.inf, 1.0])]
    assert failure(Faulty(eager, extern_aten=("*",)), b.graph(), inputs) == ("", "")
    always = lambda graph, inputs: [torch.tensor([True, True])]  # noqa: E731
    assert failure(Faulty(always, extern_aten=("*",)), b.graph(), inputs) == MISMATCH


@pytest.mark.parametrize("given", [math.inf, -math.inf])
def test_no_number_is_near_an_infinity(given: float) -> None:
    b = Builder("sum")
    b.output(b.op("aten.add.Tensor", b.input("f32[2]", "x"), 1.5, alpha=3))
    inputs = [torch.tensor([given, 1.0])]
    assert failure(Faulty(eager, extern_aten=("*",)), b.graph(), inputs) == ("", "")
    for other in (0.0, math.copysign(3e38, given), -given, math.nan):
        wrong = lambda graph, inputs, other=other: [torch.tensor([other, 5.5])]  # noqa: E731
        assert failure(Faulty(wrong, extern_aten=("*",)), b.graph(), inputs) == MISMATCH


def test_a_complex_number_is_infinite_with_either_part() -> None:
    b = Builder("sum")
    b.output(b.op("aten.add.Tensor", b.input("c64[1]", "x"), 1.5, alpha=3))
    (expected,) = Reference(b.graph()).expected([torch.tensor([complex(math.inf, 0.7)])])
    problems = {z: compare(torch.tensor([z]), expected).problem for z in (complex(math.inf, 0.71), complex(9, 0.7))}
    assert [bool(problem) for problem in problems.values()] == [False, True]


@pytest.mark.parametrize("dtype", SPACINGS, ids=str)
def test_a_unit_in_the_last_place_is_what_torch_says_that_it_is(dtype: DType) -> None:
    torch_says = torch.finfo(torch_dtype(dtype))
    assert SPACINGS[dtype] == (torch_says.eps, torch_says.smallest_normal * torch_says.eps)
