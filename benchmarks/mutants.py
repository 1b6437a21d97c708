"""Every single change of meaning that can be made to a graph, and changes that leave its meaning alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from fairlead.ir import (
    Complex,
    DimExpr,
    DType,
    Graph,
    Input,
    Kind,
    Location,
    Node,
    Output,
    Role,
    ScalarType,
    Symbol,
    TensorType,
    Token,
    Value,
    dims,
)

T = TypeVar("T")
Mutants = Iterator[tuple[str, Graph]]
replace = msgspec.structs.replace


def mutants(graph: Graph) -> Mutants:
    """Graphs that differ from this one in one place each, with the name of what was changed."""
    yield "kind", replace(graph, kind=next(k for k in Kind if k is not graph.kind))
    yield from _in(graph, "inputs", graph.inputs, _inputs, Input(Value(-7, ScalarType(DType.i64))))
    yield from _in(graph, "outputs", graph.outputs, lambda o: _outputs(o, graph), Output(None))
    yield from _in(graph, "symbols", graph.symbols, _symbols, None)
    known, users = [i.value for i in graph.inputs], graph.users()
    for index, node in enumerate(graph.nodes):
        unused = not any(r and r.id in users for r in node.results)
        for what, changed in _nodes(node, known, unused):
            nodes = (*graph.nodes[:index], changed, *graph.nodes[index + 1 :])
            yield what, replace(graph, nodes=nodes)
        known += [r for r in node.results if r is not None]
        if unused:
            yield "node removed", replace(graph, nodes=(*graph.nodes[:index], *graph.nodes[index + 1 :]))


def _in(
    graph: Graph, field: str, items: Sequence[T], changes: Callable[[T], Iterator[tuple[str, T]]], more: Any
) -> Mutants:
    for index, item in enumerate(items):
        for what, changed in changes(item):
            yield f"{field}: {what}", replace(graph, **{field: (*items[:index], changed, *items[index + 1 :])})
    if more is not None:
        yield f"{field}: one more", replace(graph, **{field: (*items, more)})
    if items and field == "outputs":
        yield f"{field}: one fewer", replace(graph, **{field: tuple(items[:-1])})


def _inputs(one: Input) -> Iterator[tuple[str, Input]]:
    yield "role", replace(one, role=Role.buffer if one.role is not Role.buffer else Role.user)
    for what, type_ in _types(one.value.type):
        yield what, replace(one, value=Value(one.value.id, type_))


def _outputs(one: Output, graph: Graph) -> Iterator[tuple[str, Output]]:
    yield "role", replace(one, role=Role.saved if one.role is not Role.saved else Role.user)
    yield "target", replace(one, target=0 if one.target is None else one.target + 1)
    yield "alias", replace(one, aliases=0 if one.aliases is None else one.aliases + 1)
    yield "value", replace(one, value=None if one.value is not None else 0)
    if isinstance(one.value, int):
        yield "number", replace(one, value=one.value + 1)
    others = [i.value for i in graph.inputs if i.value is not one.value]
    if isinstance(one.value, Value) and others:
        yield "edge", replace(one, value=others[-1])


def _symbols(one: Symbol) -> Iterator[tuple[str, Symbol]]:
    yield "lower end", replace(one, lo=one.lo - 1)
    yield "upper end", replace(one, hi=2**40 if one.hi is None else one.hi + 1)
    yield "no upper end", replace(one, hi=None if one.hi is not None else 7)
    index, dim = one.source
    yield "source", replace(one, source=(index + 1, dim))
    yield "dimension", replace(one, source=(index, 5 if dim is None else dim + 1))


def _nodes(node: Node, known: list[Value], unused: bool) -> Iterator[tuple[str, Node]]:
    yield "op", replace(node, op=node.op + "x")
    for index, arg in enumerate(node.args):
        for what, changed in _arguments(arg, known):
            yield what, replace(node, args=(*node.args[:index], changed, *node.args[index + 1 :]))
    yield "argument added", replace(node, args=(*node.args, None))
    yield "argument removed", replace(node, args=node.args[:-1] if node.args else (0,))
    for index, result in enumerate(node.results):
        changes: list[tuple[str, Value | None]] = []
        if result is None:
            changes.append(("result", Value(-9, ScalarType(DType.i64))))
        elif unused:
            changes.append(("result", None))
        if result:
            changes += [(f"result {what}", Value(result.id, t)) for what, t in _types(result.type)]
        for what, changed_result in changes:
            results = (*node.results[:index], changed_result, *node.results[index + 1 :])
            yield what, replace(node, results=results)
    yield "result added", replace(node, results=(*node.results, None))
    for index, region in enumerate(node.regions):
        for what, changed_region in mutants(region):
            regions = (*node.regions[:index], changed_region, *node.regions[index + 1 :])
            yield f"region: {what}", replace(node, regions=regions)
    yield "region added", replace(node, regions=(*node.regions, Graph("", Kind.region, (), (), ())))
    if node.regions:
        yield "region removed", replace(node, regions=node.regions[:-1])


def _arguments(arg: Any, known: list[Value]) -> Iterator[tuple[str, Any]]:
    yield "other kind", None if arg is not None else 0
    match arg:
        case Value():
            yield from (("edge", v) for v in known[-3:] if v.id != arg.id)
        case bool():
            yield "bool", not arg
            yield "1 for true", int(arg)
        case int():
            yield "int", arg + 1 if arg < 2**63 - 1 else arg - 1
            yield "float for int", float(arg)
        case float():
            yield "float", 0.5 if arg != 0.5 else 0.25
            if arg == 0:
                yield "sign of zero", -arg
        case str():
            yield "string", arg + "x"
        case DimExpr(expr=expr):
            yield "expression", DimExpr(str(dims.add(expr, 1)))
        case Token(kind=kind, name=name):
            yield "token", Token(kind, name.partition(":")[0] + "x")
            yield "kind of token", Token("layout" if kind != "layout" else "dtype", name)
        case Complex(re=re, im=im):
            yield "real part", Complex(0.5 if re != 0.5 else 0.25, im)
            yield "imaginary part", Complex(re, 0.5 if im != 0.5 else 0.25)
        case tuple():
            yield "longer list", (*arg, 0)
            yield "list of a list", (arg,)
            for index, item in enumerate(arg):
                for what, changed in _arguments(item, known):
                    yield f"list: {what}", (*arg[:index], changed, *arg[index + 1 :])


def _types(type_: TensorType | ScalarType) -> Iterator[tuple[str, TensorType | ScalarType]]:
    yield "dtype", replace(type_, dtype=DType.u8 if type_.dtype is not DType.u8 else DType.i8)
    if isinstance(type_, ScalarType):
        yield "a tensor", TensorType(type_.dtype, ())
        return
    yield "device", replace(type_, device="mps" if type_.device.partition(":")[0] != "mps" else "cpu")
    yield "rank", replace(type_, shape=(*type_.shape, 1))
    for field, items in (("shape", type_.shape), ("strides", type_.strides or ())):
        for index, dim in enumerate(items):
            changed = dims.add(dim, 1)
            yield field, replace(type_, **{field: (*items[:index], changed, *items[index + 1 :])})
    if type_.strides is None:
        yield "strides", replace(type_, strides=tuple(range(2, 2 + type_.rank)))
    else:
        yield "strides", replace(type_, strides=None)


def disguised(graph: Graph, names: dict[str, str] | None = None) -> Graph:
    """The same graph with other names, other numbers, other source lines and symbols declared in another order."""
    names = {**(names or {}), **{s.name: f"z{len(names or {}) + 40 - i}" for i, s in enumerate(graph.symbols)}}

    def value(v: Value) -> Value:
        if isinstance(v.type, ScalarType):
            return Value(v.id * 3 + 5, v.type)
        shape = tuple(dims.rename(d, names) for d in v.type.shape)
        strides = None if v.type.strides is None else tuple(dims.rename(d, names) for d in v.type.strides)
        return Value(v.id * 3 + 5, replace(v.type, shape=shape, strides=strides))

    def argument(a: Any) -> Any:
        match a:
            case Value():
                return value(a)
            case DimExpr(expr=expr):
                return DimExpr(str(dims.rename(expr, names)))
            case tuple():
                return tuple(map(argument, a))
        return a

    nodes = tuple(
        Node(
            n.op,
            tuple(map(argument, n.args)),
            tuple(None if r is None else value(r) for r in n.results),
            Location("elsewhere.py", 1),
            tuple(disguised(r, names) for r in n.regions),
        )
        for n in graph.nodes
    )
    return Graph(
        "disguised",
        graph.kind,
        tuple(Input(value(i.value), i.role, f"another {i.name}") for i in graph.inputs),
        nodes,
        tuple(replace(o, value=argument(o.value)) for o in graph.outputs),
        tuple(replace(s, name=names[s.name]) for s in reversed(graph.symbols)),
    )
