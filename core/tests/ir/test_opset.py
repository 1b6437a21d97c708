"""The table of ops: its rows are valid, in order, and say what the code does."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from fairlead.errors import IRFormatError
from fairlead.ir import Token, opset
from fairlead.ir.opset import OPSET_VERSION, TIERS, OpSpec, ParameterType, signature
from fairlead.passes import DECOMPOSABLE

SPECS = opset.specs()
FILE = Path(opset.__file__).with_name("v1.txt")
COMPARISON = re.compile(r"exact|ties|accumulation|distribution|[1-9]\d? ulp")
PUBLISHED = 411
"""Ops of opset 1 as first released. Ops may be added; taking one away breaks files that have it."""


def row(spec: OpSpec) -> str:
    interpreters = "+".join(spec.interpreters)
    return (
        f"{spec.signature}\n    {spec.version} {spec.since} {spec.comparison.replace(' ', ''):<12}"
        f" {interpreters:<11} {spec.decomposition or '-':<6} {spec.meaning}"
    )


def test_every_row_is_valid() -> None:
    assert len(SPECS) >= PUBLISHED
    for spec in SPECS.values():
        assert signature(spec.signature).op == spec.id
        assert spec.tier in TIERS
        assert spec.version >= 1
        assert 1 <= spec.since <= OPSET_VERSION
        assert COMPARISON.fullmatch(spec.comparison), spec.id
        assert spec.meaning.endswith("."), spec.id
        assert "torch" in spec.interpreters
        assert set(spec.interpreters) <= {"torch", "numpy"}, spec.id


def test_ops_are_unique_and_sorted_within_their_tier() -> None:
    lines = FILE.read_text("utf-8").splitlines()
    listed = [line.partition("(")[0] for line in lines if line and line[0] not in " #["]
    assert len(listed) == len(set(listed)) == len(SPECS)
    assert [t for t, after in pairwise([*(s.tier for s in SPECS.values()), ""]) if t != after] == list(TIERS)
    for tier in TIERS:
        ops = [s.id for s in SPECS.values() if s.tier == tier]
        assert ops == sorted(ops)


def test_the_file_is_written_in_one_way_so_that_a_change_is_a_small_diff() -> None:
    body = FILE.read_text("utf-8").partition("\n[")[2]
    parts = [
        f"[{tier}] {opset.tiers()[tier].meaning}\n\n" + "\n".join(row(s) for s in SPECS.values() if s.tier == tier)
        for tier in TIERS
    ]
    assert f"[{body}" == "\n\n".join(parts) + "\n"


def test_parameters_of_an_op_have_names_of_their_own() -> None:
    for spec in SPECS.values():
        names = [p.name for p in signature(spec.signature).parameters]
        assert len(names) == len(set(names)), spec.id


def test_the_table_says_what_can_be_decomposed() -> None:
    assert {s.id for s in SPECS.values() if s.decomposition == "passes"} == DECOMPOSABLE


def test_an_op_that_is_not_in_the_table_is_custom() -> None:
    assert opset.spec("mylib.attention.default") is None


def test_a_signature_has_types_and_defaults() -> None:
    read = signature('a.b.c(Tensor?[] x, int[2]? n=[1, 2], *, str mode="a, b", ScalarType? dtype=4) -> (Tensor, int k)')
    x, n, mode, dtype = read.parameters
    assert x.type == ParameterType("Tensor", is_list=True, optional_items=True)
    assert n.type == ParameterType("int", is_list=True, length=2, optional=True)
    assert (x.required, n.required, n.default) == (True, False, (1, 2))
    assert (mode.default, mode.keyword_only, n.keyword_only) == ("a, b", True, False)
    assert dtype.default == Token("dtype", "i64")
    assert [r.name for r in read.results] == ["", "k"]
    assert not read.variadic


@pytest.mark.parametrize("spec", SPECS.values(), ids=lambda s: s.id)
def test_types_are_written_as_they_are_read(spec: OpSpec) -> None:
    inside = spec.signature.partition("(")[2]
    for parameter in signature(spec.signature).parameters:
        assert re.search(rf"(^|, ){re.escape(str(parameter.type))} {parameter.name}[,=)]", inside)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("aten.relu.default", "it has not the form name.overload(parameters) -> results"),
        ("aten.relu.default(Tensor) -> Tensor", "the parameter 'Tensor' is not a type and a name"),
        ("aten.relu.default(Tensr self) -> Tensor", "'Tensr' is not a type"),
        ("aten.relu.default(int n=x) -> Tensor", "'x' is not a default"),
        ("aten.relu.default(int n) -> Tensor x y", "the result 'Tensor x y' is not a type, nor a type and a name"),
    ],
)
def test_a_text_that_is_no_signature_is_an_error_in_three_lines(text: str, why: str) -> None:
    with pytest.raises(IRFormatError) as caught:
        signature(text)
    assert str(caught.value).splitlines() == [
        f"{IRFormatError.code}: {text!r} is not the signature of an op: {why}",
        "  from: fairlead.ir.opset",
        "  next: write it like aten.add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    ]
