"""Asks a backend about every node of PyTorch's samples, forward and backward. Compiles and runs nothing."""

from __future__ import annotations

import collections
import enum
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from fairlead.backend import Support
from fairlead.ir import Graph, Input, Node, Output, TensorType, from_bytes, opset
from fairlead.partition import assign, verdict
from fairlead.passes import canonicalize, decompose, recognize_composites, split_dropout
from fairlead.placement import Why
from fairlead_conformance._pack import pack
from fairlead_conformance._subject import Subject

__all__ = ["Cell", "Coverage", "Outcome", "cases", "gather"]

FAMILIES = ("ops", "opgrad")


class Outcome(enum.StrEnum):
    """What becomes of a node: the backend runs it as it is, or what it was taken apart into, or not; or torch draws."""

    native = "native"
    decomposed = "decomposed"
    declined = "declined"
    drawn = "drawn"


class Cell(msgspec.Struct):
    """The nodes of one op in one dtype: how many have each outcome, and the reasons of those that were declined."""

    counts: collections.Counter[Outcome] = msgspec.field(default_factory=collections.Counter)
    reasons: collections.Counter[str] = msgspec.field(default_factory=collections.Counter)

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def taken(self) -> int:
        """How many run in the backend, whole or taken apart."""
        return self.counts[Outcome.native] + self.counts[Outcome.decomposed]


class Coverage(msgspec.Struct):
    """A backend's answers: ``ops`` by op and dtype of the IR, and ``tiers`` over all nodes of each tier of the opset.

    The dtype is that of a node's first tensor, or of its result where it takes none. ``samples``: how many of the
    cases' graphs have no node that is declined, of how many.
    """

    backend: str
    ops: dict[str, dict[str, Cell]]
    tiers: dict[str, Cell]
    samples: tuple[int, int]

    def reasons(self, op: str) -> list[tuple[str, str]]:
        """Why nodes of the op are declined, the most frequent reason first, each with its dtypes."""
        found: dict[str, list[str]] = {}
        total = collections.Counter[str]()
        for dtype, cell in self.ops.get(op, {}).items():
            total.update(cell.reasons)
            for reason in cell.reasons:
                found.setdefault(reason, []).append(dtype)
        return [(reason, " ".join(found[reason])) for reason, _ in total.most_common()]


class _Answer(NamedTuple):
    outcome: Outcome
    reason: str


def gather(subject: Subject, *, tell: Callable[[], object] = lambda: None) -> Coverage:
    """Ask the backend about each node; ``tell`` is called after each case.

    Raises `fairlead.errors.RegistryError` where the backend is not ready, and what its ``supports`` raises.
    """
    coverage = Coverage(subject.name, {}, {}, (0, 0))
    taken = total = 0
    for case in cases():
        for graph in from_bytes(pack().content(case).module).graphs:
            answers = [(node, _answer(node, graph, subject)) for node in _nodes(graph)]
            for node, answer in answers:
                _count(coverage, node, answer)
            total += 1
            taken += all(answer.outcome is not Outcome.declined for _, answer in answers)
        tell()
    return msgspec.structs.replace(coverage, samples=(taken, total))


def cases() -> list[str]:
    """The cases that `gather` goes through: samples as they are, since another value of an input is no other node."""
    return [case.id for family in FAMILIES for case in pack().cases(family) if not case.variant]


def _nodes(graph: Graph) -> tuple[Node, ...]:
    return recognize_composites(canonicalize(graph)).nodes


def _answer(node: Node, graph: Graph, subject: Subject) -> _Answer:
    capabilities = subject.capabilities
    alone = _alone(node, graph)
    shown = decompose(alone if capabilities.rng else split_dropout(alone), capabilities.keeps)
    said: dict[int, Support] = {}

    def ask(_: str, inner: Node) -> Support:
        if id(inner) not in said:
            said[id(inner)] = verdict(subject.backend, inner, graph.kind)
        return said[id(inner)]

    placed = assign(shown, subject.name, (), ask).nodes
    torchs = (Why.random, Why.collective, Why.number)
    asked = [n for n, p in zip(shown.nodes, placed, strict=True) if p.why not in torchs]
    if not asked:
        return _Answer(Outcome.drawn, "")
    for inner in asked:
        support = ask(subject.name, inner)
        if not support.accepted:
            reason = support.reason or "no reason given"
            return _Answer(Outcome.declined, reason if inner.op == node.op else f"{inner.op}: {reason}")
    whole = len(asked) == 1 and asked[0].op == node.op
    return _Answer(Outcome.native if whole else Outcome.decomposed, "")


def _alone(node: Node, graph: Graph) -> Graph:
    """A graph of this node, with its operands as inputs."""
    operands = {value.id: value for value in node.operands()}
    return msgspec.structs.replace(
        graph,
        inputs=tuple(Input(value) for value in operands.values()),
        nodes=(node,),
        outputs=tuple(Output(result) for result in node.results if result is not None),
    )


def _count(coverage: Coverage, node: Node, answer: _Answer) -> None:
    spec = opset.spec(node.op)
    tier = spec.tier if spec is not None else "custom"
    of_op = coverage.ops.setdefault(node.op, {}).setdefault(_dtype(node), Cell())
    for cell in (of_op, coverage.tiers.setdefault(tier, Cell())):
        cell.counts[answer.outcome] += 1
        if answer.outcome is Outcome.declined:
            cell.reasons[answer.reason] += 1


def _dtype(node: Node) -> str:
    values = (*node.operands(), *(result for result in node.results if result is not None))
    return next((v.type.dtype.value for v in values if isinstance(v.type, TensorType)), "none")
