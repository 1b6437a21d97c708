"""A backend with threads of its own leaves a graph alone of which torch has much to do in between."""

from __future__ import annotations

import msgspec
import pytest

from fairlead._worth import taking_turns
from fairlead.backend import Support
from fairlead.ir import Graph, Node, Output, Role, parse_graph
from fairlead.partition import assign


def layers(rows: int | str = 4096, *, width: int = 32, device: str = "") -> Graph:
    """A layer, rows sorted, and another layer."""
    symbols = f"symbol {rows} in [2, 100000] from in0.dim0\n" if isinstance(rows, str) else ""
    type_ = f"f32[{rows}, {width}]{device}"
    return parse_graph(
        f"""{symbols}graph @g inference {{
  in %0 user "x" : {type_}
  in %1 parameter "a" : f32[{width}, {width}]{device}
  in %2 parameter "b" : f32[{width}, {width}]{device}
  %3 = aten.linear.default(%0, %1, none) : {type_}
  %4, _ = aten.sort.default(%3, 0, false) : {type_}, _
  %5 = aten.linear.default(%4, %2, none) : {type_}
  out %5 user
}}"""
    )


def reason(graph: Graph, *declined: str) -> str | None:
    def support(name: str, node: Node) -> Support:
        return Support.no("no rule") if name == "ours" and node.op in declined else Support.yes()

    return taking_turns(graph, assign(graph, "ours", ["eager"], support), "ours")


def test_a_graph_with_much_for_torch_in_between_is_left_to_others() -> None:
    found = reason(layers(), "aten.sort.default")
    assert found is not None
    assert found.startswith("slower than eager here: ")
    assert "aten.sort.default" in found


def test_a_graph_that_is_all_taken_is_kept() -> None:
    assert reason(layers()) is None


@pytest.mark.parametrize(
    "graph",
    [
        pytest.param(layers(rows=64), id="torch takes one thread"),
        pytest.param(layers(width=2048), id="products are nearly all of it"),
        pytest.param(layers(device=" @cuda:0"), id="no threads of the CPU"),
        pytest.param(layers("s0"), id="a size that is not known is taken for a small one"),
    ],
)
def test_a_graph_is_kept_where_torch_is_not_in_the_way(graph: Graph) -> None:
    assert reason(graph, "aten.sort.default") is None


def test_a_graph_whose_rest_would_be_one_part_is_left_to_others_too() -> None:
    graph = layers()
    (sort,) = (node for node in graph.nodes if node.op == "aten.sort.default")
    ends_so = msgspec.structs.replace(graph, nodes=graph.nodes[:2], outputs=(Output(sort.results[0], Role.user),))
    assert reason(ends_so, "aten.sort.default") is not None


def test_a_graph_of_which_nothing_is_taken_is_kept() -> None:
    assert reason(layers(), "aten.sort.default", "aten.linear.default") is None
