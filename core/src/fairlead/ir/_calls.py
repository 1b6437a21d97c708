"""The rule that a node fits the signature of its op. An op that the opset does not have is custom, and passes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from fairlead.ir._model import Complex, DimExpr, Graph, Node, Token, Value
from fairlead.ir._types import ScalarType
from fairlead.ir.opset import Parameter, ParameterType, signature, spec

_Fits = Callable[[Any], bool]


class _Call(NamedTuple):
    """What a node of an op looks like. ``results`` is None where any number will do."""

    parameters: tuple[Parameter, ...]
    fits: tuple[_Fits, ...]
    results: int | None
    regions: int


def calls_fit_signatures(graph: Graph, scope: object) -> Iterator[str]:
    """One line for each node with too many or too few arguments, results or regions, or an argument of another kind."""
    for number, node in enumerate(graph.nodes):
        call = _call(node.op)
        if call is not None and (why := _flaw(node, call)):
            yield f"node {number} ({node.op}) {why}"


def _flaw(node: Node, call: _Call) -> str:
    """How a node does not fit; empty where it does."""
    if len(node.args) != len(call.fits):
        return f"has {len(node.args)} arguments, and the op takes {len(call.fits)}"
    if call.results is not None and len(node.results) != call.results:
        return f"has {len(node.results)} results, and the op has {call.results}"
    if len(node.regions) != call.regions:
        return f"has {len(node.regions)} regions, and the op has {call.regions}"
    for index, fits in enumerate(call.fits):
        if not fits(node.args[index]):
            parameter = call.parameters[index]
            return f"has for {parameter.name!r} an argument that is no {parameter.type}"
    return ""


@functools.lru_cache(4096)
def _call(op: str) -> _Call | None:
    found = spec(op)
    if found is None:
        return None
    meant = signature(found.signature)
    parameters = meant.operands
    results = None if meant.variadic else len(meant.results)
    return _Call(parameters, tuple(_fits(p.type) for p in parameters), results, len(meant.regions))


def _fits(type_: ParameterType) -> _Fits:
    item = _ITEMS[type_.element]
    if not type_.is_list:
        return _or_none(item) if type_.optional else item
    inner = _or_none(item) if type_.optional_items else item

    def fits(arg: Any) -> bool:
        if isinstance(arg, tuple):
            return all(map(inner, arg))
        return (type_.optional and arg is None) or (type_.length is not None and item(arg))

    return fits


def _or_none(fits: _Fits) -> _Fits:
    return lambda arg: arg is None or fits(arg)


def _tensor(arg: Any) -> bool:
    """A tensor, or a number where it stands for one."""
    return isinstance(arg, Value | int | float | DimExpr | Complex)


def _number(arg: Any) -> bool:
    return isinstance(arg, int | float | DimExpr | Complex) or _integer(arg)


def _integer(arg: Any) -> bool:
    if isinstance(arg, Value):
        return isinstance(arg.type, ScalarType)
    return isinstance(arg, int | DimExpr) and not isinstance(arg, bool)


def _token(kind: str) -> _Fits:
    return lambda arg: isinstance(arg, Token) and arg.kind == kind


_ITEMS: dict[str, _Fits] = {
    "Tensor": _tensor,
    "Scalar": _number,
    "int": _integer,
    "SymInt": _integer,
    "float": lambda arg: (isinstance(arg, int | float | DimExpr) and not isinstance(arg, bool)) or _integer(arg),
    "bool": lambda arg: isinstance(arg, bool),
    "str": lambda arg: isinstance(arg, str),
    "ScalarType": _token("dtype"),
    "Layout": _token("layout"),
    "Device": _token("device"),
    "MemoryFormat": _token("memory_format"),
    "Generator": lambda arg: False,
    "Any": lambda arg: True,
}
"""Whether an argument is of an element type."""
