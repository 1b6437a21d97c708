"""Dtypes promote as ``torch.result_type`` has it; torch is the oracle where it is there."""

from __future__ import annotations

import itertools

import pytest
import torch

from fairlead.ir import DType, TensorType
from fairlead.ir.infer import promoted, result_dtype
from fairlead.ir.infer._rule import BrokenRule

DTYPES = {dtype: getattr(torch, dtype.long_name) for dtype in DType}
WORDS = {torch_dtype: dtype for dtype, torch_dtype in DTYPES.items()}
OPERANDS = [True, 2, 2.5, 1j, *itertools.product(DTYPES, [(), (2,)])]


def types_of(a: DType, b: DType) -> DType | None:
    try:
        return WORDS.get(torch.promote_types(DTYPES[a], DTYPES[b]))
    except RuntimeError:
        return None


@pytest.mark.parametrize("a", DType)
def test_two_dtypes_promote_as_torchs_do(a: DType) -> None:
    for b in DType:
        expected = types_of(a, b)
        if expected is None:
            with pytest.raises(BrokenRule, match="have no common dtype"):
                promoted(a, b)
        else:
            assert promoted(a, b) is expected, b


def operand(given: object) -> object:
    return TensorType(given[0], given[1]) if isinstance(given, tuple) else given


def torch_operand(given: object) -> object:
    return torch.empty(given[1], dtype=DTYPES[given[0]]) if isinstance(given, tuple) else given


@pytest.mark.parametrize("x", OPERANDS, ids=str)
def test_two_operands_have_the_dtype_that_torch_gives_them(x: object) -> None:
    for y in OPERANDS:
        try:
            expected = WORDS.get(torch.result_type(torch_operand(x), torch_operand(y)))
        except RuntimeError:
            expected = None
        if (
            expected is None
        ):  # torch has no such dtype either, or the IR has none, as for pairs of half-precision numbers
            with pytest.raises(BrokenRule):
                result_dtype([operand(x), operand(y)])  # type: ignore[list-item]
        else:
            assert result_dtype([operand(x), operand(y)]) is expected, y  # type: ignore[list-item]
