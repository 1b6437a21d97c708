"""The StableHLO of a graph, for people and for other tools."""

from __future__ import annotations

from collections.abc import Mapping

from fairlead.ir import Graph

__all__ = ["text"]


def text(graph: Graph, sizes: Mapping[str, int] | None = None) -> str:
    """The graph as the text of a StableHLO module, as it is given to XLA.

    Every node has to be one that the backend supports. ``sizes`` gives each symbol a value, and each integer input
    under the name ``inN``, N being its index. Weights are inputs. Indices that may be out of range are checked by one
    more result: a vector of booleans.

    >>> from fairlead.ir import DType, Input, Kind, Node, Output, TensorType, Value
    >>> x, y = Value(0, TensorType(DType.f32, ("b", 3))), Value(1, TensorType(DType.f32, ("b", 3)))
    >>> node = Node("aten.neg.default", (x,), (y,))
    >>> module = text(Graph("g", Kind.inference, (Input(x),), (node,), (Output(y),)), {"b": 2})
    >>> "stablehlo.negate" in module, "tensor<2x3xf32>" in module
    (True, True)
    """
    from fairlead_openxla._lower import write

    found: str = write(graph, sizes or {}, {}).lowered.as_text()
    return found
