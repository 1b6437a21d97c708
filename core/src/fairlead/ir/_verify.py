"""The rules that every graph keeps, one function each; `verify` runs them all."""

from __future__ import annotations

import itertools
import keyword
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias, TypeVar

from fairlead.errors import VerificationError
from fairlead.ir._calls import calls_fit_signatures
from fairlead.ir._model import (
    Argument,
    Complex,
    DimExpr,
    Graph,
    Kind,
    Module,
    Node,
    Role,
    ScalarType,
    TensorType,
    Token,
    Type,
    Value,
)
from fairlead.ir._text import name_text, node_text
from fairlead.ir._wire import DEEPEST_ARGUMENT, DEEPEST_REGION
from fairlead.ir.dims import free_symbols, is_normal

Content = TypeVar("Content", Graph, Module)

_SHOWN = 5
_LONGEST_TEXT = 200
_OP = re.compile(r"[A-Za-z_]\w*(\.\w+)+", re.ASCII)
_DEVICE = re.compile(r"[a-z]\w*(:\d{1,9})?", re.ASCII)
_TOKENS = frozenset({"dtype", "device", "layout", "memory_format"})
_OUTPUT_ROLES = frozenset({Role.user, Role.mutation, Role.saved, Role.gradient, Role.intermediate})
_NO_INPUT_ROLES = frozenset({Role.mutation, Role.gradient})


def verify(content: Content) -> Content:
    """The graph or module itself, if it keeps every rule; else a `VerificationError` that lists the broken ones."""
    if isinstance(content, Module):
        _raise_for(_module_rules(content), f"module of {len(content.graphs)} graphs")
    for graph in content.graphs if isinstance(content, Module) else (content,):
        where = f"graph @{name_text(graph.name)} ({graph.kind}, {len(graph.nodes)} nodes)"
        _raise_for(_problems(graph, _Scope(graph)), where)
    return content


def _raise_for(problems: Iterable[str], where: str) -> None:
    found = list(itertools.islice(problems, _SHOWN + 1))
    if found:
        raise VerificationError(
            "; ".join(found[:_SHOWN]) + ("; and more" if len(found) > _SHOWN else ""),
            where=where,
            next="fix the pass or the writer that made this graph",
        )


class _Scope:
    """What several rules look at: the values that a graph defines, one of each type, and the symbols around it."""

    def __init__(self, graph: Graph, outer: frozenset[str] = frozenset(), depth: int = 0) -> None:
        self.outer = outer
        self.depth = depth
        self.values = [i.value for i in graph.inputs]
        self.values += [r for n in graph.nodes for r in n.results if r is not None]
        # By identity: a graph that is read, and most that are captured, have one object for equal types.
        self.types: list[tuple[Value, Type]] = [
            (v, v.type) for v in {id(v.type): v for v in reversed(self.values)}.values()
        ]


def _problems(graph: Graph, scope: _Scope) -> Iterator[str]:
    """What the other rules, and the text that they show, rely on comes first; nothing else if that is broken."""
    for rules in (_RULES_OF_FORM, _RULES_OF_MEANING):
        problems = itertools.chain.from_iterable(rule(graph, scope) for rule in rules)
        first = next(problems, None)
        if first is not None:
            yield first
            yield from problems
            return
    yield from _regions_are_closed(graph, scope)


def _regions_are_closed(graph: Graph, scope: _Scope) -> Iterator[str]:
    names = scope.outer | {s.name for s in graph.symbols}
    for number, node in enumerate(graph.nodes):
        for index, region in enumerate(node.regions):
            where = f"region {index} of node {number} ({node.op})"
            if region.kind is not Kind.region:
                yield f"{where} is of kind {region.kind}"
            if scope.depth == DEEPEST_REGION:
                yield f"{where} is nested more than {DEEPEST_REGION} deep"
            else:
                inner = _Scope(region, names, scope.depth + 1)
                yield from (f"in {where}: {problem}" for problem in _problems(region, inner))


def _module_rules(module: Module) -> Iterator[str]:
    names = [g.name for g in module.graphs]
    for name in sorted({n for n in names if names.count(n) > 1}):
        yield f"two graphs are called {name!r}"
    if not names:
        yield "it has no graph"
    used = {n.op for g in module.graphs for n in g.walk()}
    for op in sorted(used - module.ops.keys()):
        yield f"{op} is not in its table of ops"
    for op in sorted(module.ops.keys() - used):
        yield f"{op} is in its table of ops, and no node has it"
    for op, use in module.ops.items():
        if use.version < 1 or not _is_text(use.signature):
            yield f"{op} has version {use.version} and the signature {use.signature[:_LONGEST_TEXT]!r}"
    for name in itertools.chain.from_iterable(module.producer.items()):
        if not _is_text(name):
            yield f"the producer {name!r} is not valid Unicode"


