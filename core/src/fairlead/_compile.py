"""From a captured graph to a program: passes, placement, and the cascade of backends that compile its Parts."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec
import torch

from fairlead import _debug, _failures, _hook_calls, _settings, hooks
from fairlead._benchmark import BenchmarkedProgram, Choice, Trials
from fairlead._first_call import MeasuredProgram, is_worth_measuring
from fairlead._heap import keep_freed_memory, keep_memory_of_steps
from fairlead._precision import PreciseProgram, devices_of, options_of, set_to
from fairlead._program import Plan, Program, Runnable
from fairlead._registry import registry
from fairlead._second_call import Step
from fairlead._stages import Stage
from fairlead._verified import Subject, VerifiedProgram, Verify
from fairlead._worth import taking_turns
from fairlead.backend import Backend, Executable, Options, Precision, Selective, Support
from fairlead.errors import (
    CompileError,
    FairleadError,
    NotCompiledError,
    PlacementError,
    PluginError,
    RegistryError,
)
from fairlead.explanation import Recompilation
from fairlead.ir import Graph, Kind, Node, Role, TensorType, Value, verify
from fairlead.partition import DRAWS, Assignment, Part, assign, split, verdict
from fairlead.passes import (
    communicates,
    decompose,
    eliminate_common_subexpressions,
    even_bags,
    fold_constants,
    hoist,
    split_dropout,
    unroll_recurrences,
    view_overwritten_inputs,
)
from fairlead.placement import GraphPlacement, NodePlacement, PartPlacement, Placement, Why

if TYPE_CHECKING:
    from fairlead._capture import Captured

_log = logging.getLogger("fairlead.compile")


Rng: TypeAlias = Literal["eager"]
"""Whose random numbers a program has: those that eager would draw in its place."""


class Request(msgspec.Struct, frozen=True):
    """What the caller asked for: a backend by name, its options, and what may happen to what it declines.

    ``max_fallback``: how many nodes of a graph (int), or which share of them (float), may be declined; None is any
    number. ``by_device``: the backends for types of devices, where the caller named none; `on` chooses. ``verify``:
    which calls are compared with torch; None is none of them. ``rng``: ``"eager"`` has torch draw all random numbers;
    None leaves them to backends that draw themselves. ``precision``: the least that is accepted of float32; None
    is what backends do by default, and what torch is set to. ``share_weights``: no backend is offered weights to hold.
    ``benchmark``: True has the backend and those of ``fallback`` tried on the first calls of each graph, None has eager
    tried beside the backend at the first; False is neither.
    """

    backend: str
    options: Mapping[str, Any] = {}
    fallback: tuple[str, ...] = ("inductor", "eager")
    max_fallback: int | float | None = None
    by_device: Mapping[str, str] = {}
    verify: Verify | None = None
    rng: Rng | None = None
    precision: Precision | None = None
    share_weights: bool = False
    benchmark: bool | None = None

    def on(self, graph: Graph) -> Request:
        """The request for a graph. Where its tensors are on several devices, that beside the CPU decides."""
        if not self.by_device:
            return self
        types = (i.value.type for i in graph.inputs)
        devices = {t.device.partition(":")[0] for t in types if isinstance(t, TensorType)}
        return msgspec.structs.replace(self, backend=self.backend_of(devices))

    def backend_of(self, devices: Set[str]) -> str:
        """The backend for tensors on devices of these types."""
        found = next(iter(sorted(devices - {"cpu"})), "cpu")
        return self.by_device.get(found, self.backend)


class _Record:
    """The placement of one graph while its Parts are being compiled."""

    def __init__(self, graph: GraphPlacement) -> None:
        self.graph = graph
        self.parts: dict[str, PartPlacement] = {}

    def note(self, part: Part, backend: str, note: str) -> None:
        self.parts[part.graph.name] = PartPlacement(backend, len(part.graph.nodes), note)

    def placement(self) -> GraphPlacement:
        return msgspec.structs.replace(self.graph, parts=tuple(self.parts.values()))


class Session:
    """All graphs of one compiled program."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self._records: list[_Record] = []
        self._programs: list[Runnable] = []
        self._targets: dict[str, tuple[Backend[Any], Options]] = {}
        self._transforms: set[str] = set()
        self.is_frozen = False
        self.recompilations: list[Recompilation] = []
        self._trials = Trials(lambda: not self.is_frozen)
        keep_freed_memory()  # for what runs between graphs too

    @property
    def placement(self) -> Placement:
        """Where the nodes of every graph so far went, and why."""
        return Placement(tuple(r.placement() for r in self._records))

    @property
    def has_programs(self) -> bool:
        """Whether anything was compiled so far."""
        return bool(self._programs)

    def refresh(self) -> None:
        """Read all weights anew at the next call."""
        for program in self._programs:
            program.refresh()

    def check(self) -> None:
        """Find the backends that may be meant and read the options, without importing an SDK."""
        for name in {self.request.backend, *self.request.by_device.values()}:
            options_of(registry.get(name), self.request.options, self.request.precision)

    def stand_in(self, backend: Backend[Any]) -> None:
        """Have this object take the place of the backend of its name in what is built from now on."""
        self._targets[backend.name] = backend, options_of(backend, self.request.options, self.request.precision)

    def recomputes(self, inputs: Sequence[Any]) -> bool:
        """Whether what these inputs are computed with has a backward read less of its forward, and compute it anew."""
        name = self.request.backend_of({x.device.type for x in inputs if isinstance(x, torch.Tensor)})
        backend = self._targets[name][0] if name in self._targets else _optional(name)
        return backend is not None and backend.capabilities.recomputes

    def permit(self) -> None:
        """Raise where nothing may be compiled: the program is frozen."""
        if self.is_frozen:
            raise NotCompiledError(
                "a frozen program has nothing compiled for its weights as they are now, or for what it does next",
                where=f"frozen on {self.request.backend!r}",
                next="call refresh() of what freeze() gave after weights change, or warm up more before freezing",
            )

    def build(self, captured: Captured, step: Step | None = None) -> Runnable:
        """A program for a captured graph. Raises where the placement is not what the caller demands.

        ``step``: what eager would run in place of it and of the other graphs of the same step.
        """
        self.permit()
        trains = captured.is_step or captured.graph.kind is not Kind.inference
        if trains and "cpu" in devices_of(captured.graph):
            keep_memory_of_steps()
        request = self.request.on(captured.graph)
        if request.backend not in self._targets:
            backend: Backend[Any] = registry.ready(request.backend)
            self._targets[request.backend] = backend, options_of(backend, request.options, request.precision)
        build = _Build(request, *self._targets[request.backend], captured, len(self._records), self.permit)
        program: Runnable = build.program()
        if request.benchmark and build.record.graph.native and not _settings.strict():
            program = self._benchmarked(build, program)
        elif request.benchmark is None and build.is_measured():
            program = self._measured(build, program, step)
        self._records.append(build.record)
        self._programs.append(program)
        return program

    def _benchmarked(self, asked: _Build, program: Runnable) -> Runnable:
        """The program, in turns with those of the cascade, until it is known which is quickest."""
        request, index = asked.request, len(self._records)
        builds, programs = {request.backend: asked}, {request.backend: program}
        for place, name in enumerate(request.fallback):
            backend = _optional(name)
            if backend is not None and name not in builds:
                after = request.fallback[place + 1 :]
                alone = msgspec.structs.replace(request, backend=name, options={}, fallback=after)
                options = options_of(backend, None, request.precision)
                builds[name] = _Build(alone, backend, options, asked.captured, index, self.permit)
                with contextlib.suppress(PlacementError):  # nobody after it takes what it declines
                    programs[name] = builds[name].program()

        def settled(choice: Choice) -> None:
            if choice.backend != request.backend:
                self._records[index] = builds[choice.backend].takes_from(request.backend, choice)

        return BenchmarkedProgram(asked.graph, programs, self._trials, settled) if len(programs) > 1 else program

    def _measured(self, asked: _Build, program: Runnable, step: Step | None) -> Runnable:
        """The program, or eager from the first call on, where that is quicker."""
        request, captured, index = asked.request, asked.captured, len(self._records)
        as_captured = msgspec.structs.replace(captured.canonical, name=asked.name)
        graph = unroll_recurrences(as_captured)
        backend: Backend[Any] = registry.ready(DRAWS)
        options = options_of(backend, None, request.precision)
        constants = tuple(captured.constants.values())

        def eager() -> Callable[[list[Any]], Any]:
            executable = backend.compile(graph, options, {})

            def run(args: list[Any]) -> Any:
                with set_to(request.precision, on_cuda=False):
                    return executable([*args, *constants])

            return run

        def left_to_eager(choice: Choice) -> Runnable:
            alone = msgspec.structs.replace(request, backend=DRAWS, options={}, fallback=())
            build = _Build(alone, backend, options, captured, index, self.permit)
            made = build.program()
            self._records[index] = build.takes_from(request.backend, choice)
            return made

        if request.precision is not None:  # which torch is not set to in a backward
            step = None
        if graph is not as_captured:  # Dynamo's graph has the tree
            step = None
        return MeasuredProgram(graph, request.backend, program, eager, left_to_eager, step)

    def ran_in_torch(self, name: str, kind: Kind, ops: Sequence[str], reason: str) -> None:
        """Take note of a graph that could not be captured and that torch runs as it is; raises over budget."""
        taker = "eager" if "eager" in (self.request.backend, *self.request.fallback) else ""
        nodes = tuple(NodePlacement(op, taker, Why.declined, f"not captured: {reason}") for op in ops)
        graph = GraphPlacement(name, kind, self.request.backend, nodes)
        _enforce(self.request, graph)
        record = _Record(graph)
        record.parts[name] = PartPlacement("eager", len(nodes), "as torch captured it")
        self._records.append(record)

    def ran_within(
        self, transform: str, reason: str = "torch compiles nothing within a transform; compile the transform instead"
    ) -> None:
        """Take note, once, of calls within a transform, as of ``torch.func``, which eager runs; raises over budget."""
        if transform in self._transforms:
            return
        self.ran_in_torch(f"within {transform}", Kind.inference, (transform,), reason)
        self._transforms.add(transform)
        _log.warning(
            "a program compiled for %r runs in eager mode within %s: %s", self.request.backend, transform, reason
        )


