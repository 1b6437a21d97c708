"""Backends that do nothing are right where nothing, zeros or the inputs are asked for; that is worth nothing."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from conformance.tests.engine.faulty import Faulty
from conformance.tests.zoo._fault import Reference, registered, undisturbed
from fairlead.backend import Support
from fairlead.interpret import torch_dtype
from fairlead.ir import Graph, dims
from fairlead_conformance import Level, Subject, execute, manifest
from fairlead_conformance._report import Judged, Machine, Run, report_of

pytestmark = pytest.mark.filterwarnings("ignore")

CASES = [c for n, c in enumerate(manifest(Level.L1)) if (c.mandatory and c.ops) or (c.ops and n % 60 == 0)]
"""The mandatory cases of ops, and one in sixty of the others."""


def declining() -> Faulty:
    return type("Declining", (Reference,), {"supports": lambda self, node: Support.no("nothing is done")})()


def _giving(give: Callable[[Graph, Sequence[Any]], list[torch.Tensor]]) -> Callable[[], Faulty]:
    return lambda: Reference(give)


def empty(graph: Graph, inputs: Sequence[Any]) -> list[torch.Tensor]:
    return [torch.empty(0) for _ in graph.outputs]


def zeros(graph: Graph, inputs: Sequence[Any]) -> list[torch.Tensor]:
    types = [value.tensor for value in graph.output_values()]
    return [torch.zeros([dims.evaluate(d, {}) for d in t.shape], dtype=torch_dtype(t.dtype)) for t in types]


def uninitialised(graph: Graph, inputs: Sequence[Any]) -> list[torch.Tensor]:
    """Of the right shapes and dtypes, with whatever is in the memory."""
    return [torch.empty_like(x) for x in zeros(graph, inputs)]


def its_inputs(graph: Graph, inputs: Sequence[Any]) -> list[torch.Tensor]:
    tensors = [x.clone() for x in inputs if isinstance(x, torch.Tensor)]
    return [tensors[min(i, len(tensors) - 1)] if tensors else torch.empty(0) for i in range(len(graph.outputs))]


def all_of_these(graph: Graph, inputs: Sequence[Any]) -> list[torch.Tensor]:
    """An input where one fits, zeros elsewhere."""
    fitting = {(x.shape, x.dtype): x for x in inputs if isinstance(x, torch.Tensor)}
    return [fitting.get((x.shape, x.dtype), x).clone() for x in zeros(graph, inputs)]


NOTHING = {
    "declines": declining,
    **{give.__name__: _giving(give) for give in (empty, zeros, uninitialised, its_inputs, all_of_these)},
}


@pytest.mark.parametrize("name", NOTHING)
def test_a_backend_that_does_nothing_scores_nothing(name: str) -> None:
    made = NOTHING[name]()
    with registered(made) as registered_as:
        results = []
        for case in CASES:
            with undisturbed():
                results.append(execute(case, Subject(registered_as)))
    started = datetime.datetime.now(datetime.UTC)
    run = Run(level=Level.L1, seed=0, device="cpu", command=("test",), started=started, seconds=1.0)
    machine = Machine(fairlead="0", python="3", torch="2", platform="any")
    found = report_of(CASES, results, backend=Judged(name="nothing"), machine=machine, run=run)
    assert (found.claim, found.correct.part, found.coverage.part) == (None, 0, 0)
