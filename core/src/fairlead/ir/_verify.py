"""Whether a graph or a module keeps every rule: those of form, those of meaning, those of regions and of modules."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import TypeVar

from fairlead.errors import VerificationError
from fairlead.ir._model import Graph, Kind, Module
from fairlead.ir._rules_of_form import RULES_OF_FORM, is_text
from fairlead.ir._rules_of_meaning import RULES_OF_MEANING
from fairlead.ir._scope import Scope
from fairlead.ir._text import name_text
from fairlead.ir._wire import DEEPEST_REGION

Content = TypeVar("Content", Graph, Module)

_SHOWN = 5
_LONGEST_TEXT = 200


def verify(content: Content) -> Content:
    """The graph or module itself, if it keeps every rule; else a `VerificationError` that lists the broken ones."""
    if isinstance(content, Module):
        _raise_for(_module_rules(content), f"module of {len(content.graphs)} graphs")
    for graph in content.graphs if isinstance(content, Module) else (content,):
        where = f"graph @{name_text(graph.name)} ({graph.kind}, {len(graph.nodes)} nodes)"
        _raise_for(_problems(graph, Scope(graph)), where)
    return content


def _raise_for(problems: Iterable[str], where: str) -> None:
    found = list(itertools.islice(problems, _SHOWN + 1))
    if found:
        raise VerificationError(
            "; ".join(found[:_SHOWN]) + ("; and more" if len(found) > _SHOWN else ""),
            where=where,
            next="fix the pass or the writer that made this graph",
        )


def _problems(graph: Graph, scope: Scope) -> Iterator[str]:
    """What the other rules, and the text that they show, rely on comes first; nothing else if that is broken."""
    for rules in (RULES_OF_FORM, RULES_OF_MEANING):
        problems = itertools.chain.from_iterable(rule(graph, scope) for rule in rules)
        first = next(problems, None)
        if first is not None:
            yield first
            yield from problems
            return
    yield from _regions_are_closed(graph, scope)


def _regions_are_closed(graph: Graph, scope: Scope) -> Iterator[str]:
    names = scope.outer | {s.name for s in graph.symbols}
    for number, node in enumerate(graph.nodes):
        for index, region in enumerate(node.regions):
            where = f"region {index} of node {number} ({node.op})"
            if region.kind is not Kind.region:
                yield f"{where} is of kind {region.kind}"
            if scope.depth == DEEPEST_REGION:
                yield f"{where} is nested more than {DEEPEST_REGION} deep"
            else:
                inner = Scope(region, names, scope.depth + 1)
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
        if use.version < 1 or not is_text(use.signature):
            yield f"{op} has version {use.version} and the signature {use.signature[:_LONGEST_TEXT]!r}"
    for name in itertools.chain.from_iterable(module.producer.items()):
        if not is_text(name):
            yield f"the producer {name!r} is not valid Unicode"
