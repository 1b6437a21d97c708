"""Right forwards, wrong backwards."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from conformance.tests.engine.faulty import Faulty, honest
from conformance.tests.zoo._fault import Kind, Reference
from fairlead.ir import Graph, Role
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


def _in_one_buffer(kind: Of, kept: int, *, unseen: bool) -> Faulty:
    """A backend that leaves the results of one kind of graph, from the ``kept``-th on, in the same memory.

    ``unseen``: torch's count of the versions of a tensor does not tell that it was written.
    """
    memory: dict[Any, torch.Tensor] = {}

    def placed(index: int, r: torch.Tensor) -> torch.Tensor:
        place = memory.setdefault((index, r.shape, r.dtype), r.clone())
        if unseen:
            place.numpy()[...] = r.numpy()
            return place.detach()
        return place.copy_(r)

    def run(graph: Graph, inputs: Sequence[Any]) -> list[torch.Tensor]:
        found = honest(graph, inputs)
        if graph.kind is not kind:
            return found
        return [*found[:kept], *(placed(i, r) for i, r in enumerate(found[kept:]))]

    return Reference(run)


@backend("opgrad/mul/f32/*", "training/*")
def gradients_are_left_in_one_buffer():
    """All gradients are written into the same memory."""
    return _in_one_buffer(Of.backward, 0, unseen=False)


@backend("training/fifty-steps-of-gradient-descent/*", sole="loss-curve")
def gradients_vanish_after_many_steps():
    """From the 25th backward on, gradients are zero: a counter of steps runs over."""
    turns = itertools.count()

    def run(graph: Graph, inputs: Sequence[Any]) -> list[torch.Tensor]:
        found = honest(graph, inputs)
        return [r * 0 for r in found] if graph.kind is Of.backward and next(turns) > 24 else found

    return Reference(run)


@backend("training/fifty-steps-of-gradient-descent/*", sole="learned-weights")
def gradients_vanish_at_the_last_step():
    """From the 52nd backward on, after which no more losses are looked at, gradients are zero."""
    turns = itertools.count()

    def run(graph: Graph, inputs: Sequence[Any]) -> list[torch.Tensor]:
        found = honest(graph, inputs)
        return [r * 0 for r in found] if graph.kind is Of.backward and next(turns) > 50 else found

    return Reference(run)


@backend("training/two-forwards-before-their-backwards/*", sole="saved-tensors")
def saved_values_are_in_one_buffer():
    """What each forward keeps for its backward is written over what the last one kept."""
    return _in_one_buffer(Of.forward, 1, unseen=True)


@backend("training/two-forwards-before-their-backwards/*", sole="runs")
def saved_values_are_in_one_buffer_that_torch_sees_written():
    """As before, by torch's own ``copy_``: autograd refuses to go backward."""
    return _in_one_buffer(Of.forward, 1, unseen=False)


@backend("training/a-backward-kept-for-a-second/*", sole="retain-graph")
def saved_values_are_used_up():
    """The backward uses what was kept for it as scratch memory."""

    def run(graph: Graph, inputs: Sequence[Any]) -> list[torch.Tensor]:
        found = honest(graph, inputs)
        for item, x in zip(graph.inputs, inputs, strict=True):
            if graph.kind is Of.backward and item.role is Role.saved and isinstance(x, torch.Tensor):
                x.numpy()[...] = 0
        return found

    return Reference(run)
