"""The rules about how the parts of a graph go together, one function each."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator

from fairlead.ir._calls import calls_fit_signatures
from fairlead.ir._model import DimExpr, Graph, Node, Role, Value
from fairlead.ir._scope import Rule, Scope
from fairlead.ir._text import node_text
from fairlead.ir._types import ScalarType, TensorType
from fairlead.ir.dims import free_symbols

_LONGEST_TEXT = 200
_DEVICE = re.compile(r"[a-z]\w*(:\d{1,9})?", re.ASCII)
_OUTPUT_ROLES = frozenset({Role.user, Role.mutation, Role.saved, Role.gradient, Role.intermediate})
_NO_INPUT_ROLES = frozenset({Role.mutation, Role.gradient})


def _defined_once(graph: Graph, scope: Scope) -> Iterator[str]:
    seen: set[int] = set()
    for value in scope.values:
        if value.id < 0:
            yield f"%{value.id} has a negative number"
        if value.id in seen:
            yield f"%{value.id} is defined twice"
        seen.add(value.id)


def _defined_before_use(graph: Graph, scope: Scope) -> Iterator[str]:
    known = {i.value.id: i.value for i in graph.inputs}
    for node in graph.nodes:
        for value in node.operands():
            definition = known.get(value.id)
            if definition is None:
                yield f"%{value.id} is used before it is defined in `{_shown(node)}`"
            elif definition is not value and definition != value:
                yield f"%{value.id} has another type where it is used in `{_shown(node)}` than where it is defined"
        for result in node.results:
            if result is not None:
                known[result.id] = result
    for value in graph.output_values():
        if value.id not in known:
            yield f"output %{value.id} is never defined"
        elif known[value.id] != value:
            yield f"output %{value.id} has another type than where it is defined"


def _shown(node: Node) -> str:
    text = node_text(node)
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 3] + "..."


def _symbols_have_names(graph: Graph, scope: Scope) -> Iterator[str]:
    seen: set[str] = set(scope.outer)
    for name in (s.name for s in graph.symbols):
        if not (name.isascii() and name.isidentifier()) or keyword.iskeyword(name) or name in {"min", "max"}:
            yield f"{name!r} cannot be the name of a symbol"
        if name in seen:
            yield f"symbol {name} is declared twice"
        seen.add(name)


def _symbols_declared(graph: Graph, scope: Scope) -> Iterator[str]:
    declared = scope.outer | {s.name for s in graph.symbols}
    used: set[str] = set()
    for _, type_ in scope.types:
        if isinstance(type_, TensorType):
            used.update(*map(free_symbols, (*type_.shape, *(type_.strides or ()))))
    args = (a for n in graph.nodes for a in n.args if type(a) is DimExpr or type(a) is tuple)
    for expression in {e.expr for a in args for e in _expressions(a)}:
        used |= free_symbols(expression)
    used.update(*(free_symbols(o.value.expr) for o in graph.outputs if isinstance(o.value, DimExpr)))
    for name in sorted(used - declared):
        yield f"symbol {name} is used but not declared"


def _symbols_have_a_source(graph: Graph, scope: Scope) -> Iterator[str]:
    for symbol in graph.symbols:
        index, dim = symbol.source
        if not 0 <= index < len(graph.inputs):
            yield f"symbol {symbol.name} is read from input {index}, which does not exist"
            continue
        type_ = graph.inputs[index].value.type
        fits = isinstance(type_, ScalarType) if dim is None else isinstance(type_, TensorType) and 0 <= dim < type_.rank
        if not fits:
            yield f"symbol {symbol.name} cannot be read from input {index}, dimension {dim}"
        if symbol.hi is not None and symbol.hi < symbol.lo:
            yield f"symbol {symbol.name} has the empty range [{symbol.lo}, {symbol.hi}]"
        if any(not -(2**63) <= bound < 2**63 for bound in (symbol.lo, symbol.hi or 0)):
            yield f"symbol {symbol.name} has a range beyond 64 bits"


def _strides_match_rank(graph: Graph, scope: Scope) -> Iterator[str]:
    for value, type_ in scope.types:
        if isinstance(type_, TensorType) and type_.strides is not None and len(type_.strides) != type_.rank:
            yield f"%{value.id} has {len(type_.strides)} strides for {type_.rank} dimensions"


def _devices_have_names(graph: Graph, scope: Scope) -> Iterator[str]:
    for value, type_ in scope.types:
        if isinstance(type_, TensorType) and not _DEVICE.fullmatch(type_.device):
            yield f"%{value.id} is on {type_.device!r}, which is not a device like cpu or cuda:0"


def _roles_fit(graph: Graph, scope: Scope) -> Iterator[str]:
    for index, role in enumerate(i.role for i in graph.inputs):
        if role in _NO_INPUT_ROLES:
            yield f"input {index} has the role {role}, which only outputs have"
    for index, role in enumerate(o.role for o in graph.outputs):
        if role not in _OUTPUT_ROLES:
            yield f"output {index} has the role {role}, which only inputs have"


def _mutations_fit(graph: Graph, scope: Scope) -> Iterator[str]:
    for output in graph.outputs:
        if (output.role is Role.mutation) != (output.target is not None):
            yield f"an output of role {output.role} has target {output.target}"
        if output.target is None:
            continue
        if not 0 <= output.target < len(graph.inputs):
            yield f"a mutation overwrites input {output.target}, which does not exist"
            continue
        old = _tensor_type(graph.inputs[output.target].value)
        new = _tensor_type(output.value)
        if old is None or new is None or (old.dtype, old.shape) != (new.dtype, new.shape):
            yield f"a mutation overwrites input {output.target} with a value of another type"


def _aliases_fit(graph: Graph, scope: Scope) -> Iterator[str]:
    for index, output in enumerate(graph.outputs):
        if output.aliases is None:
            continue
        aliased = graph.inputs[output.aliases].value if 0 <= output.aliases < len(graph.inputs) else None
        if _tensor_type(aliased) is None or _tensor_type(output.value) is None:
            yield f"output {index} cannot share the memory of input {output.aliases}"


def _tensor_type(value: object) -> TensorType | None:
    return value.type if isinstance(value, Value) and isinstance(value.type, TensorType) else None


def _expressions(arg: object) -> Iterator[DimExpr]:
    if isinstance(arg, DimExpr):
        yield arg
    elif isinstance(arg, tuple):
        for item in arg:
            yield from _expressions(item)


RULES_OF_MEANING: tuple[Rule, ...] = (
    _defined_once,
    _defined_before_use,
    _symbols_have_names,
    _symbols_declared,
    _symbols_have_a_source,
    _strides_match_rank,
    _devices_have_names,
    _roles_fit,
    _mutations_fit,
    _aliases_fit,
    calls_fit_signatures,
)
