"""The rules that every graph keeps, one function each; `verify` runs them all."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fairlead.errors import VerificationError
from fairlead.ir._model import DimExpr, Graph, Role, ScalarType, TensorType, Value
from fairlead.ir._text import node_text
from fairlead.ir.dims import free_symbols


def verify(graph: Graph) -> Graph:
    """The graph itself, if it keeps every rule; otherwise a `VerificationError` that lists each broken one."""
    problems = [problem for rule in _RULES for problem in rule(graph)]
    if problems:
        raise VerificationError(
            "; ".join(problems[:5]) + (f"; and {len(problems) - 5} more" if len(problems) > 5 else ""),
            where=f"graph @{graph.name} ({graph.kind}, {len(graph.nodes)} nodes)",
            next="fix the pass or the writer that made this graph",
        )
    return graph


def _defined_once(graph: Graph) -> Iterator[str]:
    seen: set[int] = set()
    for value in _definitions(graph):
        if value.id in seen:
            yield f"%{value.id} is defined twice"
        seen.add(value.id)


def _defined_before_use(graph: Graph) -> Iterator[str]:
    known = {i.value.id: i.value.type for i in graph.inputs}
    for node in graph.nodes:
        for value in node.operands():
            if value.id not in known:
                yield f"%{value.id} is used before it is defined in `{node_text(node)}`"
            elif known[value.id] != value.type:
                yield f"%{value.id} has another type where it is used in `{node_text(node)}` than where it is defined"
        known.update((r.id, r.type) for r in node.results if r is not None)
    for value in graph.output_values():
        if value.id not in known:
            yield f"output %{value.id} is never defined"


def _symbols_declared(graph: Graph) -> Iterator[str]:
    declared = {s.name for s in graph.symbols}
    used: set[str] = set()
    for value in _definitions(graph):
        if isinstance(value.type, TensorType):
            used = used.union(*map(free_symbols, (*value.type.shape, *(value.type.strides or ()))))
    for node in graph.nodes:
        used = used.union(*(free_symbols(e.expr) for e in _expressions(node.args)))
    used = used.union(*(free_symbols(o.value.expr) for o in graph.outputs if isinstance(o.value, DimExpr)))
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


def _strides_match_rank(graph: Graph) -> Iterator[str]:
    for value in _definitions(graph):
        if (
            isinstance(value.type, TensorType)
            and value.type.strides is not None
            and len(value.type.strides) != value.type.rank
        ):
            yield f"%{value.id} has {len(value.type.strides)} strides for {value.type.rank} dimensions"


def _mutations_fit(graph: Graph) -> Iterator[str]:
    for output in graph.outputs:
        if (output.role is Role.mutation) != (output.target is not None):
            yield f"an output of role {output.role} has target {output.target}"
        if output.target is None:
            continue
        if not 0 <= output.target < len(graph.inputs):
            yield f"a mutation overwrites input {output.target}, which does not exist"
            continue
        old = graph.inputs[output.target].value.type
        new = output.value.type if isinstance(output.value, Value) else None
        if not (
            isinstance(old, TensorType)
            and isinstance(new, TensorType)
            and (old.dtype, old.shape) == (new.dtype, new.shape)
        ):
            yield f"a mutation overwrites input {output.target} with a value of another type"


def _definitions(graph: Graph) -> Iterator[Value]:
    yield from (i.value for i in graph.inputs)
    yield from (r for n in graph.nodes for r in n.results if r is not None)


def _expressions(arg: object) -> Iterator[DimExpr]:
    if isinstance(arg, DimExpr):
        yield arg
    elif isinstance(arg, tuple):
        for item in arg:
            yield from _expressions(item)


_RULES: tuple[Callable[[Graph], Iterator[str]], ...] = (
    _defined_once,
    _defined_before_use,
    _symbols_declared,
    _symbols_have_a_source,
    _strides_match_rank,
    _mutations_fit,
)
