"""Composites taken apart into base ops, for backends that do not keep them whole."""

from __future__ import annotations

from collections.abc import Callable, Collection

from fairlead.ir import Graph, Node, Value, dims
from fairlead.passes._activations import ACTIVATIONS
from fairlead.passes._attention import attention, attention_backward
from fairlead.passes._dead import remove_dead_nodes
from fairlead.passes._losses import LOSSES
from fairlead.passes._nodes import number, operand
from fairlead.passes._normalizations import NORMALIZATIONS
from fairlead.passes._ops import Ops
from fairlead.passes._regions import in_regions
from fairlead.passes._rewrite import Emitter, Replacement, rewrite
from fairlead.passes._softmax import SOFTMAXES


def decompose(graph: Graph, keeps: Collection[str]) -> Graph:
    """The graph without the composites that are not in ``keeps`` (``"*"`` keeps all).

    Before: a canonical graph. After: of the ops in `DECOMPOSABLE`, only those in ``keeps``, in regions too; with an
    empty ``keeps`` a graph is of base and ext ops alone, and of ``nn.lstm``. But for products of matrices,
    reduced-precision inputs are computed in float32 inside, as ATen's own kernels do. Left whole are attention that
    drops out inside or over an unknown number of shared heads, and gradients of complex activations.
    """
    if "*" in keeps:
        return graph
    graph = in_regions(graph, lambda region: decompose(region, keeps))
    unwanted = DECOMPOSABLE - set(keeps)

    def rule(node: Node, emit: Emitter) -> Replacement | None:
        return _RULES[node.op](node, Ops(emit)) if node.op in unwanted else None

    return remove_dead_nodes(rewrite(graph, rule))


def _linear(node: Node, b: Ops) -> Replacement:
    x, w = operand(node), operand(node, 1)
    flat = b.view(x, (dims.product(x.tensor.shape[:-1]), x.tensor.shape[-1]))
    out = b.matmul(flat, b.permute(w, (1, 0)))
    out = b.view(out, node.result.tensor.shape)
    bias = node.args[2]
    return (b.binary("add", out, bias) if isinstance(bias, Value) else out,)


def _addmm(node: Node, b: Ops) -> Replacement:
    bias, beta, alpha = operand(node), number(node, 3), number(node, 4)
    out = b.matmul(operand(node, 1), operand(node, 2))
    out = out if alpha == 1 else b.binary("mul", out, alpha)
    if beta == 0:
        return (out,)
    return (b.binary("add", out, bias if beta == 1 else b.binary("mul", bias, beta)),)


_RULES: dict[str, Callable[[Node, Ops], Replacement | None]] = {
    "aten.linear.default": _linear,
    "aten.addmm.default": _addmm,
    "nn.scaled_dot_product_attention": attention,
    "nn.scaled_dot_product_attention_backward": attention_backward,
    **ACTIVATIONS,
    **LOSSES,
    **NORMALIZATIONS,
    **SOFTMAXES,
}

DECOMPOSABLE = frozenset(_RULES)
"""The composites that `decompose` can take apart: the tier nn of the opset but for random numbers and ``nn.lstm``,
of whose steps nobody knows the number."""
