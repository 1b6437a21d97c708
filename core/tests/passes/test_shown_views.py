"""Outputs that are views have views of their own, which nothing else reads."""

from __future__ import annotations

import msgspec

from fairlead.ir import Output, Role, Value
from fairlead.passes import canonicalize, remove_dead_nodes, shown_views, view_overwritten_inputs
from fairlead.passes._memory import show_views

from ._build import Builder, f32, nodes_of, text


def relu(b: Builder, x: Value) -> Value:
    return b("aten.relu.default", x, to=x.tensor)


def turned(b: Builder, x: Value) -> Value:
    return b("aten.permute.default", x, (1, 0), to=f32(*reversed(x.tensor.shape)))


def row(b: Builder, x: Value) -> Value:
    return b("aten.select.int", x, 0, 1, to=f32(*x.tensor.shape[1:]))


def test_a_view_that_is_an_output_and_read_is_two() -> None:
    b = Builder()
    view = turned(b, b.input(f32(2, 3)))
    assert nodes_of(show_views(b.graph(view, relu(b, view)))) == text(
        """
        %1 = aten.permute.default(%0, [1, 0]) : f32[3, 2]
        %3 = aten.permute.default(%0, [1, 0]) : f32[3, 2]
        %2 = aten.relu.default(%1) : f32[3, 2]
        out %3 user
        out %2 user
        """
    )


def test_every_view_on_the_way_to_an_output_is_one_of_its_own() -> None:
    b = Builder()
    view = turned(b, b.input(f32(2, 3)))
    graph = b.graph(row(b, view), relu(b, view))
    assert nodes_of(show_views(graph)) == text(
        """
        %1 = aten.permute.default(%0, [1, 0]) : f32[3, 2]
        %4 = aten.permute.default(%0, [1, 0]) : f32[3, 2]
        %2 = aten.select.int(%4, 0, 1) : f32[2]
        %3 = aten.relu.default(%1) : f32[3, 2]
        out %2 user
        out %3 user
        """
    )


def test_a_split_of_which_one_result_is_an_output_and_the_other_is_read_is_two() -> None:
    b = Builder()
    first, second = b.many("aten.split_with_sizes.default", b.input(f32(3)), (1, 2), 0, to=(f32(1), f32(2)))
    assert first is not None
    assert second is not None
    assert nodes_of(remove_dead_nodes(show_views(b.graph(first, relu(b, second))))) == text(
        """
        _, %2 = aten.split_with_sizes.default(%0, [1, 2], 0) : _, f32[2]
        %4, _ = aten.split_with_sizes.default(%0, [1, 2], 0) : f32[1], _
        %3 = aten.relu.default(%2) : f32[2]
        out %4 user
        out %3 user
        """
    )


def test_a_view_that_only_outputs_show_stays() -> None:
    b = Builder()
    view = turned(b, relu(b, b.input(f32(2, 3))))
    graph = b.graph(view, view, row(b, view))
    assert show_views(graph) == graph


def test_a_view_that_only_nodes_read_stays() -> None:
    b = Builder()
    graph = b.graph(relu(b, turned(b, b.input(f32(2, 3)))))
    assert show_views(graph) == graph
    assert shown_views(graph) == set()


def test_shown_views_are_those_that_lead_to_outputs_alone() -> None:
    b = Builder()
    x = b.input(f32(2, 3))
    graph = canonicalize(b.graph(row(b, turned(b, x)), relu(b, turned(b, x)), relu(b, x)))
    views = shown_views(graph)
    assert [n.op for n in graph.nodes if id(n) in views] == ["aten.permute.default", "aten.select.int"]
    assert [n.op for n in graph.nodes if id(n) not in views] == [
        "aten.permute.default",
        "aten.relu.default",
        "aten.relu.default",
    ]


def test_a_view_of_what_overwrites_an_input_is_one_of_the_input() -> None:
    b = Builder()
    x = b.input(f32(2, 3))
    new = relu(b, x)
    graph = b.graph(new, row(b, turned(b, new)), relu(b, turned(b, new)))
    first, *rest = graph.outputs
    graph = msgspec.structs.replace(graph, outputs=(Output(first.value, Role.mutation, target=0), *rest))
    assert nodes_of(view_overwritten_inputs(show_views(graph))).splitlines()[1:3] == [
        "%2 = aten.permute.default(%0, [1, 0]) : f32[3, 2]",
        "%3 = aten.select.int(%2, 0, 1) : f32[2]",
    ]


def test_a_view_of_a_view_that_is_read_inside_too_reads_no_shown_one() -> None:
    """Saved for the backward are a view and a permutation of it; the program reads the permutation as well."""
    b = Builder()
    first = b("aten.view.default", b.input(f32(6)), (2, 3), to=f32(2, 3))
    second = b("aten.permute.default", first, (1, 0), to=f32(3, 2, strides=(1, 3)))
    graph = canonicalize(b.graph(b("aten.neg.default", second, to=f32(3, 2)), first, second))
    assert nodes_of(graph) == text(
        """
        %1 = aten.view.default(%0, [2, 3]) : f32[2, 3]
        %4 = aten.view.default(%0, [2, 3]) : f32[2, 3]
        %2 = aten.permute.default(%1, [1, 0]) : f32[3, 2] strides[1, 3]
        %5 = aten.permute.default(%4, [1, 0]) : f32[3, 2] strides[1, 3]
        %3 = aten.neg.default(%2) : f32[3, 2]
        out %3 user
        out %4 user
        out %5 user
        """
    )
    assert canonicalize(graph) == graph
