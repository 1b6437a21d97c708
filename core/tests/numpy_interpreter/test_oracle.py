"""What the oracle lets pass: the order of equal elements, and what torch is known to have otherwise."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from oracle_compare import Run, ties
from oracle_known import KNOWN, explanation, stale

from fairlead.ir import Argument, Graph, Input, Kind, Node, Output, Value, verify
from fairlead.numpy import run

from ._call import type_of


def ran(op: str, x: Any, *args: Argument, torch: list[Any]) -> Run:
    """A call of an op, and what torch is said to have made of it."""
    given = Value(0, type_of(x))
    results = tuple(Value(1 + i, type_of(y)) for i, y in enumerate(torch))
    node = Node(op, (given, *args), results)
    graph = Graph("g", Kind.inference, (Input(given),), (node,), tuple(map(Output, results)))
    return Run(verify(graph), [x], torch, torch)


def test_an_index_may_name_any_of_equal_elements_and_no_other() -> None:
    x = np.array([2.0, 1.0, 2.0, 3.0], np.float32)
    value, first, last, other = np.array(2.0, np.float32), np.array(0), np.array(2), np.array(3)
    for at, allowed in ((first, True), (last, True), (other, False)):
        median = ran("aten.median.dim", x, 0, False, torch=[value, at])
        assert ties(median, [value, first], [value, at]) is allowed


def test_an_op_that_says_which_of_equals_it_names_leaves_nothing_open() -> None:
    x = np.array([2.0, 2.0], np.float32)
    largest = ran("aten.max.dim", x, 0, False, torch=[x[0], np.array(1)])
    assert not ties(largest, [x[0], np.array(0)], [x[0], np.array(1)])


def test_a_bin_is_found_in_the_dtype_of_the_element_by_torch() -> None:
    x = np.array([0.08984375], ml_dtypes.bfloat16)
    counts = np.zeros(100, ml_dtypes.bfloat16)
    counts[9] = 1
    histogram = ran("aten.histc.default", x, 100, 0, 1, torch=[counts])
    found = run(histogram.graph, histogram.inputs)
    row = explanation(histogram, found)
    assert row is not None
    assert row.op == "aten.histc.default"


def test_a_row_explains_no_difference_of_another_kind() -> None:
    x = np.array([0.08984375], ml_dtypes.bfloat16)
    twice = np.zeros(100, ml_dtypes.bfloat16)
    twice[8] = 2
    wrong = ran("aten.histc.default", x, 100, 0, 1, torch=[twice])
    assert explanation(wrong, run(wrong.graph, wrong.inputs)) is None


def test_a_row_that_explains_nothing_in_its_entry_is_said_to_be_stale() -> None:
    row = next(row for row in KNOWN if "histc" in row.entries)
    assert stale("histc", [row]) == []
    assert stale("histc", []) == [f"histc no longer shows that {row.reason} ({row.op})"]
    assert stale("add", []) == []
