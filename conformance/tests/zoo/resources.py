"""Right answers that cost more at every call: memory, tensors, threads and files that are never given back."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import Any

import torch

from conformance.tests.engine.faulty import Faulty, FaultyExecutable, honest
from conformance.tests.zoo._fault import Kind, Reference
from fairlead.ir import Graph
from fairlead_conformance import Level

KIND = Kind("resources", Level.L4)
backend = KIND.backend

HANDLES = ("robustness/a-hundred-calls-leave-no-threads-and-no-files/*",)


def _beside(effect: Any) -> Faulty:
    """A backend that does something more at every call."""

    def run(graph: Graph, inputs: Sequence[Any]) -> list[torch.Tensor]:
        found = honest(graph, inputs)
        effect(inputs, found)
        return found

    return Reference(run)


@backend("robustness/five-hundred-calls-leave-no-memory/*", sole="resident-memory")
def its_memory_grows():
    """Each call leaves what it has computed, eight times, in memory that is never freed."""
    kept: list[Any] = []
    return _beside(lambda inputs, found: kept.extend(r.numpy().tobytes() * 8 for r in found))


@backend("robustness/five-hundred-calls-leave-no-tensors/*", sole="tensors")
def it_keeps_its_results():
    """Each call leaves its results alive."""
    kept: list[Any] = []
    return _beside(lambda inputs, found: kept.extend(r.clone() for r in found))


@backend("robustness/inputs-and-results-are-let-go/*", sole="tensors")
def it_keeps_its_last_inputs():
    """The inputs of all calls are kept, as for a later replay."""
    kept: list[Any] = []
    return _beside(lambda inputs, found: kept.append(tuple(inputs)))


@backend("robustness/a-model-is-let-go/*", like=lambda: Reference(bakes_constants=True), sole="weights")
def its_programs_live_for_ever():
    """What it compiled is kept, and with it the weights that it was given."""
    kept: list[Any] = []

    class Keeping(Reference):
        def compile(self, graph: Graph, options: Any, constants: Any, /) -> FaultyExecutable:
            kept.append(constants)
            return super().compile(graph, options, constants)

    return Keeping(bakes_constants=True)


@backend(*HANDLES, sole="threads")
def it_leaves_threads():
    """Each call starts a thread that waits for work that does not come."""

    def effect(inputs: Any, found: Any) -> None:
        threading.Thread(target=threading.Event().wait, args=(30,), daemon=True).start()

    return _beside(effect)


@backend(*HANDLES, sole="files")
def it_leaves_files_open():
    """Each call opens a file and never closes it."""
    return _beside(lambda inputs, found: os.open(os.devnull, os.O_RDONLY))
