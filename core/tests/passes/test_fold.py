"""What is known before the graph runs is worked out, to the bit."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from fairlead.interpret import run, torch_dtype
from fairlead.ir import Argument, Builder, DType, Graph, Kind, Role, Token, Value, verify
from fairlead.passes import fold_constants, fold_tensors

from ._build import nodes_of, text

TAIL = (Token("layout", "strided"), Token("device", "cpu"), False)
F32, REST = "#dtype<f32>", "#layout<strided>, #device<cpu>"
FLOATS = (DType.f16, DType.bf16, DType.f32, DType.f64)


def full(b: Builder, dtype: str, number: Argument, *shape: int) -> Value:
    sizes = ", ".join(map(str, shape))
    return b.op("aten.full.default", list(shape), number, DType(dtype), *TAIL, to=f"{dtype}[{sizes}]")


def folded(graph: Graph) -> str:
    return nodes_of(fold_constants(graph))


def test_views_and_arithmetic_of_one_number_are_one_number() -> None:
    b = Builder()
    x = b.input("f32[2, 3]")
    half = b.op("aten.div.Tensor", full(b, "f32", 1, 3), 2, to="f32[3]")
    wide = b.op("aten.expand.default", half, [2, 3], False, to="f32[2, 3] strides[0, 1]")
    b.output(b.op("aten.mul.Tensor", x, wide, to=x.type))
    assert folded(b.graph()) == text(
        f"""
        %6 = aten.full.default([2, 3], 0.5, {F32}, {REST}, false) : f32[2, 3] strides[0, 1]
        %4 = aten.mul.Tensor(%0, %6) : f32[2, 3]
        out %4 user
        """
    )


def test_a_known_condition_chooses() -> None:
    b = Builder()
    x, y = b.input("f32[2]"), b.input("f32[2]")
    never = b.op("aten.gt.Tensor", full(b, "i64", 3, 2), 4, to="bool[2]")
    chosen = b.op("aten.where.self", never, x, y, to=x.type)
    b.output(b.op("aten.neg.default", chosen, to=x.type))
    assert folded(b.graph()) == "%5 = aten.neg.default(%1) : f32[2]\nout %5 user"


@pytest.mark.parametrize(
    ("op", "args", "gone"),
    [
        ("aten.mul.Tensor", (1.0,), True),
        ("aten.div.Tensor", (1,), True),
        ("aten.sub.Tensor", (0.0, 1), True),
        ("aten.sub.Tensor", (0, 2), False),
        ("aten.add.Tensor", (-0.0, 1), True),
        ("aten.add.Tensor", (0.0, 1), False),  # -0.0 + 0.0 is 0.0
        ("aten.sub.Tensor", (-0.0, 1), False),
        ("aten.mul.Tensor", (0.0,), False),  # infinity times 0.0 is nan
    ],
)
def test_arithmetic_that_changes_no_bit_is_gone(op: str, args: tuple[Argument, ...], gone: bool) -> None:
    b = Builder()
    x = b.input("f32[2]")
    b.output(b.op("aten.neg.default", b.op(op, x, *args, to=x.type), to=x.type))
    assert (op not in folded(b.graph())) is gone


def test_zero_added_to_integers_is_gone_but_not_where_it_widens_them() -> None:
    b = Builder()
    x = b.input("i32[2]")
    same = b.op("aten.add.Tensor", x, 0, 1, to=x.type)
    wider = b.op("aten.add.Tensor", same, full(b, "i64", 0, 2), 1, to="i64[2]")
    b.output(b.op("aten.neg.default", wider, to="i64[2]"))
    assert folded(b.graph()).count("aten.add.Tensor") == 1


def test_an_output_that_would_become_an_input_or_another_output_stays() -> None:
    b = Builder()
    x = b.input("f32[2]")
    b.output(b.op("aten.mul.Tensor", x, 1, to=x.type))
    b.output(b.op("aten.expand.default", full(b, "f32", 1.0, 1), [2], False, to="f32[2] strides[0]"))
    graph = b.graph()
    assert fold_constants(graph) == graph


SAMPLES: tuple[float, ...] = (-0.0, 1.0, 0.1, 65504.0, math.inf, math.nan)
OPS: dict[str, int] = {
    "aten.add.Tensor": 2,
    "aten.sub.Tensor": 2,
    "aten.mul.Tensor": 2,
    "aten.div.Tensor": 2,
    "aten.lt.Tensor": 2,
    "aten.eq.Tensor": 2,
    "aten.logical_and.default": 2,
    "aten.bitwise_xor.Tensor": 2,
    "aten.neg.default": 1,
    "aten.abs.default": 1,
    "aten.logical_not.default": 1,
}
UNDEFINED = {("aten.bitwise_xor.Tensor", d) for d in FLOATS} | {
    (f"aten.{op}", DType.bool) for op in ("neg.default", "abs.default", "sub.Tensor")
}


@pytest.mark.parametrize("dtype", [*FLOATS, DType.i64, DType.u8, DType.bool])
def test_numbers_are_those_that_torch_computes(dtype: DType) -> None:
    """Each op on each pair of numbers, as two tensors and as a tensor and a number."""
    samples = SAMPLES if dtype.is_floating else (False, True) if dtype is DType.bool else (1, 3, 100)
    b = Builder()
    for op, count in ((op, count) for op, count in OPS.items() if (op, dtype) not in UNDEFINED):
        as_float = op == "aten.div.Tensor" and not dtype.is_floating
        result = "bool" if op.startswith(("aten.l", "aten.eq")) else "f32" if as_float else dtype
        for left, right in itertools.product(samples, samples if count == 2 else (0,)):
            x, y = full(b, dtype, left, 2), full(b, dtype, right, 2)
            tail = (1,) if op in ("aten.add.Tensor", "aten.sub.Tensor") else ()
            b.output(b.op(op, x, *(y, *tail)[: count + len(tail) - 1], to=f"{result}[2]"))
            if op.endswith(".Tensor"):
                b.output(b.op(op, x, right, *tail, to=f"{result}[2]"))
    graph = b.graph()
    after = verify(fold_constants(graph))
    left_over = {n.op for n in after.nodes} - {"aten.full.default"}
    assert left_over <= ({"aten.div.Tensor", "aten.add.Tensor", "aten.mul.Tensor"} if dtype is DType.bool else set(OPS))
    assert len(after.nodes) < len(graph.nodes) // (2 if dtype in (DType.f32, DType.f64) else 1)
    for before, now in zip(run(graph, []), run(after, []), strict=True):
        assert now.dtype is before.dtype
        torch.testing.assert_close(now, before, rtol=0, atol=0, equal_nan=True)
        assert torch.equal(now.double().signbit(), before.double().signbit()) or bool(before.isnan().any())


@pytest.mark.parametrize("source", [DType.f64, DType.i64, DType.bool])
@pytest.mark.parametrize("target", [*FLOATS, DType.i64, DType.i8, DType.bool])
def test_conversions_are_those_that_torch_makes(source: DType, target: DType) -> None:
    b = Builder()
    for number in (
        (*SAMPLES, 1e-8, -1.5)
        if source.is_floating
        else (0, 1, 100, 16777217)
        if source is DType.i64
        else (False, True)
    ):
        if not (target.is_integer and not abs(number) < 127):  # what torch does then depends on the processor
            args = (full(b, source, number, 2), target, None, None, None, False, None)
            b.output(b.op("aten._to_copy.default", *args, to=f"{target}[2]"))
    graph = b.graph()
    after = fold_constants(graph)
    assert {n.op for n in after.nodes} == {"aten.full.default"}
    for before, now in zip(run(graph, []), run(after, []), strict=True):
        torch.testing.assert_close(now, before, rtol=0, atol=0, equal_nan=True)
        assert now.dtype is torch_dtype(target)


def test_what_only_constants_determine_is_computed_by_the_caller() -> None:
    b = Builder()
    x = b.input("f32[2]", "x")
    b.input("f32[2]", "unused", Role.constant)
    c = b.input("f32[2]", "c", Role.constant)
    twice = b.op("aten.mul.Tensor", b.op("aten.exp.default", c, to=c.type), 2, to=c.type)
    b.output(b.op("aten.add.Tensor", x, twice, 1, to=x.type))
    given = torch.tensor([0.0, 1.0])
    found = fold_tensors(b.graph(), {2: given, 1: given}, run)
    assert nodes_of(found.graph) == "%5 = aten.add.Tensor(%0, %4, 1) : f32[2]\nout %5 user"
    assert found.graph.inputs[3].role is Role.constant
    assert torch.equal(found.constants[3], given.exp() * 2)  # type: ignore[arg-type]
    again = fold_tensors(found.graph, found.constants, run)
    assert again.graph == found.graph


def test_regions_are_folded_too() -> None:
    body = Builder("body", Kind.region)
    x = body.input("f32[2]")
    body.output(body.op("aten.neg.default", body.op("aten.mul.Tensor", x, 1, to=x.type), to=x.type))
    b = Builder()
    x = b.input("f32[2]")
    b.output(b.op("hop.map", [x], [], to=x.type, regions=(body.graph(),)))
    (region,) = fold_constants(b.graph()).nodes[-1].regions
    assert [n.op for n in region.nodes] == ["aten.neg.default"]
