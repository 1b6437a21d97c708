"""Embedding bags of one size become rows that are looked up, and their sum or mean."""

from __future__ import annotations

import pytest
import torch

from fairlead.interpret import run
from fairlead.ir import Graph, parse_graph, verify
from fairlead.passes import even_bags

BAG = "aten._embedding_bag.default"


def bags(*, mode: int = 0, offsets: str = "0, 6, 2", scales: bool = False, more: str = "", padding: int = -1) -> Graph:
    """Three bags of six indices in a table of five rows; ``more`` is a name for the fourth result."""
    fourth, its_type = (more, "i64[3]") if more else ("_", "_")
    return parse_graph(
        f"""graph @g inference {{
  in %0 parameter "table" : f32[5, 4]
  in %1 user "indices" : i64[6]
  in %2 user "scales" : f32[6]
  %3 = aten.arange.start_step({offsets}, #dtype<i64>, none, #device<cpu>, false) : i64[3]
  %4, _, _, {fourth} = {BAG}(%0, %1, %3, false, {mode}, false, {"%2" if scales else "none"}, false, {padding}) """
        f""": f32[3, 4], _, _, {its_type}
  out %4 user
{f"  out {more} user" if more else ""}}}"""
    )


def spread(graph: Graph) -> Graph:
    return verify(even_bags(graph, lambda node: False))


@pytest.mark.parametrize(("mode", "scales"), [(0, False), (0, True), (1, False)])
def test_the_rows_of_bags_are_added_up_and_averaged(mode: int, scales: bool) -> None:
    graph = bags(mode=mode, scales=scales)
    found = spread(graph)
    assert not {BAG, "aten.arange.start_step"} & {n.op for n in found.nodes}
    given = torch.randn(5, 4), torch.tensor([4, 0, 1, 1, 3, 2]), torch.randn(6)
    torch.testing.assert_close(run(found, given), run(graph, given))


@pytest.mark.parametrize(
    "graph",
    [
        bags(mode=2),
        bags(offsets="0, 5, 2"),
        bags(offsets="1, 6, 2"),
        bags(more="%7"),
        bags(padding=0),
    ],
    ids=["maxima", "one index short", "not from the first", "sizes are wanted", "a row that does not count"],
)
def test_other_bags_stay_whole(graph: Graph) -> None:
    assert spread(graph) == graph


def test_a_backend_that_has_the_op_keeps_it() -> None:
    assert even_bags(bags(), lambda node: True) == bags()


def test_as_many_bags_as_a_symbol_says_are_even_too() -> None:
    graph = parse_graph(
        f"""symbol b in [2, 64] from in1.dim0
graph @g inference {{
  in %0 parameter "table" : f32[5, 4]
  in %1 user "indices" : i64[b, 2]
  %2 = aten.view.default(%1, [<2*b>]) : i64[2*b]
  %3 = aten.arange.start_step(0, <2*b>, 2, #dtype<i64>, none, #device<cpu>, false) : i64[b]
  %4, _, _, _ = {BAG}(%0, %2, %3, false, 0, false, none, false, -1) : f32[b, 4], _, _, _
  out %4 user
}}"""
    )
    found = spread(graph)
    assert BAG not in {n.op for n in found.nodes}
    given = torch.randn(5, 4), torch.tensor([[4, 0], [1, 1], [3, 2]])
    torch.testing.assert_close(run(found, given), run(graph, given))
