"""The graphs of the family ``graph``, each written by a function that is its name."""

from fairlead_conformance._families._graph_shapes import _connections, _kinds, _symbols, _tensors, _weights
from fairlead_conformance._families._graph_shapes._shape import Shape

__all__ = ["SHAPES", "Shape"]

SHAPES: dict[str, Shape] = {
    **_connections.SHAPES,
    **_tensors.SHAPES,
    **_weights.SHAPES,
    **_symbols.SHAPES,
    **_kinds.SHAPES,
}
"""By name, in the order of the cases."""
