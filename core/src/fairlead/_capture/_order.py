"""The order of a graph's inputs and outputs, which differs between releases of torch for one program.

Dynamo lists inputs, and AOTAutograd what the backward needs, in orders of their own, some values twice. Here inputs
stand in the order in which the nodes read them, and what is saved in the order in which it is computed, once.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import torch

from fairlead.ir import Graph, Node, Output, Role, ScalarType, Value

__all__ = ["Arrangement", "arranged"]

_ALIASES = frozenset({"aten.detach.default", "aten.alias.default"})


class Arrangement(NamedTuple):
    """A graph, and how torch's call fits it.

    ``inputs`` has for each input of the graph, constants aside, the index of torch's; ``outputs`` for each of torch's
    outputs the index of the graph's.
    """

    graph: Graph
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    @property
    def is_identity(self) -> bool:
        """Whether torch's call fits as it is."""
        return all(i == k for k, i in enumerate(self.inputs)) and all(i == k for k, i in enumerate(self.outputs))


def _origins(graph: Graph) -> dict[int, int]:
    """For each value that is but another name of one, the id of that one.

    So is a copy that is saved, of what an op computed and nobody gets who could write to it.
    """
    found: dict[int, int] = {}
    shown: dict[int, int] = {}
    for node in graph.nodes:
        if node.args and isinstance(node.args[0], Value) and _shows(node.op):
            source = node.args[0].id
            shown.update((r.id, shown.get(source, source)) for r in node.results if r is not None)
            if node.op in _ALIASES:
                found[node.result.id] = found.get(source, source)
    writable = {i.value.id for i in graph.inputs}
    for output in graph.outputs:
        if output.role is not Role.saved and isinstance(output.value, Value):
            writable.add(shown.get(output.value.id, output.value.id))
    for node in graph.nodes:
        copied = node.args[0] if node.op == "aten.clone.default" else None
        if not isinstance(copied, Value) or copied.type != node.result.type or node.result.id in writable:
            continue
        source = found.get(copied.id, copied.id)
        if shown.get(source, source) == source and source not in writable:
            found[node.result.id] = source
    return found


@functools.cache
def _shows(op: str) -> bool:
    """Whether an op's result may show the memory of its first operand; of an op that torch does not know, it may."""
    namespace, name, overload = (*op.split("."), "default")[:3]
    try:
        schema = getattr(getattr(getattr(torch.ops, namespace), name), overload)._schema
    except (AttributeError, RuntimeError):
        return True
    return any(r.alias_info is not None for r in schema.returns)


def arranged(graph: Graph, twins: Mapping[int, int], forward: Sequence[int] = ()) -> Arrangement:
    """A graph as torch made it, in the order that all releases share.

    ``twins``: inputs that always are the tensor of another one, which takes their place. ``forward``: of a backward
    graph, the ``inputs`` of its forward, whose gradients follow the same order.
    """
    graph = _without_twins(graph, twins)
    names = _origins(graph)
    inputs = _by_first_use(graph, names, frozenset(twins))
    new = {old: index for index, old in enumerate(inputs)}
    outputs, picks = _gradients(graph, forward) if forward else _outputs(graph, names, new)
    symbols = tuple(msgspec.structs.replace(s, source=(new[s.source[0]], s.source[1])) for s in graph.symbols)
    whole = msgspec.structs.replace(
        graph,
        inputs=tuple(graph.inputs[i] for i in inputs),
        outputs=tuple(_moved(o, new) for o in outputs),
        symbols=symbols,
    )
    given = tuple(i for i in inputs if graph.inputs[i].role is not Role.constant)
    return Arrangement(whole, given, picks)


def _without_twins(graph: Graph, twins: Mapping[int, int]) -> Graph:
    if not twins:
        return graph
    values = {graph.inputs[a].value.id: graph.inputs[b].value for a, b in twins.items()}
    nodes = tuple(msgspec.structs.replace(n, args=_replaced(n.args, values)) for n in graph.nodes)
    outputs = tuple(msgspec.structs.replace(o, value=_replaced(o.value, values)) for o in graph.outputs)
    symbols = tuple(
        msgspec.structs.replace(s, source=(twins.get(s.source[0], s.source[0]), s.source[1])) for s in graph.symbols
    )
    return msgspec.structs.replace(graph, nodes=nodes, outputs=outputs, symbols=symbols)


def _replaced(argument: Any, values: Mapping[int, Value]) -> Any:
    if isinstance(argument, tuple):
        return tuple(_replaced(a, values) for a in argument)
    return values.get(argument.id, argument) if isinstance(argument, Value) else argument


def _by_first_use(graph: Graph, names: Mapping[int, int], left_out: frozenset[int]) -> tuple[int, ...]:
    """The inputs as the nodes first read them: integers before, constants of the graph after."""
    use: dict[int, int] = {}
    for node in graph.nodes:
        if node.op not in _ALIASES:
            for value in node.operands():
                use.setdefault(names.get(value.id, value.id), len(use))
    for value in graph.output_values():
        use.setdefault(names.get(value.id, value.id), len(use))

    def key(index: int) -> tuple[int, int, int]:
        item = graph.inputs[index]
        if isinstance(item.value.type, ScalarType):
            return 0, 0, index
        if item.role is Role.constant:
            return 2, 0, index
        return 1, use.get(item.value.id, len(use)), index

    return tuple(sorted((i for i in range(len(graph.inputs)) if i not in left_out), key=key))


def _outputs(
    graph: Graph, names: Mapping[int, int], new: Mapping[int, int]
) -> tuple[tuple[Output, ...], tuple[int, ...]]:
    """Mutations in the order of their inputs, what the user gets, and what is saved: once, and as it is computed."""
    defined = {v.id: v for v in (*(i.value for i in graph.inputs), *_results(graph.nodes))}
    places = {id_: place for place, id_ in enumerate(defined)}
    keys: list[tuple[int, int]] = []
    for index, output in enumerate(graph.outputs):
        match output:
            case Output(role=Role.mutation, target=int(target)):
                keys.append((0, new[target]))
            case Output(role=Role.saved, value=Value(id=id_)):
                keys.append((2, places[names.get(id_, id_)]))
            case Output(role=Role.saved):
                keys.append((3, index))
            case _:
                keys.append((1, index))
    at = {key: place for place, key in enumerate(sorted(set(keys)))}
    outputs = {key: _original(o, names, defined) for key, o in zip(keys, graph.outputs, strict=True)}
    return tuple(outputs[key] for key in at), tuple(at[key] for key in keys)


def _original(output: Output, names: Mapping[int, int], defined: Mapping[int, Value]) -> Output:
    """What is saved by another name, by its own."""
    if output.role is not Role.saved or not isinstance(output.value, Value):
        return output
    return msgspec.structs.replace(output, value=defined[names.get(output.value.id, output.value.id)])


def _gradients(graph: Graph, forward: Sequence[int]) -> tuple[tuple[Output, ...], tuple[int, ...]]:
    order = (*forward, *range(len(forward), len(graph.outputs)))
    picks = sorted(range(len(order)), key=order.__getitem__)
    return tuple(graph.outputs[i] for i in order), tuple(picks)


def _results(nodes: tuple[Node, ...]) -> list[Value]:
    return [r for n in nodes for r in n.results if r is not None]


def _moved(output: Output, new: Mapping[int, int]) -> Output:
    target = None if output.target is None else new[output.target]
    aliases = None if output.aliases is None else new[output.aliases]
    return msgspec.structs.replace(output, target=target, aliases=aliases)
