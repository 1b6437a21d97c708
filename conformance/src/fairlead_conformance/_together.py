"""Several cases as one graph, for a backend that compiles even the smallest graph for long.

The graphs of the cases stand side by side in one, which is compiled and called as that of a case is, under every check;
each output is held to what its own case says is right. Cases that ask one graph of other values, such as NaN, are
further calls of it: it is there once. What is found wrong is some case's doing, and so is a decline:
these cases are then judged alone. So the only thing that is decided here is that cases pass, in a graph that is not
theirs alone. That is as good as by itself for the values; what a backend does to a graph of one node is not seen.
"""

from __future__ import annotations

import bisect
import contextlib
import itertools
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from fairlead.ir import Graph, Kind, Role, Value
from fairlead.passes import substitute
from fairlead_conformance._calls import Checked
from fairlead_conformance._case import Case
from fairlead_conformance._execute import exact_products, lacking
from fairlead_conformance._families import family
from fairlead_conformance._graphs import asked
from fairlead_conformance._observation import Observation
from fairlead_conformance._oracle import Joint, Reference, adds_in_any_order
from fairlead_conformance._parts import parts_of
from fairlead_conformance._result import Result
from fairlead_conformance._status import Status
from fairlead_conformance._subject import Subject
from fairlead_conformance._witness import relatives

__all__ = ["execute_together", "joined"]


def execute_together(cases: Sequence[Case], subject: Subject) -> tuple[Result, ...]:
    """Those of the cases that pass as one graph; the others are to be executed alone. Never raises."""
    start = time.perf_counter()
    with contextlib.suppress(Exception), exact_products(subject.place):
        members = [member for case in cases if (member := _member(case, subject))]
        if len(members) > 1:
            groups = _by_graph(members)
            references = [group[0].reference for group in groups]
            own = len(members[0].calls)
            rounds = own * max(map(len, groups))
            calls = [[x for g in groups for x in g[k // own % len(g)].calls[k % own]] for k in range(rounds)]
            seen = _Seen([len(r.graph.outputs) for r in references], own)
            graph = joined([r.graph for r in references])
            Checked(graph, Joint(references), subject, seen).check(calls, range(0, rounds, own))
            seconds = (time.perf_counter() - start) / len(members)
            counted = [(m, seen.counts[g, n]) for g, group in enumerate(groups) for n, m in enumerate(group)]
            return tuple(_passed(m, seen, count, seconds) for m, count in counted if count)
    return ()


def joined(graphs: Iterable[Graph]) -> Graph:
    """One graph of static inference graphs, with the inputs, nodes and outputs of the first, the second, and so on."""
    numbers = itertools.count()
    inputs, nodes, outputs = [], [], []
    for graph in graphs:
        defined = [*(i.value for i in graph.inputs), *(r for n in graph.nodes for r in n.results if r is not None)]
        own = {value.id: Value(next(numbers), value.type) for value in defined}
        inputs += [msgspec.structs.replace(i, value=own[i.value.id], name="") for i in graph.inputs]
        nodes += [
            msgspec.structs.replace(
                node,
                args=substitute(node.args, own),
                results=tuple(None if r is None else own[r.id] for r in node.results),
            )
            for node in graph.nodes
        ]
        outputs += [
            msgspec.structs.replace(o, value=own[o.value.id]) if isinstance(o.value, Value) else o
            for o in graph.outputs
        ]
    return Graph(
        name="together",
        kind=Kind.inference,
        inputs=tuple(inputs),
        nodes=tuple(nodes),
        outputs=tuple(outputs),
        symbols=(),
    )


@dataclass(frozen=True)
class _Member:
    case: Case
    reference: Reference
    calls: Sequence[Sequence[Any]]


class _Seen(Observation):
    """Counts by graph, and by case of it, each of which has so many ``calls``; ``outputs``: how many each graph has."""

    def __init__(self, outputs: Sequence[int], calls: int) -> None:
        super().__init__()
        self._ends = list(itertools.accumulate(outputs))
        self._of_a_case = calls * self._ends[-1]
        self._counted = 0
        self.counts: Counter[tuple[int, int]] = Counter()

    def count(self, output: int, elements: int) -> None:
        super().count(output, elements)
        self.counts[bisect.bisect_right(self._ends, output), self._counted // self._of_a_case] += elements
        self._counted += 1


def _by_graph(members: Iterable[_Member]) -> list[list[_Member]]:
    """The cases of each graph, in the order of the first of each."""
    groups: list[list[_Member]] = []
    for member in members:
        own = next((g for g in groups if g[0].reference.graph == member.reference.graph), None)
        if own is None:
            groups.append([member])
        else:
            own.append(member)
    return groups


def _member(case: Case, subject: Subject) -> _Member | None:
    """A case that is one graph, of which the backend takes all; None for any other."""
    example = getattr(family(case.family), "example", None)
    if example is None or lacking(case, subject):
        return None
    with contextlib.suppress(Exception):  # alone, it says what
        graph, inputs = example(case, subject)
        reference, calls = asked(graph, inputs, subject)
        graph = reference.graph
        if _stands_beside(graph, subject) and [part.backend for part in parts_of(graph, subject)] == [subject.name]:
            return _Member(case, reference, calls)
    return None


def _stands_beside(graph: Graph, subject: Subject) -> bool:
    """Whether all that is to be seen of a graph is seen of it in a larger one."""
    has_weights = any(item.role in (Role.parameter, Role.buffer) for item in graph.inputs)
    if graph.kind is not Kind.inference or (has_weights and subject.capabilities.bakes_constants):
        return False
    if graph.symbols or any(node.regions for node in graph.nodes):
        return False
    return bool(graph.nodes) and not adds_in_any_order(graph)


def _passed(member: _Member, seen: Observation, compared: int, seconds: float) -> Result:
    """What was borrowed for several graphs counts for each that it may have been borrowed for."""
    ops = {node.op for node in member.reference.graph.walk()}
    own = {f"aten.{name}" for op in ops for name in relatives(op)}
    extern = seen.extern & own
    return Result(
        id=member.case.id,
        status=Status.PASS_EXTERN if extern else Status.PASS_NATIVE,
        native=tuple(sorted(seen.native & ops)),
        extern=tuple(sorted(extern)),
        compared=compared,
        seconds=seconds,
    )
