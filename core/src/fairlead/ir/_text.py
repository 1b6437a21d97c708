"""The text form of a graph: what tests, docs and error messages show. `fairlead.ir.parse` reads it back."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator

from fairlead.ir._model import Argument, Complex, DimExpr, Graph, Location, Module, Node, Output, Symbol, Token, Value
from fairlead.ir._types import ScalarType, Type

_BARE = re.compile(r"[A-Za-z0-9_.$-]+")
_BARE_TOKEN = re.compile(r"[A-Za-z0-9_.:-]+")


def to_text(content: Graph | Module, *, locations: bool = False) -> str:
    """A graph or module as text, one line a node; with ``locations`` each node ends in its source line."""
    if isinstance(content, Module):
        return "\n".join([*_header(content), *("\n" + to_text(g, locations=locations) for g in content.graphs)])
    return "\n".join(_graph(content, "graph", "", locations))


def _header(module: Module) -> Iterator[str]:
    yield "fairlead-ir {}.{}".format(*module.ir_version)
    for name, version in module.producer.items():
        yield f"producer {json.dumps(name)} {json.dumps(version)}"
    for op, use in module.ops.items():
        yield f"op {op} {use.version} {json.dumps(use.signature)}"


def _graph(graph: Graph, keyword: str, indent: str, locations: bool) -> Iterator[str]:
    for symbol in graph.symbols:
        yield indent + _symbol(symbol)
    yield f"{indent}{keyword} @{name_text(graph.name)} {graph.kind} {{"
    for i in graph.inputs:
        yield f"{indent}  in {_value(i.value)} {i.role} {json.dumps(i.name)} : {type_text(i.value.type)}"
    for node in graph.nodes:
        line = f"{indent}  {_node(node)}"
        if locations and node.location:
            line += f" loc({_location(node.location)})"
        if not node.regions:
            yield line
            continue
        yield line + " {"
        for region in node.regions:
            yield from _graph(region, "region", indent + "    ", locations)
        yield indent + "  }"
    for output in graph.outputs:
        yield f"{indent}  {_output(output)}"
    yield indent + "}"


def name_text(name: str) -> str:
    """The name of a graph as text: quoted where it is not one plain word."""
    return name if _BARE.fullmatch(name) else json.dumps(name)


def node_text(node: Node) -> str:
    """One node as text: its results, op, arguments and result types, and how many regions it has."""
    return _node(node) + (f" {{{len(node.regions)} regions}}" if node.regions else "")


def _node(node: Node) -> str:
    names = ", ".join(["_" if r is None else _value(r) for r in node.results])
    types = ", ".join(["_" if r is None else type_text(r.type) for r in node.results])
    call = f"{node.op}({', '.join([_argument(a) for a in node.args])})"
    return f"{names} = {call} : {types}" if node.results else call


def type_text(type_: Type) -> str:
    """A type as text: dtype and shape, strides where they are not contiguous, the device where it is not the CPU."""
    if isinstance(type_, ScalarType):
        return str(type_.dtype)
    text = f"{type_.dtype}[{_dims(type_.shape)}]"
    if type_.strides is not None:
        text += f" strides[{_dims(type_.strides)}]"
    return text if type_.device == "cpu" else f"{text} @{type_.device}"


def _dims(shape: tuple[int | str, ...]) -> str:
    return ", ".join(map(str, shape))


def _symbol(s: Symbol) -> str:
    index, dim = s.source
    origin = f"in{index}" if dim is None else f"in{index}.dim{dim}"
    return f"symbol {s.name} in [{s.lo}, {'inf' if s.hi is None else s.hi}] from {origin}"


def _value(v: Value) -> str:
    return f"%{v.id}"


def _location(at: Location) -> str:
    text = f"{json.dumps(at.file)}:{at.line}"
    if at.function:
        text += f" in {json.dumps(at.function)}"
    return text + (f" at {json.dumps(at.module_path)}" if at.module_path else "")


def _output(o: Output) -> str:
    text = f"out {_argument(o.value)} {o.role}"
    if o.target is not None:
        text += f" -> in{o.target}"
    if o.aliases is not None:
        text += f" aliases in{o.aliases}"
    return text


def _argument(a: Argument) -> str:
    match a:
        case Value():
            return _value(a)
        case None:
            return "none"
        case bool():
            return "true" if a else "false"
        case float():
            return _float(a)
        case int():
            return str(a)
        case str():
            return json.dumps(a)
        case tuple():
            return f"[{', '.join(map(_argument, a))}]"
        case DimExpr(expr=expr):
            return f"<{expr}>"
        case Token(kind=kind, name=name):
            return f"#{kind}<{name if _BARE_TOKEN.fullmatch(name) else json.dumps(name)}>"
        case Complex(re=re, im=im):
            return f"#complex<{_float(re)}, {_float(im)}>"
    raise TypeError(f"{type(a).__name__} is no argument of a node")


def _float(x: float) -> str:
    if math.isnan(x):
        return "nan"
    if math.isinf(x):
        return "inf" if x > 0 else "-inf"
    return repr(x)
