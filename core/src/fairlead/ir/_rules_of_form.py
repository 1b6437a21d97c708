"""The rules about the parts of a graph, one function each: what other rules, and the text that they show, rely on."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fairlead.ir._model import Argument, Complex, DimExpr, Graph, Token, Value
from fairlead.ir._scope import Rule, Scope
from fairlead.ir._types import TensorType
from fairlead.ir._wire import DEEPEST_ARGUMENT
from fairlead.ir.dims import is_normal

_OP = re.compile(r"[A-Za-z_]\w*(\.\w+)+", re.ASCII)
_TOKENS = frozenset({"dtype", "device", "layout", "memory_format"})


def _names_are_text(graph: Graph, scope: Scope) -> Iterator[str]:
    for name in (graph.name, *(i.name for i in graph.inputs)):
        if not is_text(name):
            yield f"the name {name!r} is not valid Unicode"


def _arguments_are_arguments(graph: Graph, scope: Scope) -> Iterator[str]:
    for number, node in enumerate(graph.nodes):
        for arg in node.args:
            if type(arg) not in _SOUND and (why := _flaw(arg, DEEPEST_ARGUMENT)):
                yield f"node {number} ({node.op}) has an argument that is {why}"
    for index, output in enumerate(graph.outputs):
        if isinstance(output.value, DimExpr | int) and (why := _flaw(output.value, 0)):
            yield f"output {index} is {why}"


_SOUND = frozenset({Value, type(None), bool, float, Complex})


def _flaw(arg: Argument, depth: int) -> str:
    """What is wrong with an argument; empty where nothing is."""
    match arg:
        case tuple():
            if not depth:
                return "nested too deeply"
            return next(filter(None, (_flaw(item, depth - 1) for item in arg)), "")
        case int():
            return "" if -(2**63) <= arg < 2**64 else "an integer of more than 64 bits"
        case str():
            return "" if is_text(arg) else "a string that is not valid Unicode"
        case Token(kind=kind, name=name):
            return "" if kind in _TOKENS and is_text(name) else f"a token of the unknown kind {kind!r}"
        case DimExpr(expr=expr):
            return "" if isinstance(expr, str) and is_normal(expr) else f"the expression {expr!r}, not in normal form"
        case None | float() | Value() | Complex():
            return ""
    return f"a {type(arg).__name__}"


def _ops_have_names(graph: Graph, scope: Scope) -> Iterator[str]:
    for op in sorted({n.op for n in graph.nodes}):
        if not _OP.fullmatch(op):
            yield f"{op!r} is not the name of an op, like aten.add.Tensor"


def is_text(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _dims_are_sizes(graph: Graph, scope: Scope) -> Iterator[str]:
    for value, type_ in scope.types:
        if not isinstance(type_, TensorType):
            continue
        for dim in (*type_.shape, *(type_.strides or ())):
            if not is_normal(dim):
                yield f"%{value.id} has the dimension {dim!r}, which is not in normal form"
            elif isinstance(dim, int) and not 0 <= dim < 2**63:
                yield f"%{value.id} has the dimension {dim}"


RULES_OF_FORM: tuple[Rule, ...] = (_names_are_text, _arguments_are_arguments, _ops_have_names, _dims_are_sizes)
