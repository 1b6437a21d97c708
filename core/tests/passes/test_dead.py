"""What nothing uses is gone, and the loop that passes run on."""

from __future__ import annotations

import msgspec

from fairlead.ir import Location, Node, Role, TensorType, Value
from fairlead.passes import Emitter, by_op, remove_dead_nodes, rewrite

from ._build import Builder, f32, nodes_of, rewritten, text


def neg(b: Builder, x: Value) -> Value:
    return b("aten.neg.default", x, to=x.tensor)


def test_a_node_that_nothing_uses_is_gone_and_so_is_what_only_it_used() -> None:
    b = Builder()
    x = b.input(f32(2), name="x")
    b.input(f32(3), Role.parameter, "unused")
    neg(b, neg(b, x))
    assert rewritten(remove_dead_nodes, b.graph(neg(b, x), None, 7)) == text(
        """
        graph @g inference {
          in %0 user "x" : f32[2]
          in %1 parameter "unused" : f32[3]
          %4 = aten.neg.default(%0) : f32[2]
          out %4 user
          out none user
          out 7 user
        }
        """
    )


def test_of_several_results_the_unused_ones_are_none() -> None:
    b = Builder()
    first, second, third = b.many("aten.unbind.int", b.input(f32(3, 2)), 0, to=(f32(2), f32(2), f32(2)))
    assert first is not None
    assert second is not None
    neg(b, first)
    assert nodes_of(remove_dead_nodes(b.graph(neg(b, second)))).startswith("_, %2, _ = aten.unbind.int")
    assert third is not None


def test_a_check_stays_and_what_it_looks_at() -> None:
    b = Builder()
    factor, info = b.many("aten.linalg_cholesky_ex.default", b.input(f32(2, 2)), False, False, to=(f32(2, 2), f32()))
    b.many("aten._linalg_check_errors.default", info, "cholesky", True, to=())
    graph = b.graph(factor)
    assert remove_dead_nodes(graph) == graph


def test_communication_stays_although_nothing_uses_what_it_gives() -> None:
    b = Builder()
    total = b("_c10d_functional.all_reduce.default", neg(b, b.input(f32(2))), "sum", "0@2", to=f32(2))
    b("_c10d_functional.wait_tensor.default", total, to=f32(2))
    assert nodes_of(remove_dead_nodes(b.graph(None))) == text(
        """
        %1 = aten.neg.default(%0) : f32[2]
        %2 = _c10d_functional.all_reduce.default(%1, "sum", "0@2") : f32[2]
        _ = _c10d_functional.wait_tensor.default(%2) : _
        out none user
        """
    )


def test_a_graph_without_dead_nodes_is_itself() -> None:
    b = Builder()
    graph = b.graph(neg(b, b.input(f32(2))))
    assert remove_dead_nodes(graph) == graph


def test_a_rule_sees_operands_that_are_already_replaced_and_its_nodes_keep_the_location() -> None:
    b = Builder()
    graph = b.graph(neg(b, neg(b, b.input(f32(2)))))
    here = Location("model.py", 3)
    graph = msgspec.structs.replace(graph, nodes=tuple(msgspec.structs.replace(n, location=here) for n in graph.nodes))

    def as_product(node: Node, emit: Emitter) -> tuple[Value]:
        assert isinstance(node.result.type, TensorType)
        return (emit("aten.mul.Tensor", (node.args[0], -1), node.result.type),)

    found = rewrite(graph, by_op({"aten.neg.default": as_product}))
    assert nodes_of(found) == text(
        """
        %3 = aten.mul.Tensor(%0, -1) : f32[2]
        %4 = aten.mul.Tensor(%3, -1) : f32[2]
        out %4 user
        """
    )
    assert {n.location for n in found.nodes} == {here}


def test_values_inside_lists_and_outputs_are_replaced_too() -> None:
    b = Builder()
    x = b.input(f32(2))
    y = neg(b, x)
    both = b("aten.cat.default", (x, y), 0, to=f32(4))
    found = rewrite(b.graph(both, y), by_op({"aten.neg.default": lambda node, emit: (x,)}))
    assert nodes_of(found) == "%2 = aten.cat.default([%0, %0], 0) : f32[4]\nout %2 user\nout %0 user"
