"""Every promise holds through every backend, and the committed page says of each what comes of it."""

from __future__ import annotations

import re

import pytest

from tests.conftest import REPOSITORY

from ._catalogue import BACKENDS, Promise
from ._hold import PROMISES, hold
from ._outcome import State
from ._page import PAGE, cells

pytestmark = [
    pytest.mark.filterwarnings(f"ignore:{warning}")
    for warning in (
        "Dynamo does not know how to trace:UserWarning",  # what is not allowed in a graph
        "The .grad attribute of a Tensor that is not a leaf:UserWarning",  # Dynamo asks, for backward hooks
        ".torch._prims_common.check. is deprecated:FutureWarning",  # Inductor calls it
        "<class 'torch.autograd.function.Function'> should not be instantiated:DeprecationWarning",  # Dynamo does
    )
]

SAMPLED = {"inductor": 6, "tvm": 6, "ipex": 6, "openvino": 2, "openxla": 2}
"""Backends that compile for long: one in so many promises is held to them here, all by ``make promises``."""

CELLS = [(p, b) for b in BACKENDS for i, p in enumerate(PROMISES) if i % SAMPLED.get(b, 1) == 0]


@pytest.mark.parametrize(("promise", "backend"), CELLS, ids=lambda v: v.name if isinstance(v, Promise) else v)
def test_it_holds(promise: Promise, backend: str) -> None:
    outcome = hold(promise, backend, "cpu")
    if outcome.state is State.not_run:
        assert promise.device == "cuda" or backend in ("cudagraphs", "tensorrt")
        return
    expected = promise.declined.get(backend)
    if expected is None:
        assert outcome.state is State.works, outcome
    else:
        assert outcome.state in (State.in_part, State.declined)
        assert all(re.search(expected, reason) for reason in outcome.reasons), outcome


@pytest.mark.gpu
@pytest.mark.parametrize("backend", ["eager", "inductor", "cudagraphs", "openxla"])
@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.name)
def test_it_holds_on_a_device(promise: Promise, backend: str) -> None:
    outcome = hold(promise, backend, "cuda")
    if backend != "openxla":
        may_decline = backend in promise.declined or backend in promise.on_cuda
        assert outcome.state in (State.works, State.not_run) or may_decline, outcome


def test_the_page_has_every_promise_on_every_backend() -> None:
    found = cells((REPOSITORY / PAGE).read_text("utf-8"))
    assert list(found) == [promise.text for promise in PROMISES]
    for row in found.values():
        assert list(row) == list(BACKENDS)
        assert all(cell.startswith(tuple(State)) for cell in row.values()), row


def test_the_page_says_what_the_tests_expect() -> None:
    found = cells((REPOSITORY / PAGE).read_text("utf-8"))
    for promise in PROMISES:
        for backend, cell in found[promise.text].items():
            if not cell.startswith(State.not_run):
                assert cell.startswith(State.works) == (backend not in promise.declined), (promise.text, backend)