class _Build:
    """The making of one program."""

    def __init__(
        self,
        request: Request,
        backend: Backend[Any],
        options: Options,
        captured: Captured,
        index: int,
        permit: Callable[[], None],
    ) -> None:
        self.request = request
        self._permit = permit
        self.backend = backend
        self.options = options
        self.constants = captured.constants
        self.kind = captured.graph.kind
        self.name = f"{'step' if captured.is_step else self.kind}_{index}"
        self.captured = captured
        self._named = msgspec.structs.replace(captured.graph, name=self.name)
        with _hook_calls.stage(Stage.passes, self.name):
            self.graph = self._prepared(captured.canonical)

    def program(self) -> Program:
        with _hook_calls.stage(Stage.placement, self.name):
            plan, placement = self._plan(self._static())
        _debug.write_graph(self._named, plan.graph, plan.parts, placement)
        _enforce(self.request, placement)
        self.record = _Record(placement)
        program = plan, lambda: self._plan(())[0], self._compile, self._rescue, self._permit
        verify, precision = self.request.verify, self.request.precision
        if verify is None:
            return Program(*program) if precision is None else PreciseProgram(precision, *program)
        subject = Subject(self._named, self._target(self.backend.name), verify, self._ran_on)
        return VerifiedProgram(subject, precision, *program)

    def is_measured(self) -> bool:
        """Whether eager may have the graph where it is quicker, and that is found out."""
        request = self.request
        is_free = request.max_fallback is None and request.verify is None and not self.captured.is_step
        if DRAWS not in request.fallback or not is_free or _settings.strict():
            return False
        compiles = any(n.backend not in ("", DRAWS) for n in self.record.graph.nodes)
        return compiles and is_worth_measuring(self.captured.canonical)

    def takes_from(self, asked: str, choice: Choice) -> _Record:
        """The record of the graph as it runs here, because the backend that was asked for is slower."""
        mine, reason = self.record.graph, choice.reason(asked)
        nodes = tuple(
            msgspec.structs.replace(n, why=Why.declined, reason=reason) if n.why is Why.native else n
            for n in mine.nodes
        )
        graph = msgspec.structs.replace(mine, backend=asked, nodes=nodes)
        if choice.of == "a step":
            record = _Record(graph)
            record.parts[self.name] = PartPlacement(DRAWS, len(nodes), "as torch captured it")
            return record
        self.record.graph = graph
        return self.record

    def _ran_on(self, part: Part) -> _failures.Target:
        return self._target(self.record.parts[part.graph.name].backend)

    def _target(self, name: str) -> _failures.Target:
        """A backend with the caller's options alone: bisect compares with float32, whatever precision was accepted."""
        given = self.request.options if name == self.request.backend else None
        return _failures.Target(name, options_of(registry.get(name), given, None))

    def _prepared(self, graph: Graph) -> Graph:
        graph = msgspec.structs.replace(graph, name=self.name)
        origin = next((n.location for n in graph.nodes if n.location), None)
        _hook_calls.captured(graph, origin)
        passes = _hook_calls.passes(self.backend)
        graph = _apply(graph, passes, hooks.Stage.composite)
        if not self.backend.capabilities.rng or (self.request.rng == "eager" and self.backend.name != DRAWS):
            graph = split_dropout(graph)
        how = self.backend.capabilities.recurrences
        graph = unroll_recurrences(graph, in_blocks="in_blocks" in how, long_rows="long_rows" in how)
        graph = decompose(graph, self.backend.capabilities.keeps)
        graph = even_bags(graph, lambda node: self._support(self.backend.name, node).accepted)
        graph = eliminate_common_subexpressions(fold_constants(graph))
        return verify(_apply(graph, passes, hooks.Stage.decomposed))

    def _static(self) -> tuple[int, ...]:
        """The inputs that are offered as constants.

        They are weights of an inference graph that the graph itself does not write.
        """
        bakes = self.backend.capabilities.bakes_constants and not self.request.share_weights
        if self.kind is not Kind.inference or not bakes:
            return ()
        written = {o.target for o in self.graph.outputs}
        return tuple(
            i
            for i, item in enumerate(self.graph.inputs)
            if item.role in (Role.parameter, Role.buffer)
            and i not in written
            and self.captured.watchable(i)
            and isinstance(item.value.type, TensorType)
        )

    def _plan(self, static: tuple[int, ...]) -> tuple[Plan, GraphPlacement]:
        graph, setup = self.graph, None
        moved: tuple[Node, ...] = ()
        if self.backend.capabilities.bakes_constants:
            hoisted = hoist(graph, {*static, *self.constants})
            if hoisted is not None:
                graph, setup, moved = hoisted.main, hoisted.setup, hoisted.setup.nodes
        if graph.symbols:
            graph = view_overwritten_inputs(graph)
        assignment = self._assign(graph)
        # what nobody takes is over every budget; it is given to eager so that the report can be made
        takers = [name or DRAWS for name in assignment.backends]
        parts = split(graph, takers, self.request.backend)
        _hook_calls.partitioned(graph, parts)
        runs = {id(n): p.backend for p in parts for n in p.graph.nodes}
        placed = tuple(
            msgspec.structs.replace(p, backend=runs[id(n)]) if p.backend else p
            for n, p in zip(graph.nodes, assignment.nodes, strict=True)
        )
        hoisted_nodes = tuple(
            NodePlacement(n.op, DRAWS, Why.hoisted, "depends only on weights", n.location) for n in moved
        )
        placement = GraphPlacement(self.name, self.kind, self.request.backend, (*hoisted_nodes, *placed))
        types = tuple(o.value.type if isinstance(o.value, Value) else None for o in self.captured.graph.outputs)
        return Plan(graph, parts, setup, static, tuple(self.constants.values()), types), placement

    def _assign(self, graph: Graph) -> Assignment:
        request, capabilities = self.request, self.backend.capabilities
        first, fallback, saves_views = request.backend, request.fallback, capabilities.saves_views
        assignment = assign(graph, first, fallback, self._support_in(graph), saves_views=saves_views)
        if not capabilities.own_threads or torch.get_num_threads() == 1 or self._after(first) is None:
            return assignment
        reason = taking_turns(graph, assignment, first)
        if reason is None:
            return assignment
        return assign(graph, first, fallback, self._declining(reason), saves_views=saves_views)

    def _support_in(self, graph: Graph) -> Callable[[str, Node], Support]:
        """What backends say of a node, which a backend that declines the whole graph is not asked."""
        backend = self.backend
        if not isinstance(backend, Selective) or self._after(self.request.backend) is None:
            return self._support
        reason = backend.declines_graph(graph)
        return self._support if reason is None else self._declining(reason)

    def _declining(self, reason: str) -> Callable[[str, Node], Support]:
        declined = Support.no(reason)
        return lambda name, node: declined if name == self.request.backend else self._support(name, node)

    def _support(self, name: str, node: Node) -> Support:
        if name == self.request.backend:
            backend = self.backend
        else:
            found = _optional(name)
            if found is None:
                return Support.no("not installed or not ready")
            backend = found
        try:
            eager_rng = self.request.rng == "eager"
            return verdict(backend, node, self.kind, eager_rng=eager_rng, is_step=self.captured.is_step)
        except Exception as error:
            if name == self.request.backend and (not self.request.fallback or _settings.strict()):
                raise _failures.supports_error(name, node, error) from error
            _log.warning("backend %r raised in supports(%s): %r; the node is declined", name, node.op, error)
            return Support.no(f"supports() raised {type(error).__name__}: {error}")

    def _compile(self, part: Part, constants: Mapping[int, torch.Tensor]) -> Executable:
        return self._cascade(part, constants, part.backend, note="")

    def _cascade(self, part: Part, constants: Mapping[int, torch.Tensor], name: str, note: str) -> Executable:
        """Compile with the backend ``name``, or with what comes after it."""
        backend: Backend[Any] = self.backend if name == self.request.backend else registry.ready(name)
        options = self.options
        if name != self.request.backend:
            options = options_of(backend, None, self.request.precision)
        job = hooks.CompileJob(backend, part.graph, options, constants)
        started = time.perf_counter()
        try:
            with _hook_calls.stage(Stage.backend, f"{name} {part.graph.name}"):
                executable = _hook_calls.compile_job(job)
        except PluginError:
            raise
        except Exception as error:
            failure = _failures.compile_error(_failures.Target(name, options), part, constants, error)
            after = self._after(name)
            if after is None:
                raise failure from error
            _log.warning("%s\ncontinuing with %r", failure, after)
            return self._cascade(part, constants, after, f"{name} failed to compile: {_first_line(error)}")
        _hook_calls.compiled(job, executable, time.perf_counter() - started)
        self.record.note(part, name, note)
        return _debug.shown(self._named, part, executable)

    def _after(self, name: str) -> str | None:
        """The next backend of the cascade that is there; None where the caller allows none."""
        fallback = self.request.fallback
        if _settings.strict() or self.request.max_fallback == 0:
            return None
        rest = fallback[fallback.index(name) + 1 :] if name in fallback else fallback
        return next((n for n in rest if _optional(n) is not None), None)

    def _rescue(self, part: Part, error: Exception, wrote: bool) -> tuple[Executable, Callable[[Exception], None]]:
        if isinstance(error, torch.OutOfMemoryError):  # what comes next needs as much, and programs know this type
            error.add_note(_failures.out_of_memory(part))
            raise error
        # inputs may not be what they were; other processes have had their part of what this one has communicated, and
        # wait for what comes after it
        has_effects = wrote or any(map(communicates, part.graph.nodes))
        is_final = has_effects and not isinstance(error, CompileError)
        known = isinstance(error, FairleadError)
        failure = error if known else _failures.run_error(part, error, is_final=is_final)
        after = self._after(part.backend)
        if part.backend == DRAWS or after is None or is_final:
            raise failure from error
        _log.warning("%s\ncontinuing with %r", failure, after)
        before = self.record.parts[part.graph.name]
        other = self._cascade(part, {}, after, f"{part.backend} failed while running: {_first_line(error)}")

        def failed_too(second: Exception) -> None:
            _log.warning("%s failed as well, so %r keeps the Part: %s", after, part.backend, _first_line(second))
            self.record.parts[part.graph.name] = before

        return other, failed_too


