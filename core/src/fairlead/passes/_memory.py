"""Who shares memory with whom, and whose strides matter."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from fairlead.ir import Graph, Node, Role, Value
from fairlead.passes._nodes import operand
from fairlead.passes._rewrite import Emitter, Replacement, rewrite, substitute, with_values

_LAYOUT_SENSITIVE = frozenset(
    {
        "aten.as_strided.default",
        "aten.as_strided_scatter.default",
        "aten.mkldnn_rnn_layer.default",
        "aten.mkldnn_rnn_layer_backward.default",
        "aten.view.dtype",
        "aten.view_as_complex.default",
        "aten.view_as_real.default",
    }
)

_VIEWS = frozenset(
    {
        "aten.as_strided.default",
        "aten.view.default",
        "aten.view.dtype",
        "aten.view_as_complex.default",
        "aten.view_as_real.default",
        "aten.permute.default",
        "aten.expand.default",
        "aten.unsqueeze.default",
        "aten.squeeze.dims",
        "aten.select.int",
        "aten.slice.Tensor",
        "aten.split_with_sizes.default",
        "aten.unbind.int",
        "aten.diagonal.default",
        "aten.unfold.default",
    }
)


def layout_sensitive(op: str) -> bool:
    """Whether the meaning of an op depends on its operands' strides.

    Reinterpretations of memory, kernels that take it for row-major unasked, and ops that we do not know.
    """
    return op in _LAYOUT_SENSITIVE or op.partition(".")[0] not in ("aten", "prims", "nn", "hop")


def is_view(op: str) -> bool:
    """Whether an op's results show the memory of its operand."""
    return op in _VIEWS


class _Views:
    """Whose memory each value of a graph shows, by their ids."""

    def __init__(self, graph: Graph) -> None:
        views = [n for n in graph.nodes if is_view(n.op)]
        self._shown = {r.id: operand(n).id for n in views for r in n.results if r is not None}

    def __contains__(self, value: int) -> bool:
        return value in self._shown

    def upwards(self, value: int) -> Iterator[int]:
        """The value, what it is a view of, what that is a view of, and so on."""
        yield value
        while value in self._shown:
            value = self._shown[value]
            yield value

    def owner(self, value: int) -> int:
        """The value that is no view and whose memory this one shows."""
        *_, last = self.upwards(value)
        return last


def seen_by_outputs(graph: Graph) -> set[int]:
    """The ids of the values whose memory an output may share: outputs, and what they are views of."""
    views = _Views(graph)
    return {seen for v in graph.output_values() for seen in views.upwards(v.id)}


def drop_clones(graph: Graph) -> Graph:
    """Without clones but those that keep an output apart from another value, or that a layout-sensitive op reads.

    Before: a graph whose aliases are gone. After: no other ``aten.clone.default`` is left.
    """
    sensitive = {v.id for node in graph.nodes if layout_sensitive(node.op) for v in node.operands()}
    needed = sensitive | _apart(graph)

    def rule(node: Node, emit: Emitter) -> Replacement | None:
        if node.op != "aten.clone.default" or node.result.id in needed:
            return None
        return (operand(node),)

    return rewrite(graph, rule)


def _apart(graph: Graph) -> set[int]:
    """The clones that outputs see, but for those of values that nobody has otherwise who could write to them.

    The caller may write to inputs and to what it gets; what is saved for the backward nobody writes to.
    """
    views = _Views(graph)
    outputs = [o for o in graph.outputs if isinstance(o.value, Value)]
    saved = {views.owner(o.value.id) for o in outputs if o.role is Role.saved and isinstance(o.value, Value)}
    writable = {views.owner(o.value.id) for o in outputs if o.role is not Role.saved and isinstance(o.value, Value)}
    writable.update(i.value.id for i in graph.inputs)
    apart: set[int] = set()
    for node in reversed(graph.nodes):
        clone = node.results[0].id if node.op == "aten.clone.default" and node.results[0] else None
        if clone is None or clone not in saved | writable:
            continue
        source = operand(node)
        shared = source.id in writable or (clone in writable and source.id in saved)
        # an output's strides are those of its type
        if shared or source.id in views or source.type != node.result.type:
            apart.add(clone)
            continue
        for seen in (saved, writable):
            if clone in seen:
                seen.add(source.id)
    return apart


def show_views(graph: Graph) -> Graph:
    """With views of their own for the outputs that are views.

    Before: any graph. After: each view that an output is, or is a view of, is read by nothing but outputs and such
    views, so that they can all be made last and outside of what a backend compiles.
    """
    seen = seen_by_outputs(graph)
    shown = {id(n) for n in graph.nodes if is_view(n.op) and any(r is not None and r.id in seen for r in n.results)}
    read = {v.id for n in graph.nodes if id(n) not in shown for v in n.operands()}
    # what is read inside too keeps a node of its own, which reads its operand inside
    for node in reversed(graph.nodes):
        if id(node) in shown and any(r is not None and r.id in read for r in node.results):
            read.update(v.id for v in node.operands())
    own: dict[int, Value] = {}
    nodes: list[Node] = []
    fresh = graph.next_id()
    for node in graph.nodes:
        if id(node) not in shown:
            nodes.append(node)
            continue
        copy = msgspec.structs.replace(node, args=substitute(node.args, own))
        if any(r is not None and r.id in read for r in node.results):
            nodes.append(node)
            results = tuple(r and Value(fresh + i, r.type) for i, r in enumerate(node.results))
            fresh += len(results)
            own.update((old.id, new) for old, new in zip(node.results, results, strict=True) if old and new)
            copy = msgspec.structs.replace(copy, results=results)
        nodes.append(copy)
    return msgspec.structs.replace(graph, nodes=tuple(nodes), outputs=with_values(graph.outputs, own))


def view_overwritten_inputs(graph: Graph) -> Graph:
    """With outputs that are views of what overwrites an input made as views of the input itself.

    Before: a graph after `show_views`. After: such views have the input's place in memory, and show the new numbers
    once the caller has written them there. Torch reads the offset of these outputs where sizes are symbolic.
    """
    inputs = {
        o.value.id: graph.inputs[o.target].value
        for o in graph.outputs
        if isinstance(o.value, Value) and o.target is not None
    }
    overwriting = {new: old for new, old in inputs.items() if new != old.id}
    if not overwriting:
        return graph
    shown = shown_views(graph)
    nodes = tuple(
        msgspec.structs.replace(n, args=substitute(n.args, overwriting)) if id(n) in shown else n for n in graph.nodes
    )
    return msgspec.structs.replace(graph, nodes=nodes)


def shown_views(graph: Graph) -> set[int]:
    """The views, by the identity of their nodes, that only outputs and such views read."""
    read: set[int] = set()
    shown: set[int] = set()
    for node in reversed(graph.nodes):
        if is_view(node.op) and not any(r is not None and r.id in read for r in node.results):
            shown.add(id(node))
        else:
            read.update(v.id for v in node.operands())
    return shown
