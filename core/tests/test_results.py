"""Outputs of a program that is one Part come of its results and of inputs, in any order and any number of times."""

from __future__ import annotations

import itertools

import pytest
import torch

from fairlead._results import Outputs
from fairlead.ir import Value, parse_graph

_HEAD = """graph @g inference {
  in %0 user "x" : f32[3]
  in %1 user "y" : f32[3]
  %2 = aten.mul.Tensor(%0, %1) : f32[3]
  %3 = aten.sin.default(%0) : f32[3]
"""
_START, _STOP = 2, 4


@pytest.mark.parametrize("outputs", list(itertools.product(("%0", "%1", "%2", "%3", "none"), repeat=3)))
def test_past_the_registers_they_are_what_they_are_out_of_them(outputs: tuple[str, ...]) -> None:
    graph = parse_graph(_HEAD + "".join(f"  out {output} user\n" for output in outputs) + "}")
    made = Outputs(graph, [o.value.type if isinstance(o.value, Value) else None for o in graph.outputs])
    made.locate({i: i for i in range(_STOP)})
    registers = [torch.full((3,), float(i)) for i in range(_STOP)]
    straight = made.straight(_START, _STOP)
    assert straight is not None
    kept = (*straight.kept(registers[:_START]), *straight.others)
    found = made.of_results([*registers[_START:], *kept], straight, ())
    assert all(a is b for a, b in zip(found, made(registers), strict=True))
    assert [None if x is None else int(x[0]) for x in found] == [None if o == "none" else int(o[1:]) for o in outputs]