def _apply(graph: Graph, passes: Sequence[hooks.Pass], stage: hooks.Stage) -> Graph:
    for item in passes:
        if item.stage is stage:
            graph = verify(item.rewrite(graph))
    return graph


def _optional(name: str) -> Backend[Any] | None:
    """A backend of the cascade, where it is installed and ready."""
    try:
        return registry.ready(name)
    except RegistryError as error:
        _log.debug("backend %r is not in the cascade: %s", name, error)
        return None


def _enforce(request: Request, placement: GraphPlacement) -> None:
    """Raise where more was declined than the caller allows."""
    declined = [n for n in placement.nodes if n.why is Why.declined]
    budget = 0 if _settings.strict() else request.max_fallback
    allowed: float = placement.total if budget is None else budget
    if isinstance(budget, float):
        allowed = budget * placement.total
    untaken = [n for n in declined if not n.backend]
    if len(declined) <= allowed and not untaken:
        return
    if all(n.reason.startswith("device ") for n in declined):
        raise _failures.device_error(request.backend, placement)
    raise _failures.budget_error(request.backend, placement, budget if not untaken else None)


def _first_line(error: Exception) -> str:
    text = error.what if isinstance(error, FairleadError) else str(error)
    return f"{type(error).__name__}: {(text.splitlines() or [''])[0][:120]}"
