"""The rules that every graph keeps, one function each; `verify` runs them all."""

from __future__ import annotations

import itertools
import keyword
import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

from fairlead.errors import VerificationError
from fairlead.ir._model import Argument, Complex, DimExpr, Graph, Node, Role, ScalarType, TensorType, Token, Value
from fairlead.ir._text import node_text
from fairlead.ir.dims import free_symbols, is_normal

_SHOWN = 5
_LONGEST_TEXT = 200
_DEEPEST_ARGUMENT = 16
_OP = re.compile(r"[A-Za-z_]\w*(\.\w+)+", re.ASCII)
_DEVICE = re.compile(r"[a-z]\w*(:\d+)?", re.ASCII)
_TOKENS = frozenset({"dtype", "device", "layout", "memory_format"})
_OUTPUT_ROLES = frozenset({Role.user, Role.mutation, Role.saved, Role.gradient, Role.intermediate})
_NO_INPUT_ROLES = frozenset({Role.mutation, Role.gradient})


def verify(graph: Graph) -> Graph:
    """The graph itself, if it keeps every rule; otherwise a `VerificationError` that lists the broken ones."""
    for rules in (_RULES_OF_FORM, _RULES_OF_MEANING):
        problems = list(itertools.islice((problem for rule in rules for problem in rule(graph)), _SHOWN + 1))
        if problems:
            raise VerificationError(
                "; ".join(problems[:_SHOWN]) + ("; and more" if len(problems) > _SHOWN else ""),
                where=f"graph @{graph.name} ({graph.kind}, {len(graph.nodes)} nodes)",
                next="fix the pass or the writer that made this graph",
            )
    return graph


def _names_are_text(graph: Graph) -> Iterator[str]:
    for name in (graph.name, *(i.name for i in graph.inputs)):
        if not _is_text(name):
            yield f"the name {name!r} is not valid Unicode"


def _arguments_are_arguments(graph: Graph) -> Iterator[str]:
    for number, node in enumerate(graph.nodes):
        for arg in node.args:
            if why := _flaw(arg, _DEEPEST_ARGUMENT):
                yield f"node {number} ({node.op}) has an argument that is {why}"
    for index, output in enumerate(graph.outputs):
        if isinstance(output.value, DimExpr | int) and (why := _flaw(output.value, 0)):
            yield f"output {index} is {why}"


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
            return "" if _is_text(arg) else "a string that is not valid Unicode"
        case Token(kind=kind, name=name):
            return "" if kind in _TOKENS and _is_text(name) else f"a token of the unknown kind {kind!r}"
        case DimExpr(expr=expr):
            return "" if isinstance(expr, str) and is_normal(expr) else f"the expression {expr!r}, not in normal form"
        case None | float() | Value() | Complex():
            return ""
    return f"a {type(arg).__name__}"


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _ops_have_names(graph: Graph) -> Iterator[str]:
    for op in sorted({n.op for n in graph.nodes}):
        if not _OP.fullmatch(op):
            yield f"{op!r} is not the name of an op, like aten.add.Tensor"


def _defined_once(graph: Graph) -> Iterator[str]:
    seen: set[int] = set()
    for value in _definitions(graph):
        if value.id < 0:
            yield f"%{value.id} has a negative number"
        if value.id in seen:
            yield f"%{value.id} is defined twice"
        seen.add(value.id)


def _defined_before_use(graph: Graph) -> Iterator[str]:
    known = {i.value.id: i.value.type for i in graph.inputs}
    for node in graph.nodes:
        for value in node.operands():
            if value.id not in known:
                yield f"%{value.id} is used before it is defined in `{_shown(node)}`"
            elif known[value.id] != value.type:
                yield f"%{value.id} has another type where it is used in `{_shown(node)}` than where it is defined"
        known.update((r.id, r.type) for r in node.results if r is not None)
    for value in graph.output_values():
        if value.id not in known:
            yield f"output %{value.id} is never defined"
        elif known[value.id] != value.type:
            yield f"output %{value.id} has another type than where it is defined"


