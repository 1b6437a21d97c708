"""What a faulty backend of the zoo is, and the backend that all of them are made from."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import random
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

import fairlead.numpy
from conformance.tests.engine.faulty import Faulty, Run, honest
from fairlead.backend import Support
from fairlead.ir import Graph, Node
from fairlead.numpy._table import full_name, rules
from fairlead.registry import registry
from fairlead_conformance import Level

NAME = "zoo"
"""What every backend of the zoo calls itself, so that none is known by its name."""


class Reference(Faulty):
    """The honest backend that the others are made from: NumPy computes what it has rules for."""

    name = NAME

    def supports(self, node: Node, /) -> Support:
        if node.op in self.declines:
            return self.declines[node.op]
        ops = {node.op, *(inner.op for region in node.regions for inner in region.walk())}
        lacking = sorted(op for op in ops if not fairlead.numpy.supports(op))
        return Support.no(f"there is no rule for {lacking[0]}") if lacking else Support.yes()


@dataclasses.dataclass(frozen=True)
class Fault:
    """A backend that is wrong in one thing.

    ``wrong``: what it does, in a sentence. ``aims``: where that shows, as ids of ops or patterns of ids of cases.
    ``make``: the backend. ``like``: an honest backend of the same capabilities. ``sole``: the one check that finds it.
    ``level``: the one whose cases catch it at the latest.
    """

    name: str
    kind: str
    wrong: str
    aims: tuple[str, ...]
    make: Callable[[], Faulty]
    like: Callable[[], Faulty] = Reference
    sole: str = ""
    level: Level = Level.L3


@contextlib.contextmanager
def registered(backend: Faulty) -> Iterator[str]:
    """Have a backend in the registry, as if a wheel provided it."""
    registry.register(backend, replace=True)
    try:
        yield backend.name
    finally:
        registry.unregister(backend.name)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Whatever a fault changes of the process within is as it was afterwards."""
    environment, handler = dict(os.environ), signal.getsignal(signal.SIGTERM)
    dtype, threads = torch.get_default_dtype(), torch.get_num_threads()
    numbers, drawn = random.getstate(), torch.get_rng_state()
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(environment)
        signal.signal(signal.SIGTERM, handler)
        torch.set_default_dtype(dtype)
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(False)
        torch.set_flush_denormal(False)
        random.setstate(numbers)
        torch.set_rng_state(drawn)


Rule = Callable[..., Any]


@contextlib.contextmanager
def replaced(changes: Mapping[str, Rule]) -> Iterator[None]:
    """Other rules for some ops, within."""
    table = rules()
    kept = {op: table[op] for op in changes}
    table.update(changes)
    try:
        yield
    finally:
        table.update(kept)


def by_rules(changes: Mapping[str, Rule]) -> Run:
    """How a backend runs a graph that has other rules for some ops."""

    def run(graph: Graph, inputs: Sequence[Any]) -> list[torch.Tensor]:
        with replaced(changes):
            return honest(graph, inputs)

    return run


class Kind:
    """A part of the zoo: what is listed in one file."""

    def __init__(self, name: str, level: Level = Level.L3) -> None:
        self.name = name
        self.level = level
        self.faults: list[Fault] = []

    def op(self, *ops: str, aims: Sequence[str] = ()) -> Callable[[Rule], Rule]:
        """Enter a wrong rule for ops: it gets the right one, then what a rule gets.

        Its name says which backend it makes, its docstring what is wrong. It shows in cases of the ops and of ``aims``.
        """
        names = tuple(full_name(op) for op in ops)

        def enter(rule: Rule) -> Rule:
            def make() -> Faulty:
                table = rules()
                return Reference(by_rules({op: _with(rule, table[op]) for op in names}))

            self._enter(rule, (*names, *aims), make)
            return rule

        return enter

    def backend(
        self, *aims: str, like: Callable[[], Faulty] = Reference, sole: str = ""
    ) -> Callable[[Callable[[], Faulty]], Callable[[], Faulty]]:
        """Enter a function that makes a backend; the cases in which the fault shows are named by patterns."""

        def enter(make: Callable[[], Faulty]) -> Callable[[], Faulty]:
            self._enter(make, aims, make, like, sole)
            return make

        return enter

    def results(
        self, *aims: str, sole: str = "", **capabilities: Any
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Enter a function of the right results and the inputs, which gives what the backend gives."""

        def enter(change: Callable[..., Any]) -> Callable[..., Any]:
            def make() -> Faulty:
                return Reference(lambda graph, inputs: change(honest(graph, inputs), inputs), **capabilities)

            self._enter(change, aims, make, lambda: Reference(**capabilities), sole)
            return change

        return enter

    def _enter(
        self,
        told: Callable[..., Any],
        aims: Sequence[str],
        make: Callable[[], Faulty],
        like: Callable[[], Faulty] = Reference,
        sole: str = "",
    ) -> None:
        wrong = " ".join((told.__doc__ or "").split())
        self.faults.append(Fault(told.__name__.strip("_"), self.name, wrong, tuple(aims), make, like, sole, self.level))


def _with(rule: Rule, right: Rule) -> Rule:
    return lambda call, *args: rule(right, call, *args)
