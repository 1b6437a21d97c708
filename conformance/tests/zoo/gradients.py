"""Right forwards, wrong backwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from conformance.tests.engine.faulty import Faulty, honest
from conformance.tests.zoo._fault import Kind, Reference
from fairlead.ir import Graph
from fairlead.ir import Kind as Of

KIND = Kind("gradients")
backend = KIND.backend

CASES = ("opgrad/mul/f32/*", "opgrad/nn_functional_linear/f32/*", "training/gradients-of-weights-and-inputs/*")


def _backwards(change: Any) -> Faulty:
    """A backend that changes the results of backward graphs alone."""

    def run(graph: Graph, inputs: Sequence[Any]) -> list[torch.Tensor]:
        found = honest(graph, inputs)
        return change(found) if graph.kind is Of.backward else found

    return Reference(run)


@backend(*CASES)
def gradients_are_zero():
    """All gradients are zero, as if the result were detached (seen in vendors' integrations)."""
    return _backwards(lambda found: [torch.zeros_like(r) for r in found])


def _in_float32(change: Any) -> Any:
    """Change the gradients of float32, as arrays."""

    def changed(r: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(np.array(change(r.numpy()), np.float32)) if r.dtype is torch.float32 else r

    return lambda found: [changed(r) for r in found]


@backend(*CASES)
def gradients_are_negated():
    """All gradients point the other way."""
    return _backwards(_in_float32(np.negative))


@backend(*CASES)
def gradients_are_a_hundredth_off():
    """All gradients are one per cent too large."""
    return _backwards(_in_float32(lambda r: r * 1.01))


@backend(*CASES)
def gradients_in_float16():
    """Gradients of float32 are rounded to float16."""
    return _backwards(_in_float32(lambda r: r.astype(np.float16)))


@backend(*CASES)
def gradients_in_the_reverse_order():
    """Gradients of one shape are exchanged."""

    def exchanged(found: list[torch.Tensor]) -> list[torch.Tensor]:
        for i, a in enumerate(found):
            for j, b in enumerate(found[i + 1 :], i + 1):
                if a.shape == b.shape and a.dtype == b.dtype:
                    found[i], found[j] = b, a
                    return found
        return found

    return _backwards(exchanged)


@backend(*CASES, "training/gradients-add-up-over-calls/*")
def gradients_of_the_first_call():
    """The gradients of the first call are given for all later ones."""

    def prepare(graph: Graph) -> Any:
        kept: list[Any] = []

        def run(graph: Graph, inputs: Sequence[Any]) -> list[torch.Tensor]:
            if graph.kind is not Of.backward:
                return honest(graph, inputs)
            kept.append(kept[0] if kept else honest(graph, inputs))
            return [r.clone() for r in kept[0]]

        return run

    return Reference(prepare=prepare)


@backend("opgrad/mul/f32/*", "training/*")
def gradients_are_left_in_one_buffer():
    """All gradients are written into the same memory."""
    memory: dict[Any, torch.Tensor] = {}

    def run(graph: Graph, inputs: Sequence[Any]) -> list[torch.Tensor]:
        found = honest(graph, inputs)
        if graph.kind is not Of.backward:
            return found
        return [memory.setdefault((i, r.shape, r.dtype), r.clone()).copy_(r) for i, r in enumerate(found)]

    return Reference(run)
