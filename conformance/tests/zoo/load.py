"""Right when one program runs at a time, a few times: wrong beside others, in threads, and after many calls."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from typing import Any

import torch

from conformance.tests.engine.faulty import Run, honest
from conformance.tests.zoo._fault import Kind, Reference
from fairlead.ir import Graph
from fairlead_conformance import Level

KIND = Kind("load", Level.L4)
backend = KIND.backend

PAUSE = 0.002
"""Seconds in which another thread comes between."""


@backend("robustness/one-program-in-*", sole="threads")
def its_scratch_is_shared_by_threads():
    """The inputs of a call are kept in the program while it runs, where a call of another thread puts its own."""

    def prepare(graph: Graph) -> Run:
        kept: list[Any] = [None]

        def run(graph: Graph, inputs: Sequence[Any]) -> list[torch.Tensor]:
            kept[0] = list(inputs)
            time.sleep(PAUSE)
            return honest(graph, kept[0])

        return run

    return Reference(prepare=prepare)


@backend("robustness/a-program-called-within-another/*", sole="re-entrancy")
def a_program_takes_the_memory_of_the_last_one():
    """Where a program has several results, the next one takes their memory for its own."""
    last: list[tuple[Graph, list[torch.Tensor]]] = []

    def prepare(graph: Graph) -> Run:
        def run(graph: Graph, inputs: Sequence[Any]) -> list[torch.Tensor]:
            found = honest(graph, inputs)
            for place in last[0][1] if last and last[0][0] is not graph else ():
                if place.shape == found[0].shape:
                    found[0] = place.copy_(found[0])
            last[:] = [(graph, list(found))] if len(found) > 1 else []
            return found

        return run

    return Reference(prepare=prepare)


@backend("robustness/a-hundred-results-are-kept/*", sole="results-kept")
def its_results_are_in_a_ring():
    """The 65th result is written over the first."""

    def prepare(graph: Graph) -> Run:
        ring: list[list[torch.Tensor]] = []
        turns = itertools.count()

        def run(graph: Graph, inputs: Sequence[Any]) -> list[torch.Tensor]:
            found = honest(graph, inputs)
            ring.append(found)
            if len(ring) <= 64:
                return found
            places = ring[next(turns) % 64]
            return [place.copy_(r) if place.shape == r.shape else r for place, r in zip(places, found, strict=True)]

        return run

    return Reference(prepare=prepare)


@backend("robustness/twenty-calls-give-the-same-bits/*", sole="same-bits")
def it_tunes_itself():
    """From the tenth call on it uses another algorithm, whose last bits are others."""

    def prepare(graph: Graph) -> Run:
        turns = itertools.count()

        def run(graph: Graph, inputs: Sequence[Any]) -> list[torch.Tensor]:
            found = honest(graph, inputs)
            if next(turns) < 10:
                return found
            return [torch.from_numpy(r.numpy() * (1 + r.numpy().dtype.type(2.0**-22))) for r in found]

        return run

    return Reference(prepare=prepare)
