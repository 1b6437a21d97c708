"""Whatever stands in a node's slots, a rule has results or a `VerificationError`."""

from __future__ import annotations

import contextlib
import random
from typing import Any

import pytest

from fairlead.errors import VerificationError
from fairlead.ir import Argument, Complex, DimExpr, DType, ScalarType, TensorType, Token, Value
from fairlead.ir.infer import RULES, infer
from fairlead.ir.infer._rule import _parameters

SHAPES: list[tuple[Any, ...]] = [(), (0,), (3,), ("s",), (2, 3), ("s", 4), (2, 3, 4), (2, 3, 4, 4), (1, 2, 3, "s", 5)]


def tensor(draw: random.Random) -> Value:
    return Value(0, TensorType(draw.choice(list(DType)), draw.choice(SHAPES)))


def argument(draw: random.Random, depth: int = 1) -> Argument:
    """Any argument: a list of others as well."""
    kind = draw.randrange(12 if depth else 10)
    if kind < 3:
        return tensor(draw)
    if kind < 10:
        choices: list[Argument] = [None, True, -1, 0, 2, 3, 0.5, "none", DimExpr("s"), Complex(0.0, 1.0)]
        rest: list[Argument] = [Token("dtype", "f16"), Token("device", "cpu"), Value(1, ScalarType(DType.i64))]
        return draw.choice(choices + rest)
    return tuple(argument(draw, depth - 1) for _ in range(draw.randrange(4)))


def plausible(draw: random.Random, fits: Any) -> Argument:
    """An argument that the rule takes in its slot, if one is soon found."""
    for _ in range(40):
        found = argument(draw)
        seen = found.type if isinstance(found, Value) else found
        if fits(tuple(v.type if isinstance(v, Value) else v for v in seen) if isinstance(seen, tuple) else seen):
            return found
    return argument(draw)


@pytest.mark.parametrize("op", sorted(RULES))
def test_a_rule_has_results_or_says_why_not(op: str) -> None:
    draw = random.Random(op)
    _, fits, _ = _parameters(RULES[op])
    for _ in range(40):
        args = tuple(plausible(draw, fit) for fit in fits)
        with contextlib.suppress(VerificationError):
            assert isinstance(infer(op, args), tuple)
