"""Graphs held against the rules: what a node's results are declared as, and what its op makes of its operands."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterator

import msgspec

from fairlead.errors import VerificationError
from fairlead.ir._model import Graph, Node, Symbol
from fairlead.ir._text import node_text, type_text
from fairlead.ir._types import TensorType, Type
from fairlead.ir.dims import Dim
from fairlead.ir.infer._ranges import Ranges, choices, decided, may_be, ranges_of
from fairlead.ir.infer._table import infer


class Verdict(enum.StrEnum):
    """What the rule of its op says of a node."""

    right = "right"
    wrong = "wrong"
    unknown = "unknown"


class Finding(msgspec.Struct, frozen=True):
    """A node, the types that the rule gives its results, and whether they are those that it declares.

    ``verdict`` is unknown where the op has no rule, where only the data tell the types, where a size is one part of a
    ``min`` or ``max`` that the ranges of the symbols do not decide, and where it is a number that the expression can
    have. ``why`` is empty where the rule has types for the operands.
    """

    node: Node
    inferred: tuple[Type | None, ...]
    verdict: Verdict
    why: str = ""


def compare_types(graph: Graph) -> Iterator[Finding]:
    """A finding for each node, in order. Sizes are compared for all that the ranges of the graph's symbols allow."""
    ranges = ranges_of(graph.symbols)
    return (_finding(node, graph.symbols, ranges) for node in graph.nodes)


def verify_types(graph: Graph) -> Graph:
    """The graph itself, if each node declares the dtypes and shapes that its op makes of its operands.

    Otherwise a `VerificationError` that shows the nodes and both types. Strides are not compared, and neither are nodes
    whose op has no rule or whose types only the data tell.
    """
    wrong = (f for f in compare_types(graph) if f.verdict is Verdict.wrong)
    problems = list(itertools.islice(map(_problem, wrong), _SHOWN + 1))
    if problems:
        raise VerificationError(
            "; ".join(problems[:_SHOWN]) + ("; and more" if len(problems) > _SHOWN else ""),
            where=f"graph @{graph.name} ({graph.kind}, {len(graph.nodes)} nodes)",
            next="fix the pass or the writer that declared these types",
        )
    return graph


_SHOWN = 5


def _finding(node: Node, symbols: tuple[Symbol, ...], ranges: Ranges) -> Finding:
    try:
        inferred = infer(node.op, node.args, symbols)
    except VerificationError as error:
        return Finding(node, (), Verdict.wrong, error.what)
    if not inferred:
        return Finding(node, (), Verdict.unknown)
    if len(inferred) != len(node.results):
        return Finding(node, inferred, Verdict.wrong)
    verdicts = {_verdict(r.type, t, ranges) for r, t in zip(node.results, inferred, strict=True) if r is not None}
    return Finding(node, inferred, next((v for v in _WORST_FIRST if v in verdicts), Verdict.right))


_WORST_FIRST = (Verdict.wrong, Verdict.unknown)


def _verdict(declared: Type, inferred: Type | None, ranges: Ranges) -> Verdict:
    """Whether the types agree but for strides, which say how memory is laid out and not what is in it."""
    if inferred is None:
        return Verdict.unknown
    if not isinstance(declared, TensorType) or not isinstance(inferred, TensorType):
        return Verdict.right if declared == inferred else Verdict.wrong
    if (declared.dtype, declared.device, declared.rank) != (inferred.dtype, inferred.device, inferred.rank):
        return Verdict.wrong
    sizes = {_size_verdict(d, i, ranges) for d, i in zip(declared.shape, inferred.shape, strict=True)}
    return next((v for v in _WORST_FIRST if v in sizes), Verdict.right)


def _size_verdict(declared: Dim, inferred: Dim, ranges: Ranges) -> Verdict:
    if declared == inferred or decided(declared, ranges) == inferred:
        return Verdict.right
    if isinstance(declared, int) and may_be(inferred, declared, ranges):
        return Verdict.unknown
    return Verdict.unknown if declared in choices(inferred) else Verdict.wrong


def _problem(finding: Finding) -> str:
    if finding.why:
        return f"`{node_text(finding.node)}`: {finding.why}"
    types = ", ".join("_" if t is None else type_text(t) for t in finding.inferred)
    return f"`{node_text(finding.node)}` has results of type {types}"
