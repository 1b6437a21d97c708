"""Some nodes of a graph as a graph of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence

import msgspec

from fairlead.ir import Graph, Input, Node, Output, Role, Symbol, TensorType, Value, symbols_in

__all__ = ["subgraph"]


def subgraph(graph: Graph, nodes: Sequence[Node], name: str) -> Graph:
    """Some nodes of a graph as a graph of their own, in which values keep their ids.

    What the nodes read and do not make are its inputs; what others or the graph's outputs read are its outputs. Those
    are ``saved`` where nothing but the backward reads them, a ``mutation`` where all that becomes of them is that they
    are written to one of the inputs, whose old contents nothing else reads, and otherwise ``intermediate``. An input is
    added where a symbol could not be read otherwise.

    >>> from fairlead.ir import Builder
    >>> builder = Builder("g", "inference")
    >>> x = builder.input("f32[2]")
    >>> y = builder.op("aten.abs.default", builder.op("aten.neg.default", x))
    >>> builder.output(y)
    >>> graph = builder.graph()
    >>> part = subgraph(graph, graph.nodes[1:], "g_1")
    >>> [i.value.id for i in part.inputs], [v.id for v in part.output_values()]
    ([1], [2])
    """
    made = {r.id: r for n in nodes for r in n.results if r is not None}
    inside = {id(n) for n in nodes}
    read = {v.id for n in graph.nodes if id(n) not in inside for v in n.operands()}
    returned = {v.id for v in graph.output_values()}
    seen = read | {o.value.id for o in graph.outputs if isinstance(o.value, Value) and o.role is not Role.saved}
    given = {i.value.id: i for i in graph.inputs}
    inputs: dict[int, Input] = {}
    for node in nodes:
        for value in node.operands():
            if value.id not in made and value.id not in inputs:
                inputs[value.id] = given.get(value.id) or Input(value, Role.intermediate)
    listed = list(inputs.values())
    targets = _targets(graph, read, list(inputs))
    outputs = tuple(
        Output(v, Role.mutation, target=targets[v.id])
        if v.id in targets
        else Output(v, Role.intermediate if v.id in seen else Role.saved)
        for v in made.values()
        if v.id in read or v.id in returned
    )
    symbols = _local_symbols(graph, nodes, listed)
    return Graph(name, graph.kind, tuple(listed), tuple(nodes), outputs, symbols)


def _targets(graph: Graph, read: Container[int], inputs: Sequence[int]) -> dict[int, int]:
    """By the id of a value that is but written to one of these inputs, which are ids too, the index of that input."""
    places = {id_: index for index, id_ in enumerate(inputs)}
    times = Counter(value.id for value in graph.output_values())
    found: dict[int, int] = {}
    for output in graph.outputs:
        if output.target is None or not isinstance(output.value, Value):
            continue
        target = graph.inputs[output.target].value.id
        is_its_own = target not in read and not times[target]
        if target in places and is_its_own and times[output.value.id] == 1 and output.value.id not in read:
            found[output.value.id] = places[target]
    return found


def _local_symbols(graph: Graph, nodes: Sequence[Node], inputs: list[Input]) -> tuple[Symbol, ...]:
    """Symbols that the nodes use, read from the Part's own inputs; an input is added where none shows the symbol."""
    found: dict[str, Symbol] = {}
    while True:
        used = symbols_in(*nodes, *(i.value for i in inputs))
        new = [s for s in graph.symbols if s.name in used and s.name not in found]
        if not new:
            return tuple(found[s.name] for s in graph.symbols if s.name in found)
        found.update((s.name, msgspec.structs.replace(s, source=_source(graph, s, inputs))) for s in new)


def _source(graph: Graph, symbol: Symbol, inputs: list[Input]) -> tuple[int, int | None]:
    for index, item in enumerate(inputs):
        if isinstance(item.value.type, TensorType) and symbol.name in item.value.type.shape:
            return index, item.value.type.shape.index(symbol.name)
    origin, axis = graph.inputs[symbol.source[0]], symbol.source[1]
    ids = [i.value.id for i in inputs]
    if origin.value.id not in ids:
        inputs.append(origin)
        return len(ids), axis
    return ids.index(origin.value.id), axis