def _names_are_text(graph: Graph, scope: _Scope) -> Iterator[str]:
    for name in (graph.name, *(i.name for i in graph.inputs)):
        if not _is_text(name):
            yield f"the name {name!r} is not valid Unicode"


def _arguments_are_arguments(graph: Graph, scope: _Scope) -> Iterator[str]:
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
            return "" if _is_text(arg) else "a string that is not valid Unicode"
        case Token(kind=kind, name=name):
            return "" if kind in _TOKENS and _is_text(name) else f"a token of the unknown kind {kind!r}"
        case DimExpr(expr=expr):
            return "" if isinstance(expr, str) and is_normal(expr) else f"the expression {expr!r}, not in normal form"
        case None | float() | Value() | Complex():
            return ""
    return f"a {type(arg).__name__}"


def _is_text(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _ops_have_names(graph: Graph, scope: _Scope) -> Iterator[str]:
    for op in sorted({n.op for n in graph.nodes}):
        if not _OP.fullmatch(op):
            yield f"{op!r} is not the name of an op, like aten.add.Tensor"


def _defined_once(graph: Graph, scope: _Scope) -> Iterator[str]:
    seen: set[int] = set()
    for value in scope.values:
        if value.id < 0:
            yield f"%{value.id} has a negative number"
        if value.id in seen:
            yield f"%{value.id} is defined twice"
        seen.add(value.id)


def _defined_before_use(graph: Graph, scope: _Scope) -> Iterator[str]:
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


def _symbols_have_names(graph: Graph, scope: _Scope) -> Iterator[str]:
    seen: set[str] = set(scope.outer)
    for name in (s.name for s in graph.symbols):
        if not (name.isascii() and name.isidentifier()) or keyword.iskeyword(name) or name in {"min", "max"}:
            yield f"{name!r} cannot be the name of a symbol"
        if name in seen:
            yield f"symbol {name} is declared twice"
        seen.add(name)


def _symbols_declared(graph: Graph, scope: _Scope) -> Iterator[str]:
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


def _symbols_have_a_source(graph: Graph, scope: _Scope) -> Iterator[str]:
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


def _dims_are_sizes(graph: Graph, scope: _Scope) -> Iterator[str]:
    for value, type_ in scope.types:
        if not isinstance(type_, TensorType):
            continue
        for dim in (*type_.shape, *(type_.strides or ())):
            if not is_normal(dim):
                yield f"%{value.id} has the dimension {dim!r}, which is not in normal form"
            elif isinstance(dim, int) and not 0 <= dim < 2**63:
                yield f"%{value.id} has the dimension {dim}"


def _strides_match_rank(graph: Graph, scope: _Scope) -> Iterator[str]:
    for value, type_ in scope.types:
        if isinstance(type_, TensorType) and type_.strides is not None and len(type_.strides) != type_.rank:
            yield f"%{value.id} has {len(type_.strides)} strides for {type_.rank} dimensions"


def _devices_have_names(graph: Graph, scope: _Scope) -> Iterator[str]:
    for value, type_ in scope.types:
        if isinstance(type_, TensorType) and not _DEVICE.fullmatch(type_.device):
            yield f"%{value.id} is on {type_.device!r}, which is not a device like cpu or cuda:0"


def _roles_fit(graph: Graph, scope: _Scope) -> Iterator[str]:
    for index, role in enumerate(i.role for i in graph.inputs):
        if role in _NO_INPUT_ROLES:
            yield f"input {index} has the role {role}, which only outputs have"
    for index, role in enumerate(o.role for o in graph.outputs):
        if role not in _OUTPUT_ROLES:
            yield f"output {index} has the role {role}, which only inputs have"


def _mutations_fit(graph: Graph, scope: _Scope) -> Iterator[str]:
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


def _aliases_fit(graph: Graph, scope: _Scope) -> Iterator[str]:
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


_Rule: TypeAlias = Callable[[Graph, _Scope], Iterator[str]]

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
    calls_fit_signatures,
)
