"""A program whose calls are repeated op by op in torch, and compared: all of them, some, or the first of each kind."""

from __future__ import annotations

import itertools
import logging
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import torch

from fairlead._accuracy import Reference, floor_of
from fairlead._failures import Target, graph_accuracy_error, part_accuracy_error
from fairlead._messages import cause
from fairlead._precision import PreciseProgram, accepted_by_torch, devices_of
from fairlead._program import Binding, Step
from fairlead.backend import Precision
from fairlead.interpret import in_clean_thread
from fairlead.ir import Graph, Role
from fairlead.partition import DRAWS, Part
from fairlead.passes import communicates, draws

_log = logging.getLogger("fairlead.verify")

Verify: TypeAlias = Literal["first", "always"] | float
"""Which calls are verified: the first of each graph, sizes and weights, all, or this share of them."""

_GOLDEN = (5**0.5 - 1) / 2
"""Multiples of it, less their whole part, spread evenly over 0 to 1 and never repeat: a share of the calls that is the
same in every process, in step with nothing in the program, and needs no generator.
"""


class Subject(NamedTuple):
    """What is verified: the graph as it was captured, the backend asked for, and which calls.

    ``ran_on`` says what a Part runs on, after whatever has failed.
    """

    graph: Graph
    backend: Target
    verify: Verify
    ran_on: Callable[[Part], Target]


class VerifiedProgram(PreciseProgram):
    """A program that is compared with torch as `Subject` says; `AccuracyError` where it is wrong.

    Each Part is compared on what it was given, and so are the outputs with those of the captured graph, which sees what
    passes do, and weights that are not those of now. What a Part on another backend than `DRAWS` draws is not compared,
    nor what is made of it; nor are graphs with collectives, which would have to be repeated in step.
    """

    def __init__(self, subject: Subject, precision: Precision | None, *program: Any) -> None:
        super().__init__(precision, *program)
        self._subject = subject
        self._calls = itertools.count()
        self._agreed: weakref.WeakKeyDictionary[Binding, set[tuple[int, ...]]] = weakref.WeakKeyDictionary()
        self._generators = _generators(subject.graph) if any(map(draws, subject.graph.nodes)) else ()
        self._exchanges = any(map(communicates, subject.graph.nodes))
        self._said: set[str] = set()

    def _run(self, binding: Binding, steps: Sequence[Step], registers: list[Any]) -> None:
        sizes = tuple(binding.layout.outputs.environment(registers).values())
        if not self._is_due(binding, sizes):
            super()._run(binding, steps, registers)
            return
        before = _states(self._generators)
        graph = self._subject.graph
        whole = self._reference(graph, _kept(graph, registers[: len(graph.inputs)]))
        after = _states(self._generators)
        _restore(self._generators, before)
        for step in steps:
            self._compare_step(binding, step, registers)
        if whole is not None and self._drew_alike(steps, after):
            self._compare_outputs(whole, binding.outputs(registers))
        self._agreed.setdefault(binding, set()).add(sizes)

    def _is_due(self, binding: Binding, sizes: tuple[int, ...]) -> bool:
        match self._subject.verify:
            case "always":
                return True
            case "first":
                return sizes not in self._agreed.get(binding, ())
            case share:
                return next(self._calls) * _GOLDEN % 1.0 < share

    def _compare_step(self, binding: Binding, step: Step, registers: list[Any]) -> None:
        part = step.part
        inputs = _kept(part.graph, [registers[i] for i in step.part_inputs])
        comparable = part.backend != DRAWS and not _draws(part)
        reference = self._reference(part.graph, inputs) if comparable else None
        super()._run(binding, (step,), registers)
        if reference is None:
            return
        verdict = in_clean_thread(lambda: reference.judge(registers[step.start : step.stop]))
        if verdict.problem:
            baked = bool(step.executable.baked)
            raise part_accuracy_error(part, self._subject.ran_on(part), inputs, verdict, baked=baked)

    def _compare_outputs(self, whole: Reference, outputs: Sequence[Any]) -> None:
        verdict = in_clean_thread(lambda: whole.judge([x for x in outputs if isinstance(x, torch.Tensor)]))
        if verdict.problem:
            raise graph_accuracy_error(self._subject.graph, self._subject.backend, whole.inputs, verdict)

    def _reference(self, graph: Graph, inputs: Sequence[Any]) -> Reference | None:
        if self._exchanges:
            self._say(f"graph {graph.name} is not verified: processes would have to repeat what they exchange")
            return None
        try:
            floor = floor_of(self._precision or accepted_by_torch(graph))
            return in_clean_thread(lambda: Reference(graph, inputs, floor))
        except Exception as error:
            self._say(f"graph {graph.name} is not verified: torch cannot repeat it: {cause(error)}")
            return None

    def _drew_alike(self, steps: Sequence[Step], after: Sequence[torch.Tensor]) -> bool:
        """Whether the program has drawn the random numbers that torch drew when it repeated the call."""
        drawing = next((s.part for s in steps if s.part.backend != DRAWS and _draws(s.part)), None)
        if drawing is not None:
            self._say(f"what {drawing.backend!r} draws in Part {drawing.graph.name} is not verified")
            return False
        if not all(map(torch.equal, _states(self._generators), after)):
            self._say(f"graph {self._subject.graph.name} is not verified: others drew from the generator meanwhile")
            return False
        return True

    def _say(self, what: str) -> None:
        if what not in self._said:
            self._said.add(what)
            _log.warning("%s", what)


def _kept(graph: Graph, inputs: list[Any]) -> list[Any]:
    """The inputs, with copies of those that the graph writes to: an executable may do that itself."""
    for output in graph.outputs:
        if output.role is Role.mutation and output.target is not None:
            inputs[output.target] = inputs[output.target].clone()
    return inputs


def _draws(part: Part) -> bool:
    return any(map(draws, part.graph.nodes))


def _generators(graph: Graph) -> tuple[torch.device, ...]:
    """The devices of the graph's tensors, each of which has a generator; the CPU's first."""
    return tuple(map(torch.device, sorted({"cpu", *devices_of(graph)}, key=lambda name: (name != "cpu", name))))


def _states(devices: Sequence[torch.device]) -> list[torch.Tensor]:
    return [torch.get_rng_state() if d.type == "cpu" else torch.cuda.get_rng_state(d) for d in devices]


def _restore(devices: Sequence[torch.device], states: Sequence[torch.Tensor]) -> None:
    for device, state in zip(devices, states, strict=True):
        if device.type == "cpu":
            torch.set_rng_state(state)
        else:
            torch.cuda.set_rng_state(state, device)
