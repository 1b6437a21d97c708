"""Random numbers of a backend's own that are not what was asked for, or that torch's generator knows nothing of."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy
import torch

import fairlead.numpy
from conformance.tests.engine.faulty import Faulty, array, tensor
from conformance.tests.zoo._fault import Kind, Reference, Rule, replaced
from fairlead.ir import Graph
from fairlead.ir import Kind as Of
from fairlead.numpy._table import rules

KIND = Kind("random numbers")
backend = KIND.backend

DROPOUT = ("semantics/dropout-drops-the-right-share/*",)
ANEW = ("semantics/each-call-draws-anew/*",)

Source = Callable[[], Any]
"""What gives a generator for one call of a graph that draws."""


def _from_torch() -> Any:
    """A generator seeded by the next number of torch's."""
    return _seeded(int(torch.randint(2**31, ()).item()))


def _seeded(seed: int) -> Any:
    return numpy.random.Generator(numpy.random.PCG64(seed))


def _drawing(source: Source = _from_torch, change: Any = None) -> Faulty:
    """A backend that draws its own numbers. ``change`` gets a graph and its results."""

    def run(graph: Graph, inputs: Sequence[Any]) -> list[torch.Tensor]:
        rng = source() if _draws(graph) else _seeded(0)
        given = [array(x) if isinstance(x, torch.Tensor) else x for x in inputs]
        found = [tensor(x) for x in fairlead.numpy.run(graph, given, rng=rng)]
        return change(graph, found) if change else found

    return Reference(run, rng=True)


def _draws(graph: Graph) -> bool:
    return any(rules()[node.op].__module__.endswith("_random") for node in graph.walk() if node.op in rules())


def _by_rule(op: str, rule: Rule) -> Faulty:
    """A backend that draws its own numbers, with another rule for an op."""
    made = _drawing()
    right = made.prepare

    def prepare(graph: Graph) -> Any:
        run = right(graph)

        def changed(graph: Graph, inputs: Sequence[Any]) -> Any:
            with replaced({op: rule}):
                return run(graph, inputs)

        return changed

    made.prepare = prepare
    return made


class _Changed:
    """A generator some of whose numbers are changed in one way."""

    def __init__(self, rng: Any, change: Any, *methods: str) -> None:
        self._rng = rng
        self._change = change
        self._methods = methods

    def __getattr__(self, name: str) -> Any:
        drawn = getattr(self._rng, name)
        if self._methods and name not in self._methods:
            return drawn
        return lambda *args, **named: self._change(drawn(*args, **named))


def _changed(change: Any, *methods: str) -> Faulty:
    return _drawing(lambda: _Changed(_from_torch(), change, *methods))


@backend(*ANEW, "semantics/dropout-drops-what-eager-drops/*", like=_drawing)
def the_generator_never_moves():
    """Each call draws the same numbers, whatever torch's generator says."""
    return _drawing(lambda: _seeded(7))


@backend("graph/random_numbers_*", like=_drawing, sole="generator")
def torchs_generator_is_left_where_it_was():
    """Numbers are drawn from a copy of torch's generator, which itself stays where it is."""

    def source() -> Any:
        state = torch.get_rng_state()
        rng = _from_torch()
        torch.set_rng_state(state)
        return rng

    return _drawing(source)


@backend(*ANEW, "semantics/another-seed-draws-others/*", like=_drawing)
def the_seed_is_ignored():
    """Numbers are drawn from the system, whatever the seed is."""
    return _drawing(lambda: numpy.random.Generator(numpy.random.PCG64()))


@backend("semantics/another-seed-draws-others/*", *ANEW, like=_drawing, sole="seed")
def seeding_starts_the_same_numbers_anew():
    """Whatever torch is seeded with, the numbers begin where they always do."""
    calls = itertools.count()

    def source() -> Any:
        nonlocal calls
        begun = torch.Generator().manual_seed(torch.initial_seed())
        if torch.equal(torch.get_rng_state(), begun.get_state()):
            calls = itertools.count()
        torch.randint(2**31, ())
        return _seeded(next(calls))

    return _drawing(source)


@backend("semantics/two-draws-in-one-program-differ/*", like=_drawing, sole="fresh-numbers")
def every_op_draws_the_same():
    """The seed of a call is that of each of its ops."""

    class Repeating:
        def __init__(self, seed: int) -> None:
            self._seed = seed

        def __getattr__(self, name: str) -> Any:
            return getattr(_seeded(self._seed), name)

    return _drawing(lambda: Repeating(int(torch.randint(2**31, ()).item())))


@backend(*DROPOUT, like=_drawing, sole="share")
def dropout_drops_nothing():
    """Every element is kept (seen in vendors' integrations)."""
    return _changed(lambda x: x * 0 + 1 - 2**-53)


@backend(*DROPOUT, like=_drawing, sole="share")
def dropout_drops_half_as_much():
    """The share that is dropped is not the one that was asked for."""
    return _changed(lambda x: x**2)


@backend(*DROPOUT, like=_drawing, sole="scale")
def dropout_forgets_to_scale():
    """What is kept is not divided by the probability of keeping it."""

    def rule(call: Any, x: Any, p: float, train: bool | None) -> Any:
        mask = call.rng.random(x.shape) >= (p if train is not False else 0)
        return numpy.where(mask, x, 0), mask

    return _by_rule("aten.native_dropout.default", rule)


@backend("semantics/noise-has-the-right-moments/*", like=_drawing, sole="moments")
def noise_is_bounded():
    """Normal numbers are squeezed between -1 and 1."""
    return _changed(numpy.tanh, "standard_normal")


@backend("training/dropout-drops-the-same-backwards/*", like=_drawing, sole="mask")
def the_mask_that_is_kept_is_another():
    """The mask that a training graph keeps for its backward is not the one that its forward applied."""

    def change(graph: Graph, found: list[torch.Tensor]) -> list[torch.Tensor]:
        if graph.kind is not Of.forward:
            return found
        return [found[0], *(r.roll(1) if r.dtype is torch.bool else r for r in found[1:])]

    return _drawing(change=change)
