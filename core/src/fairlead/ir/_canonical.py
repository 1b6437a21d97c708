"""The canonical form of a graph, which leaves out what does not change its meaning, and its hash."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from fairlead.ir._model import IR_VERSION, DimExpr, Graph, Node, Symbol, TensorType, Type, Value
from fairlead.ir._wire import encode_graph
from fairlead.ir.dims import rename

replace = msgspec.structs.replace


def fingerprint(graph: Graph) -> str:
    """SHA-256, in hexadecimal, of a verified graph's canonical form: the base of cache keys.

    Names (of the graph, its inputs and its symbols), the numbers of values and source lines do not enter it; every op,
    argument, type, role, edge, range and device does. Equal across processes and machines for one `IR_VERSION`.
    """
    prefix = "fairlead graph {}.{}\0".format(*IR_VERSION).encode()
    return hashlib.sha256(prefix + encode_graph(_canonical(graph))).hexdigest()


def _canonical(graph: Graph) -> Graph:
    # In the order of their sources: the order in which an expression shows its symbols depends on their names.
    ordered = sorted(graph.symbols, key=lambda s: (s.source[0], -1 if s.source[1] is None else s.source[1]))
    names = {s.name: f"s{i}" for i, s in enumerate(ordered)}
    renamed = functools.cache(lambda type_: _renamed_type(type_, names))
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
            case tuple():
                return tuple(map(argument, arg))
        return arg

    inputs = tuple(replace(i, value=define(i.value), name="") for i in graph.inputs)
    nodes = []
    for node in graph.nodes:
        args = tuple(map(argument, node.args))
        nodes.append(Node(node.op, args, tuple(None if r is None else define(r) for r in node.results)))
    return Graph(
        name="",
        kind=graph.kind,
        inputs=inputs,
        nodes=tuple(nodes),
        outputs=tuple(replace(o, value=argument(o.value)) for o in graph.outputs),
        symbols=tuple(Symbol(names[s.name], s.lo, s.hi, s.source) for s in ordered),
    )


def _renamed_type(type_: Type, names: Mapping[str, str]) -> Type:
    if not names or not isinstance(type_, TensorType):
        return type_
    strides = None if type_.strides is None else tuple(rename(d, names) for d in type_.strides)
    return TensorType(type_.dtype, tuple(rename(d, names) for d in type_.shape), strides, type_.device)
