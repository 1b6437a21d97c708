"""The text form of a graph: what tests, docs and error messages show."""

from __future__ import annotations

import json
import math

from fairlead.ir._model import (
    Argument,
    Complex,
    DimExpr,
    Graph,
    Node,
    Output,
    ScalarType,
    Symbol,
    Token,
    Type,
    Value,
)


def to_text(graph: Graph, *, locations: bool = False) -> str:
    """The graph as text, one line a node; with ``locations`` each node ends in its source line."""
    lines = [_symbol(s) for s in graph.symbols]
    lines.append(f"graph @{graph.name} {graph.kind} {{")
    for i in graph.inputs:
        lines.append(f"  in {_value(i.value)} {i.role} {json.dumps(i.name)} : {type_text(i.value.type)}")
    lines += [f"  {node_text(n)}" + (f" loc({n.location})" if locations and n.location else "") for n in graph.nodes]
    lines += [f"  {_output(o)}" for o in graph.outputs]
    return "\n".join([*lines, "}"])


def node_text(node: Node) -> str:
    """One node as text: its results, op, arguments and result types."""
    names = ", ".join("_" if r is None else _value(r) for r in node.results)
    types = ", ".join("_" if r is None else type_text(r.type) for r in node.results)
    return f"{names} = {node.op}({', '.join(_argument(a) for a in node.args)}) : {types}"


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


def _output(o: Output) -> str:
    text = f"out {_argument(o.value)} {o.role}"
    if o.target is not None:
        text += f" -> in{o.target}"
    if o.aliases is not None:
        text += f" aliases in{o.aliases}"
    return text


def _argument(a: Argument) -> str:
    match a:
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
        case Value():
            return _value(a)
        case DimExpr(expr=expr):
            return f"<{expr}>"
        case Token(kind=kind, name=name):
            return f"#{kind}<{name}>"
        case Complex(re=re, im=im):
            return f"#complex<{_float(re)}, {_float(im)}>"
        case tuple():
            return f"[{', '.join(map(_argument, a))}]"
    raise TypeError(f"{type(a).__name__} is no argument of a node")


def _float(x: float) -> str:
    if math.isnan(x):
        return "nan"
    if math.isinf(x):
        return "inf" if x > 0 else "-inf"
    return repr(x)
