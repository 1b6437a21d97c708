"""The order of a graph's inputs and outputs, which differs between releases of torch for one program.

Dynamo lists inputs, and AOTAutograd what the backward needs, in orders of their own, some values twice. Here inputs
stand in the order in which the nodes read them, and what is saved in the order in which it is computed, once. That is
told from the canonical graph: which copies and other names a traced one has differs between releases too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from fairlead.ir import Graph, Node, Output, Role, ScalarType, Value, dims
from fairlead.passes import canonicalize, recognize_composites, substitute
from fairlead.passes._rewrite import with_values

__all__ = ["Arrangement", "arranged"]


class Arrangement(NamedTuple):
    """A graph, the same in canonical form, and how torch's call fits both.

    ``inputs`` has for each input of the graph, constants aside, the index of torch's; ``outputs`` for each of torch's
    outputs the index of the graph's.
    """

    graph: Graph
    canonical: Graph
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    @property
    def is_identity(self) -> bool:
        """Whether torch's call fits as it is."""
        return all(i == k for k, i in enumerate(self.inputs)) and all(i == k for k, i in enumerate(self.outputs))


def arranged(graph: Graph, twins: Mapping[int, int], forward: Sequence[int] = ()) -> Arrangement:
    """A graph as torch made it, in the order that all releases share.

    ``twins``: inputs that always are the tensor of another one, which takes their place. ``forward``: of a backward
    graph, the ``inputs`` of its forward, whose gradients follow the same order.
    """
    graph = _without_twins(graph, twins)
    canonical = recognize_composites(canonicalize(graph))
    inputs = _by_first_use(canonical, frozenset(twins))
    new = {old: index for index, old in enumerate(inputs)}
    order = _gradients(graph, forward) if forward else _outputs(graph, canonical, new)
    given = tuple(i for i in inputs if graph.inputs[i].role is not Role.constant)
    traced, canonical = (_permuted(g, new, order.chosen) for g in (graph, canonical))
    return Arrangement(traced, canonical, given, order.picks)


def _permuted(graph: Graph, new: Mapping[int, int], outputs: Sequence[int]) -> Graph:
    """The graph with the inputs at new places, and only these of its outputs, in this order."""
    return msgspec.structs.replace(
        graph,
        inputs=tuple(graph.inputs[i] for i in new),
        outputs=tuple(_moved(graph.outputs[i], new) for i in outputs),
        symbols=tuple(msgspec.structs.replace(s, source=(new[s.source[0]], s.source[1])) for s in graph.symbols),
    )


class _Order(NamedTuple):
    """Which of torch's outputs a graph has, in its order; and for each of torch's where it is among those."""

    chosen: tuple[int, ...]
    picks: tuple[int, ...]


def _without_twins(graph: Graph, twins: Mapping[int, int]) -> Graph:
    if not twins:
        return graph
    values = {graph.inputs[a].value.id: graph.inputs[b].value for a, b in twins.items()}
    nodes = tuple(msgspec.structs.replace(n, args=substitute(n.args, values)) for n in graph.nodes)
    symbols = tuple(
        msgspec.structs.replace(s, source=(twins.get(s.source[0], s.source[0]), s.source[1])) for s in graph.symbols
    )
    return msgspec.structs.replace(graph, nodes=nodes, outputs=with_values(graph.outputs, values), symbols=symbols)


def _by_first_use(graph: Graph, left_out: frozenset[int]) -> tuple[int, ...]:
    """The inputs as the nodes first read them; before them the integers as shapes have them, constants after."""
    use: dict[int, int] = {}
    for value in (*(v for node in graph.nodes for v in node.operands()), *graph.output_values()):
        use.setdefault(value.id, len(use))

    def read(index: int) -> tuple[bool, int, int]:
        item = graph.inputs[index]
        return item.role is Role.constant, use.get(item.value.id, len(use)), index

    given = sorted((i for i in range(len(graph.inputs)) if i not in left_out), key=read)
    integers = [i for i in given if isinstance(graph.inputs[i].value.type, ScalarType)]
    tensors = [i for i in given if i not in integers]
    sizes = [d for i in tensors for d in graph.inputs[i].value.tensor.shape]
    shown = {name: place for place, d in reversed(list(enumerate(sizes))) for name in dims.free_symbols(d)}
    names = {s.source[0]: s.name for s in graph.symbols if s.source[1] is None}
    return (*sorted(integers, key=lambda i: shown.get(names.get(i, ""), len(sizes))), *tensors)


def _outputs(traced: Graph, canonical: Graph, new: Mapping[int, int]) -> _Order:
    """Mutations in the order of their inputs, what the user gets, and what is saved: once, and as it is computed."""
    values = (*(i.value for i in canonical.inputs), *_results(canonical.nodes))
    places = {value.id: place for place, value in enumerate(values)}
    keys: list[tuple[int, int, str]] = []
    for index, (output, found) in enumerate(zip(traced.outputs, canonical.outputs, strict=True)):
        match output, found.value:
            case Output(role=Role.mutation, target=int(target)), _:
                keys.append((0, new[target], ""))
            case Output(role=Role.saved, value=Value(type=type_)), Value(id=id_):
                keys.append((2, places[id_], str(type_)))
            case Output(role=Role.saved), _:
                keys.append((3, index, ""))
            case _:
                keys.append((1, index, ""))
    first = {key: index for index, key in reversed(list(enumerate(keys)))}
    at = {key: place for place, key in enumerate(sorted(first))}
    return _Order(tuple(first[key] for key in at), tuple(at[key] for key in keys))


def _gradients(graph: Graph, forward: Sequence[int]) -> _Order:
    order = (*forward, *range(len(forward), len(graph.outputs)))
    return _Order(order, tuple(sorted(range(len(order)), key=order.__getitem__)))


def _results(nodes: tuple[Node, ...]) -> list[Value]:
    return [r for n in nodes for r in n.results if r is not None]


def _moved(output: Output, new: Mapping[int, int]) -> Output:
    target = None if output.target is None else new[output.target]
    aliases = None if output.aliases is None else new[output.aliases]
    return msgspec.structs.replace(output, target=target, aliases=aliases)
