"""Who shares memory with whom, and whose strides matter."""

from __future__ import annotations

from fairlead.ir import Graph, Node
from fairlead.passes._nodes import operand
from fairlead.passes._rewrite import Emitter, Replacement, rewrite

_LAYOUT_SENSITIVE = frozenset(
    {
        "aten.as_strided.default",
        "aten.as_strided_scatter.default",
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
    """Whether the meaning of an op depends on its operands' strides: reinterpretations of memory, and ops that we do
    not know."""
    return op in _LAYOUT_SENSITIVE or op.partition(".")[0] not in ("aten", "prims", "nn")


def seen_by_outputs(graph: Graph) -> set[int]:
    """The ids of the values whose memory an output may share: outputs, and what they are views of."""
    seen = {v.id for v in graph.output_values()}
    for node in reversed(graph.nodes):
        if node.op in _VIEWS and any(r is not None and r.id in seen for r in node.results):
            seen.update(v.id for v in node.operands())
    return seen


def drop_clones(graph: Graph) -> Graph:
    """Without clones but those that keep an output apart from another value, or that a layout-sensitive op reads.

    Before: a graph whose aliases are gone. After: no other ``aten.clone.default`` is left.
    """
    needed = seen_by_outputs(graph)
    needed.update(v.id for node in graph.nodes if layout_sensitive(node.op) for v in node.operands())

    def rule(node: Node, emit: Emitter) -> Replacement | None:
        if node.op != "aten.clone.default" or node.result.id in needed:
            return None
        return (operand(node),)

    return rewrite(graph, rule)
