"""Wrong answers to what core asks: what it can do, whether it is there, what its options are."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from conformance.tests.engine.faulty import Faulty, FaultyExecutable, honest
from conformance.tests.zoo._fault import Kind, Reference, by_rules
from fairlead.backend import Level, Options, Probe, Support
from fairlead.ir import Graph, Node
from fairlead.numpy._table import rules

KIND = Kind("protocol")
backend = KIND.backend

L0 = ("lifecycle/*",)


def _with(**changes: Any) -> Faulty:
    """A backend some of whose members are others."""
    return type("Changed", (Reference,), changes)()


@backend("ops/mul/f32/*", sole="ops")
def it_promises_what_it_declines():
    """Its capabilities list an op that it refuses."""
    no = Support.no("no multiplier", Level.IMPOSSIBLE)
    return Reference(declines={"aten.mul.Tensor": no}, ops={"aten.mul.Tensor": ()})


@backend("ops/mul/*", sole="ops")
def it_promises_a_dtype_that_it_declines():
    """Its capabilities list a dtype for an op that it refuses."""
    no = Support.no("not in this release", Level.PLANNED)
    return Reference(declines={"aten.mul.Tensor": no}, ops={"aten.mul.Tensor": ("f32",)})


@backend("lifecycle/asking-*", "graph/one_node/*", "ops/add/f32/*")
def it_declines_by_raising():
    """Asked for an op that it has not, it raises."""

    def supports(self: Faulty, node: Node, /) -> Support:
        raise NotImplementedError(node.op)

    return _with(supports=supports)


@backend("graph/one_node/*", "ops/add/f32/*", sole="runs")
def it_declines_when_it_runs():
    """It accepts everything, and raises when it is called."""

    def run(graph: Graph, inputs: Sequence[Any]) -> Any:
        raise NotImplementedError("no kernel")

    return Reference(run)


@backend("graph/one_node/*", "ops/add/f32/*", sole="compiles")
def it_declines_when_it_compiles():
    """It accepts everything, and raises when it is to compile."""

    def compile(self: Faulty, graph: Graph, options: Any, constants: Any, /) -> Any:
        raise NotImplementedError("no lowering")

    return _with(compile=compile)


@backend("lifecycle/asking-changes-no-answer/*", sole="supports-is-pure")
def its_answers_change():
    """Every other time it is asked it refuses."""
    turns = itertools.count()

    def supports(self: Faulty, node: Node, /) -> Support:
        return Support.yes() if next(turns) % 2 else Support.no("busy")

    return _with(supports=supports)


@backend("lifecycle/asking-changes-no-answer/*", sole="reasons")
def it_declines_without_a_reason():
    """It refuses what it does not know, and does not say why."""

    def supports(self: Faulty, node: Node, /) -> Support:
        return Support(Level.IMPOSSIBLE, "") if node.op.startswith("acme") else Reference.supports(self, node)

    return _with(supports=supports)


@backend("lifecycle/asking-changes-no-answer/*", sole="supports-never-raises")
def it_raises_for_what_it_never_heard_of():
    """An op that it does not know is a KeyError."""

    def supports(self: Faulty, node: Node, /) -> Support:
        if node.op.startswith("acme"):
            raise KeyError(node.op)
        return Reference.supports(self, node)

    return _with(supports=supports)


@backend("errors/too-many-arguments/*", sole="refused")
def it_overlooks_arguments():
    """Of an op that is given more than it takes it ignores what is too much."""
    right = rules()["aten.relu.default"]
    return Reference(by_rules({"aten.relu.default": lambda call, x, *rest: right(call, x)}))


@backend("errors/a-dimension-too-far/*", sole="clear")
def its_errors_say_nothing():
    """Whatever goes wrong is an error without a word."""

    def run(graph: Graph, inputs: Sequence[Any]) -> Any:
        try:
            return honest(graph, inputs)
        except Exception:
            raise ValueError from None

    return Reference(run)


@backend("lifecycle/its-capabilities-make-sense/*", sole="devices")
def it_runs_nowhere():
    """Its capabilities name no device."""
    return Reference(devices=())


@backend("lifecycle/its-capabilities-make-sense/*", sole="dtypes")
def its_dtypes_do_not_exist():
    """Its capabilities name element types that the IR has not."""
    return Reference(dtypes=("f32", "int4"))


@backend("lifecycle/probing-never-raises/*", "lifecycle/its-capabilities-make-sense/*", "graph/one_node/*")
def its_probe_raises():
    """Asked whether it is there, it raises."""

    def probe(self: Faulty) -> Probe:
        raise OSError("libacme.so: cannot open shared object file")

    return _with(probe=probe)


@backend("lifecycle/probing-never-raises/*", sole="probe")
def its_probe_changes():
    """Every probe tells another version."""
    turns = itertools.count()

    def probe(self: Faulty) -> Probe:
        return Probe(ok=True, devices=("cpu",), versions={"sdk": str(next(turns))})

    return _with(probe=probe)


@backend("lifecycle/its-options-have-defaults/*", sole="options")
def its_options_take_anything():
    """An option that does not exist is accepted."""

    class Lenient(Options, frozen=True, kw_only=True, forbid_unknown_fields=False):
        level: int = 0

    return _with(options_type=Lenient)


@backend("lifecycle/its-name-is-found/*", sole="name")
def it_has_another_name():
    """It is registered by one name and calls itself another."""
    made = Reference()

    class Renamed(Reference):
        @property
        def name(self) -> str:  # type: ignore[override]
            import traceback

            asked = any("_loading" in frame.filename for frame in traceback.extract_stack(limit=3))
            return "another" if asked else made.name

    return Renamed()


@backend("lifecycle/the-same-with-another-constant/*", "lifecycle/*")
def its_cache_forgets_constants():
    """Compiled graphs are found again by their ops and shapes, whatever the constants in them."""
    kept: dict[Any, Any] = {}

    class Caching(Reference):
        def compile(self, graph: Graph, options: Any, constants: Mapping[int, torch.Tensor], /) -> FaultyExecutable:
            key = tuple((n.op, tuple(str(r.type) for r in n.results if r)) for n in graph.nodes)
            return kept.setdefault(key, super().compile(graph, options, constants))

    return Caching()


def _storing() -> Faulty:
    def load(self: Faulty, data: bytes, graph: Graph, options: Any, constants: Any, /) -> FaultyExecutable:
        if data != b"acme" * 100:
            raise ValueError("damaged")
        return self.compile(graph, options, constants)

    return _with(dump=lambda self, executable: b"acme" * 100, load=load)


@backend("lifecycle/what-it-stores-it-loads/*", like=_storing, sole="round-trip")
def it_loads_something_else():
    """What it stored computes something else once it is loaded."""

    def load(self: Faulty, data: bytes, graph: Graph, options: Any, constants: Any, /) -> FaultyExecutable:
        made = self.compile(graph, options, constants)
        made._run = lambda graph, inputs: [r + 1 for r in honest(graph, inputs)]
        return made

    return _with(dump=lambda self, executable: b"acme", load=load)


@backend("lifecycle/what-is-damaged-it-does-not-load/*", like=_storing, sole="damaged")
def it_loads_what_is_damaged():
    """Whatever bytes it is given, it finds the graph in its memory."""

    def load(self: Faulty, data: bytes, graph: Graph, options: Any, constants: Any, /) -> FaultyExecutable:
        return self.compile(graph, options, constants)

    return _with(dump=lambda self, executable: b"acme" * 100, load=load)
