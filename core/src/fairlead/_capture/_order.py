"""The order of a graph's inputs, which differs between releases of Dynamo for one program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from fairlead.ir import Graph, Output, Role, ScalarType

__all__ = ["by_first_use", "permuted"]


def by_first_use(graph: Graph) -> tuple[int, ...]:
    """The inputs in the order in which the nodes first read them: integers before, constants of the graph after."""
    use: dict[int, int] = {}
    for node in graph.nodes:
        for value in node.operands():
            use.setdefault(value.id, len(use))
    for value in graph.output_values():
        use.setdefault(value.id, len(use))

    def key(index: int) -> tuple[int, int, int]:
        item = graph.inputs[index]
        if isinstance(item.value.type, ScalarType):
            return 0, 0, index
        if item.role is Role.constant:
            return 2, 0, index
        return 1, use.get(item.value.id, len(use)), index

    return tuple(sorted(range(len(graph.inputs)), key=key))


def permuted(graph: Graph, order: Sequence[int]) -> Graph:
    """The graph with its inputs in another order; ``order`` has the old index of each."""
    new = {old: index for index, old in enumerate(order)}
    outputs = tuple(_moved(o, new) for o in graph.outputs)
    symbols = tuple(msgspec.structs.replace(s, source=(new[s.source[0]], s.source[1])) for s in graph.symbols)
    return msgspec.structs.replace(
        graph, inputs=tuple(graph.inputs[i] for i in order), outputs=outputs, symbols=symbols
    )


def _moved(output: Output, new: Mapping[int, int]) -> Output:
    target = None if output.target is None else new[output.target]
    aliases = None if output.aliases is None else new[output.aliases]
    return msgspec.structs.replace(output, target=target, aliases=aliases)
