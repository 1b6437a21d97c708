"""The smallest graph that fails as the whole does: one node where one is enough, else what delta debugging leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from fairlead._bisect._candidate import Candidate, Cutting
from fairlead._bisect._trials import Outcome, Trials
from fairlead.bisection import Failure
from fairlead.ir import Argument, Node, Output, Value

__all__ = ["SMALLER", "Note", "Reduction"]

SMALLER = 0.25
"""The share of the timeout after which a smaller graph hangs, where the whole did after all of it."""

Note = Callable[[str], None]


class Reduction:
    """A search whose ``best`` is the smallest candidate so far, and ``outcome`` what became of it.

    A candidate counts as failing where it fails like the whole. Its inputs are the values that they have in the
    whole, so that what a node gets does not depend on whether the backend ran those before it.
    """

    def __init__(self, whole: Candidate, outcome: Outcome, trials: Trials, note: Note) -> None:
        self.best, self.outcome = whole, outcome
        self._whole = whole
        self._failure = outcome
        self._share = SMALLER if outcome.failure is Failure.hang else 1.0
        self._trials = trials
        self._note = note

    def search(self) -> None:
        """Make ``best`` as small as it gets. Raises what `Trials.run` raises, and keeps what it has."""
        cutting = Cutting(self._whole)
        if not self._alone(cutting):
            self._thin(cutting)
        self._single_out()

    def search_alone(self) -> bool:
        """Make ``best`` a single node, and say whether there is one that fails alone."""
        found = self._alone(Cutting(self._whole))
        if found:
            self._single_out()
        return found

    def _alone(self, cutting: Cutting) -> bool:
        return any(self._fails(cutting.cut([node])) for node in self._suspects(cutting))

    def _suspects(self, cutting: Cutting) -> Iterator[Node]:
        """The nodes to try alone: the first whose result is wrong in the whole, or else one of each kind."""
        if self._failure.failure is not Failure.wrong:
            kinds = {_likeness(node): node for node in reversed(self._whole.graph.nodes) if _makes(node)}
            yield from reversed(kinds.values())
            return
        outcome = self._failure
        if len(self._whole.graph.outputs) < len(cutting.exposed.graph.outputs):
            self._note("looking at every result")
            outcome = self._trials.run(cutting.exposed)
        if outcome.failure is Failure.wrong and outcome.outputs:
            made = cutting.exposed.graph.outputs[outcome.outputs[0]].value
            assert isinstance(made, Value)
            yield self._whole.graph.producers()[made.id]

    def _thin(self, cutting: Cutting) -> None:
        """Leave runs of nodes out, half of them at first and single ones in the end (Zeller's ddmin, complements)."""
        nodes: Sequence[Node] = self._whole.graph.nodes
        size = len(nodes) // 2
        while size:
            place = 0
            while place < len(nodes):
                left = (*nodes[:place], *nodes[place + size :])
                if any(map(_makes, left)) and self._fails(cutting.cut(left)):
                    nodes = left
                else:
                    place += size
            size //= 2

    def _single_out(self) -> None:
        """Keep one output, a wrong one where numbers are wrong."""
        outputs = self.best.graph.outputs
        if len(outputs) > 1:
            for index in self.outcome.outputs or range(len(outputs)):
                value = outputs[index].value
                if self._fails(self.best.with_outputs([Output(value)])):
                    return

    def _fails(self, candidate: Candidate) -> bool:
        self._note(f"{len(candidate.graph.nodes)} of {len(self._whole.graph.nodes)} nodes")
        outcome = self._trials.run(candidate, self._share)
        if not outcome.same(self._failure):
            return False
        self.best, self.outcome = candidate, outcome
        return True


def _makes(node: Node) -> bool:
    return any(result is not None for result in node.results)


def _likeness(node: Node) -> tuple[object, ...]:
    """What a node is, whatever values it reads: nodes of one likeness compile alike."""
    results = tuple(None if r is None else r.type for r in node.results)
    return node.op, tuple(map(_kind, node.args)), results, len(node.regions) and id(node)


def _kind(argument: Argument) -> object:
    if isinstance(argument, tuple):
        return tuple(map(_kind, argument))
    return argument.type if isinstance(argument, Value) else (type(argument), argument)