def _shown(node: Node) -> str:
    text = node_text(node)
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 3] + "..."


def _symbols_have_names(graph: Graph) -> Iterator[str]:
    seen: set[str] = set()
    for name in (s.name for s in graph.symbols):
        if not (name.isascii() and name.isidentifier()) or keyword.iskeyword(name) or name in {"min", "max"}:
            yield f"{name!r} cannot be the name of a symbol"
        if name in seen:
            yield f"symbol {name} is declared twice"
        seen.add(name)


def _symbols_declared(graph: Graph) -> Iterator[str]:
    declared = {s.name for s in graph.symbols}
    used: set[str] = set()
    for value in _definitions(graph):
        if isinstance(value.type, TensorType):
            used.update(*map(free_symbols, (*value.type.shape, *(value.type.strides or ()))))
    for node in graph.nodes:
        used.update(*(free_symbols(e.expr) for e in _expressions(node.args)))
    used.update(*(free_symbols(o.value.expr) for o in graph.outputs if isinstance(o.value, DimExpr)))
    for name in sorted(used - declared):
        yield f"symbol {name} is used but not declared"


def _symbols_have_a_source(graph: Graph) -> Iterator[str]:
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


def _dims_are_sizes(graph: Graph) -> Iterator[str]:
    for value in _definitions(graph):
        if not isinstance(value.type, TensorType):
            continue
        for dim in (*value.type.shape, *(value.type.strides or ())):
            if not is_normal(dim):
                yield f"%{value.id} has the dimension {dim!r}, which is not in normal form"
            elif isinstance(dim, int) and not 0 <= dim < 2**63:
                yield f"%{value.id} has the dimension {dim}"


def _strides_match_rank(graph: Graph) -> Iterator[str]:
    for value in _definitions(graph):
        strides = value.type.strides if isinstance(value.type, TensorType) else None
        if strides is not None and len(strides) != value.tensor.rank:
            yield f"%{value.id} has {len(strides)} strides for {value.tensor.rank} dimensions"


def _devices_have_names(graph: Graph) -> Iterator[str]:
    for value in _definitions(graph):
        if isinstance(value.type, TensorType) and not _DEVICE.fullmatch(value.type.device):
            yield f"%{value.id} is on {value.type.device!r}, which is not a device like cpu or cuda:0"


def _roles_fit(graph: Graph) -> Iterator[str]:
    for index, role in enumerate(i.role for i in graph.inputs):
        if role in _NO_INPUT_ROLES:
            yield f"input {index} has the role {role}, which only outputs have"
    for index, role in enumerate(o.role for o in graph.outputs):
        if role not in _OUTPUT_ROLES:
            yield f"output {index} has the role {role}, which only inputs have"


def _mutations_fit(graph: Graph) -> Iterator[str]:
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


def _aliases_fit(graph: Graph) -> Iterator[str]:
    for index, output in enumerate(graph.outputs):
        if output.aliases is None:
            continue
        aliased = graph.inputs[output.aliases].value if 0 <= output.aliases < len(graph.inputs) else None
        if _tensor_type(aliased) is None or _tensor_type(output.value) is None:
            yield f"output {index} cannot share the memory of input {output.aliases}"


def _tensor_type(value: object) -> TensorType | None:
    return value.type if isinstance(value, Value) and isinstance(value.type, TensorType) else None


def _definitions(graph: Graph) -> Iterator[Value]:
    yield from (i.value for i in graph.inputs)
    yield from (r for n in graph.nodes for r in n.results if r is not None)


def _expressions(arg: object) -> Iterator[DimExpr]:
    if isinstance(arg, DimExpr):
        yield arg
    elif isinstance(arg, tuple):
        for item in arg:
            yield from _expressions(item)


_Rule: TypeAlias = Callable[[Graph], Iterator[str]]

_RULES_OF_FORM: tuple[_Rule, ...] = (_names_are_text, _arguments_are_arguments, _ops_have_names, _dims_are_sizes)
"""What the other rules, and the text that they show, rely on."""

_RULES_OF_MEANING: tuple[_Rule, ...] = (
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
)
