"""What kind of a training graph it is."""

from __future__ import annotations

from fairlead.ir import Graph, Kind

_GRADIENT = "aten.convolution_backward.default"
_CONVOLUTIONS = frozenset({"aten.convolution.default", _GRADIENT})
_PRODUCTS = frozenset(
    {"nn.scaled_dot_product_attention", "nn.scaled_dot_product_attention_backward"}
    | {f"aten.{name}.default" for name in ("linear", "mm", "bmm", "addmm", "baddbmm")}
)


def trains_convolutions(graph: Graph) -> bool:
    """Whether a graph is of a training step, or a whole one, with more convolutions than products of matrices.

    Backends without a gradient of convolutions that is as fast as torch's leave such graphs to others: between Parts
    that take turns with torch's ops, little is left to gain.

    >>> from fairlead.ir import Builder
    >>> def step(kind):
    ...     builder = Builder("g", kind)
    ...     x, w = builder.input("f32[1, 3, 8, 8]"), builder.input("f32[4, 3, 3, 3]")
    ...     given = (x, w, None, (1, 1), (0, 0), (1, 1), False, (0, 0), 1)
    ...     builder.output(builder.op("aten.convolution.default", *given, to="f32[1, 4, 6, 6]"))
    ...     return builder.graph()
    >>> trains_convolutions(step("forward")), trains_convolutions(step("inference"))
    (True, False)
    """
    if graph.kind == Kind.inference and not any(n.op == _GRADIENT for n in graph.nodes):
        return False
    products = sum(node.op in _PRODUCTS for node in graph.nodes)
    return sum(node.op in _CONVOLUTIONS for node in graph.nodes) > products
