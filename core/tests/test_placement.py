from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

import fairlead
from fairlead._eager import EagerBackend
from fairlead.backend import Support
from fairlead.ir import Node
from fairlead.placement import Why
from fairlead.registry import registry


class _Picky(EagerBackend):
    """Runs everything but Fourier transforms."""

    name = "picky"

    def supports(self, node: Node, /) -> Support:
        return Support.no("no transforms") if "fft" in node.op else Support.yes()


class _Willing(EagerBackend):
    name = "willing"


@pytest.fixture
def picky() -> Iterator[str]:
    """A backend that declines something, while another one stands ready to take it."""
    for backend in (_Picky(), _Willing()):
        registry.register(backend)
    yield "picky"
    for name in ("picky", "willing"):
        registry.unregister(name)


def test_the_report_names_the_backend_that_runs_a_declined_node(picky: str) -> None:
    """A run of few declined nodes goes to eager, whatever comes first in the cascade; the report says so."""
    compiled = fairlead.compile(
        lambda x: torch.fft.rfft(x.tanh()).abs() + 1, backend=picky, fallback=("willing", "eager")
    )
    compiled(torch.ones(2, 8))  # type: ignore[no-untyped-call]
    (graph,) = compiled.fairlead.placement.graphs  # type: ignore[attr-defined]
    assert {n.backend for n in graph.nodes if n.why is Why.declined} == {"eager"}
    assert [(p.backend, p.nodes) for p in graph.parts] == [("picky", 1), ("eager", 1), ("picky", 2)]
