"""The optimisation profile of a graph, from its symbols."""

from __future__ import annotations

import pytest

from fairlead.ir import DType, Graph, Input, Kind, Node, Output, ScalarType, Symbol, TensorType, Value
from fairlead_tensorrt import Range
from fairlead_tensorrt._sizes import Size, around, given_sizes, ranges

X = Value(0, TensorType(DType.f32, ("s", "2*s", 3)))
N = Value(1, ScalarType(DType.i64))
W = Value(2, TensorType(DType.f32, (3,)))
OUT = Value(3, X.type)
GRAPH = Graph(
    "g",
    Kind.inference,
    (Input(X), Input(N), Input(W)),
    (Node("aten.relu.default", (X,), (OUT,)),),
    (Output(OUT),),
    (Symbol("s", 2, 10, (0, 0)), Symbol("n", -5, None, (1, None))),
)


def test_expressions_have_the_range_of_their_symbols() -> None:
    sizes = {"s": Size(2, 4, 10), "n": Size(1, 3, 8)}
    assert ranges(GRAPH, ("x", "n", "w"), sizes) == {
        "x": Range((2, 4, 3), (4, 8, 3), (10, 20, 3)),
        "n": Range((1,), (3,), (8,), is_value=True),
    }


def test_what_is_baked_or_not_read_has_no_range() -> None:
    assert ranges(GRAPH, (None, None, "w"), {}) == {}


def test_a_size_that_leaves_the_range_widens_it_and_keeps_what_was() -> None:
    symbol = Symbol("s", 2, None, (0, 0))
    first = around(symbol, 10)
    assert first == Size(2, 10, 32)
    assert not first.holds(40)
    assert around(symbol, 40, first) == Size(2, 40, 128)
    assert around(symbol, 0, first) == Size(0, 0, 32)


def test_the_callers_sizes_win_and_a_name_that_is_none_is_refused() -> None:
    assert given_sizes(GRAPH, {"s": (2, 3, 4)}) == {"s": Size(2, 3, 4), "n": Size(1, 16, 512)}
    with pytest.raises(ValueError, match="no symbol t"):
        given_sizes(GRAPH, {"t": (1, 2, 3)})
