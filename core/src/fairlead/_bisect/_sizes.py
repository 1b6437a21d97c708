"""Symbols taken out of a graph: the sizes that they have in one call put in their place."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from fairlead._bisect._candidate import Candidate
from fairlead.ir import Argument, DimExpr, Graph, Node, TensorType, Value, dims, row_major

__all__ = ["sized"]


def sized(candidate: Candidate) -> Candidate:
    """The same on the same inputs, for these sizes alone; itself where it has no symbols."""
    if not candidate.graph.symbols:
        return candidate
    sizes = {symbol.name: str(symbol.read(candidate.inputs)) for symbol in candidate.graph.symbols}
    graph = _Sizes(sizes).graph(candidate.graph)
    return candidate._replace(graph=msgspec.structs.replace(graph, name=f"{graph.name}_sized", symbols=()))


class _Sizes:
    """Puts numbers, as text, in the place of symbols."""

    def __init__(self, sizes: Mapping[str, str]) -> None:
        self._sizes = sizes

    def graph(self, graph: Graph) -> Graph:
        return msgspec.structs.replace(
            graph,
            inputs=tuple(msgspec.structs.replace(i, value=self._value(i.value)) for i in graph.inputs),
            nodes=tuple(map(self._node, graph.nodes)),
            outputs=tuple(msgspec.structs.replace(o, value=self._argument(o.value)) for o in graph.outputs),
        )

    def _node(self, node: Node) -> Node:
        return msgspec.structs.replace(
            node,
            args=tuple(map(self._argument, node.args)),
            results=tuple(None if r is None else self._value(r) for r in node.results),
            regions=tuple(map(self._region, node.regions)),
        )

    def _region(self, region: Graph) -> Graph:
        """A region has symbols of its own as well, which stay."""
        own = {symbol.name for symbol in region.symbols}
        return _Sizes({name: size for name, size in self._sizes.items() if name not in own}).graph(region)

    def _argument(self, argument: Argument) -> Argument:
        match argument:
            case Value():
                return self._value(argument)
            case DimExpr(expr=expr):
                dim = dims.rename(expr, self._sizes)
                return dim if isinstance(dim, int) else DimExpr(dim)
            case tuple():
                return tuple(map(self._argument, argument))
        return argument

    def _value(self, value: Value) -> Value:
        type_ = value.type
        if not isinstance(type_, TensorType):
            return value
        shape = tuple(dims.rename(d, self._sizes) for d in type_.shape)
        strides = None if type_.strides is None else tuple(dims.rename(d, self._sizes) for d in type_.strides)
        if strides == row_major(shape):
            strides = None
        return msgspec.structs.replace(value, type=msgspec.structs.replace(type_, shape=shape, strides=strides))
