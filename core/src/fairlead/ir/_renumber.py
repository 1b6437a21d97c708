"""A graph in canonical numbering: as its fingerprint sees it, but still a graph that can be shown."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import msgspec

from fairlead.ir._model import DimExpr, Graph, Node, Symbol, Token, Value
from fairlead.ir._types import TensorType, Type
from fairlead.ir.dims import rename

replace = msgspec.structs.replace


def renumbered(graph: Graph) -> Graph:
    """The graph with values numbered and symbols named in order of appearance, without names, lines, ordinals."""
    # In the order of their sources: the order in which an expression shows its symbols depends on their names.
    ordered = sorted(graph.symbols, key=lambda s: (s.source[0], -1 if s.source[1] is None else s.source[1]))
    names = {s.name: f"s{i}" for i, s in enumerate(ordered)}
    renamed = functools.cache(lambda type_: _renamed(type_, names))
    values: dict[int, Value] = {}

    def define(value: Value) -> Value:
        values[value.id] = Value(len(values), renamed(value.type))
        return values[value.id]

    def argument(arg: Any) -> Any:
        match arg:
            case Value(id=id_):
                return values[id_]
            case DimExpr(expr=expr):
                return DimExpr(str(rename(expr, names)))
            case Token(kind="device", name=name):
                return Token("device", name.partition(":")[0])
            case tuple():
                return tuple(map(argument, arg))
        return arg

    def node(given: Node) -> Node:
        args = tuple(map(argument, given.args))
        results = tuple(None if r is None else define(r) for r in given.results)
        return Node(given.op, args, results, None, tuple(map(renumbered, given.regions)))

    return Graph(
        name="",
        kind=graph.kind,
        inputs=tuple(replace(i, value=define(i.value), name="") for i in graph.inputs),
        nodes=tuple(map(node, graph.nodes)),
        outputs=tuple(replace(o, value=argument(o.value)) for o in graph.outputs),
        symbols=tuple(Symbol(names[s.name], s.lo, s.hi, s.source) for s in ordered),
    )


def _renamed(type_: Type, names: Mapping[str, str]) -> Type:
    if not isinstance(type_, TensorType):
        return type_
    strides = None if type_.strides is None else tuple(rename(d, names) for d in type_.strides)
    shape = tuple(rename(d, names) for d in type_.shape)
    return TensorType(type_.dtype, shape, strides, type_.device.partition(":")[0])
