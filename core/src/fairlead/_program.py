"""A compiled graph as one plain callable: Parts stitched together, and weights watched."""

from __future__ import annotations

import logging
import operator
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

import torch

from fairlead import _hook_calls
from fairlead._results import Outputs, Settled, Straight, checked
from fairlead._stages import Stage
from fairlead.backend import Executable, Refittable
from fairlead.errors import FairleadError
from fairlead.interpret import copies, in_clean_thread, to_fx
from fairlead.ir import Graph, Role, TensorType, Type
from fairlead.partition import Part

_log = logging.getLogger("fairlead.program")

_version = operator.attrgetter("_version")
_data_ptr = torch.Tensor.data_ptr

_MAX_BINDINGS = 256
"""How many sets of weights one program serves at a time; a stack of equal layers that share code needs one for each."""

_SHORT_LIVED = 3
_MAX_SHORT_LIVED = 4
"""Weights that are exchanged this often in a row, each time within so many calls, are no constants."""


class Plan(NamedTuple):
    """What has to run, before anything is compiled: ``graph`` is the whole, ``parts`` cover its nodes, in order.

    ``setup`` computes the last inputs of ``graph`` from the first ones; ``watched`` are the indices of the caller's
    inputs whose tensors are offered as constants; ``constants`` are tensors of the graph itself, which follow the
    caller's inputs.
    """

    graph: Graph
    parts: tuple[Part, ...]
    setup: Graph | None
    watched: tuple[int, ...]
    constants: tuple[torch.Tensor, ...]
    output_types: tuple[Type | None, ...]


Compiler = Callable[[Part, Mapping[int, torch.Tensor]], Executable]
"""Compile a Part with the constants it is offered, by input of the Part; takes care of the cascade and of errors."""

Rescue = Callable[[Part, Exception, bool], tuple[Executable, Callable[[Exception], None]]]
"""What runs a Part that failed, and what to tell where that fails as well."""
"""What runs a Part from now on whose executable raised; raises the error to show where nothing else may run it.

That is so where the executable may have written to its inputs, or has let go of them, as the last argument says.
"""


class Step:
    """A compiled Part, the registers it reads and writes, and those that nothing reads after it.

    From its second call on the latter are emptied before it runs: an executable that empties the list which it is
    called with lets go of their memory as it goes.
    """

    def __init__(self, part: Part, inputs: Sequence[int], start: int) -> None:
        self.part = part
        self.part_inputs = tuple(inputs)
        self.start = start
        self.stop = start + len(part.graph.outputs)
        self.last: tuple[int, ...] = ()

    def install(self, executable: Executable) -> None:
        baked = executable.baked
        self.inputs = tuple(r for i, r in enumerate(self.part_inputs) if i not in baked)
        self.trusted = False
        self.has_run = False
        self.executable = executable
        self.detaches = not getattr(executable, "takes_parameters", False)
        self.is_steady = getattr(executable, "steady_strides", False)

    def accept(self, results: Sequence[Any], registers: Sequence[Any], outputs: Outputs) -> list[torch.Tensor]:
        """The results, checked; from then on unchecked where the next ones cannot be different in kind."""
        tensors = checked(self.part, results, outputs.environment(registers))
        fresh = self.executable.fresh_outputs
        self.trusted = fresh and not outputs.symbolic and all(isinstance(r, torch.Tensor) for r in results)
        self.has_run = True
        return tensors if fresh else copies(tensors)


class _Layout:
    """What a plan needs at each call, worked out once."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.outputs = Outputs(plan.graph, plan.output_types)
        self.setup = to_fx(plan.setup).forward if plan.setup is not None else None
        given = len(plan.graph.inputs) - len(plan.constants) - (len(plan.setup.outputs) if plan.setup else 0)
        self.given_tensors = frozenset(
            i for i, x in enumerate(plan.graph.inputs[:given]) if isinstance(x.value.type, TensorType)
        )
        self.fleeting = frozenset(i for i, x in enumerate(plan.graph.inputs[:given]) if x.role in _FLEETING)


_FLEETING = (Role.intermediate, Role.saved, Role.tangent)
"""Inputs that the caller does not hold."""


class Binding:
    """Executables for one set of weights.

    Holds the weights' memory, so that no other tensor can have their addresses.
    """

    def __init__(self, layout: _Layout, key: tuple[int, ...], statics: Mapping[int, torch.Tensor]) -> None:
        self.layout = layout
        self.key = key
        self.statics = statics
        self.steps: list[Step] = []
        self.tail: list[Any] = []
        self.detached: tuple[int, ...] = ()
        self.settled: Settled | None = None
        self.straight: Straight | None = None
        self.calls = 0

    def outputs(self, registers: Sequence[Any]) -> list[Any]:
        """The outputs of the graph, once its steps have run."""
        outputs = self.layout.outputs
        if self.settled is None and all(step.trusted and step.is_steady for step in self.steps):
            self.settled = outputs.misplaced(registers)
            self.straight = outputs.straight(self.steps[0].start, self.steps[0].stop) if self._is_one_part() else None
        return outputs(registers, self.settled)

    def unsettle(self) -> None:
        """Forget what is known of results: another executable gives them from now on."""
        self.settled = self.straight = None

    def _is_one_part(self) -> bool:
        """Whether all that is done is to call one executable with the inputs, in their order."""
        if len(self.steps) != 1:
            return False
        (step,) = self.steps
        return len(self.tail) == step.stop - step.start and step.inputs == tuple(range(step.start))

    def note_last_reads(self, count: int) -> None:
        """Take note of which step reads each register last, of what is made and of inputs that nobody else holds.

        ``count``: how many registers there are before those of the steps.
        """
        read = set(self.layout.outputs.read)
        for step in reversed(self.steps):
            mine = {i for i in step.part_inputs if i >= count or i in self.layout.fleeting}
            step.last = tuple(sorted(mine - read))
            read |= mine

    def note_detached(self) -> None:
        """Take note of the inputs that have to be detached, for an executable that reads them."""
        read = {i for step in self.steps if step.detaches for i in step.inputs}
        self.detached = tuple(sorted(read & self.layout.given_tensors))


class Runnable(Protocol):
    """What runs a captured graph: a `Program`, or what chooses between several."""

    def __call__(self, args: list[Any]) -> list[Any]: ...

    def bound(self, args: Sequence[Any], places: Sequence[int]) -> Callable[[Sequence[Any]], list[Any]]: ...

    def refresh(self) -> None: ...


class Program:
    """Run a captured graph. Called with a list of inputs, which it empties; returns a list of outputs.

    Compiles at the first call, when the real weights are there, and again when they are exchanged for others: weights
    are known by identity, version and address, so that what ``load_state_dict`` or an optimizer changes is seen at
    the next call. Safe to call from several threads.
    """

    goes_straight: ClassVar[bool] = True
    """Whether a program that is one Part is but a call of its executable."""

    def __init__(
        self,
        plan: Plan,
        unwatched: Callable[[], Plan],
        compiler: Compiler,
        rescue: Rescue,
        permit: Callable[[], None],
    ) -> None:
        self._layout = _Layout(plan)
        self._watched = plan.watched
        self._unwatched = unwatched
        self._compiler = compiler
        self._rescue = rescue
        self._permit = permit
        self._lock = threading.RLock()
        self._current: Binding | None = None
        self._bindings: dict[tuple[int, ...], Binding] = {}
        self._short_lived = 0
        self._renewals = 0

    def __call__(self, args: list[Any]) -> list[Any]:
        binding = self._current
        if self._watched:
            key = _key([args[i] for i in self._watched])
            if binding is None or binding.key != key:
                binding = self._bind(args, key)
        elif binding is None:
            binding = self._bind(args, ())
        binding.calls += 1
        if binding.straight is not None and self.goes_straight:
            return self._straight(binding, binding.straight, args)
        args += binding.tail
        self._run(binding, binding.steps, args)
        outputs = binding.outputs(args)
        args.clear()
        return outputs

    def bound(self, args: Sequence[Any], places: Sequence[int]) -> Callable[[Sequence[Any]], list[Any]]:
        """The program for the weights among ``args``, whatever becomes of them, as a function of the inputs at places.

        It holds those weights, and looks at none of them.
        """
        binding = self._bind(args, _key([args[i] for i in self._watched]) if self._watched else ())
        template = [x.detach() if isinstance(x, torch.Tensor) else x for x in (*args, *binding.tail)]
        order = tuple(places)
        for place in order:
            template[place] = None

        def call(inputs: Sequence[Any]) -> list[Any]:
            registers = template.copy()
            for place, value in zip(order, inputs, strict=True):
                registers[place] = value
            self._run(binding, binding.steps, registers)
            return binding.outputs(registers)

        return call

    def _run(self, binding: Binding, steps: Sequence[Step], registers: list[Any]) -> None:
        outputs = binding.layout.outputs
        _detach(registers, binding.detached)
        for step in steps:
            places, last = step.inputs, step.last if step.has_run else ()
            inputs = [registers[i] for i in places]
            for i in last:
                registers[i] = None
            try:
                results = step.executable(inputs)
                if not step.trusted:
                    results = step.accept(results, registers, outputs)
            except Exception as error:
                is_gone = bool(last) and len(inputs) != len(places)
                if last and not is_gone:
                    for i, value in zip(places, inputs, strict=True):
                        registers[i] = value
                results = self._rescued(binding, step, registers, error, is_gone)
            registers[step.start : step.stop] = results
            del results  # or it would hold what the next step is to let go of

    def _straight(self, binding: Binding, straight: Straight, args: list[Any]) -> list[Any]:
        """The outputs of a program that is one Part, past the registers: a step of training has hundreds."""
        (step,), settled = binding.steps, binding.settled or ()
        inputs, kept = args if step.last else args.copy(), (*straight.kept(args), *straight.others)
        _detach(inputs, binding.detached)
        try:
            results = step.executable(inputs)
        except Exception as error:
            is_gone = len(args) != step.start
            registers = [*args, *binding.tail]
            registers[step.start : step.stop] = self._rescued(binding, step, registers, error, is_gone)
            return binding.outputs(registers)
        args.clear()
        if kept:
            results = [*results, *kept]
        return binding.layout.outputs.of_results(results, straight, settled)

    def refresh(self) -> None:
        """Forget the weights that were baked in; the next call reads them anew."""
        with self._lock:
            self._renewals = max(1, len(self._bindings))
            self._current = None
            self._bindings.clear()

    def forget(self, ids: tuple[int, ...]) -> None:
        """Drop the executables for the weights with these identities."""
        with self._lock:
            gone = self._bindings.pop(ids, None)
            if self._current is gone:
                self._current = None

    def _rescued(
        self, binding: Binding, step: Step, registers: list[Any], error: Exception, is_gone: bool
    ) -> Sequence[Any]:
        is_over = is_gone or getattr(step.executable, "writes", False)
        before = step.executable
        other, failed_too = in_clean_thread(lambda: self._rescue(step.part, error, is_over))
        self._replace(binding, step, other)
        _detach(registers, binding.detached)
        inputs = [registers[i] for i in step.inputs]
        try:
            results = step.executable(inputs)
        except Exception as second:  # so it is the inputs, which the next call may have better
            self._replace(binding, step, before)
            failed_too(second)
            raise
        return step.accept(results, registers, binding.layout.outputs)

    @staticmethod
    def _replace(binding: Binding, step: Step, executable: Executable) -> None:
        step.install(executable)
        binding.unsettle()
        binding.note_detached()

    def _bind(self, args: Sequence[Any], key: tuple[int, ...]) -> Binding:
        with self._lock:
            ids = key[: len(self._watched)]
            old = self._bindings.pop(ids, None)
            if old is None or old.key != key:
                self._permitted(old)
            if old is not None and old.key != key and self._thrashes(old):
                return self._without_weights(args)
            new = old if old is not None and old.key == key else in_clean_thread(lambda: self._made(args, key, old))
            self._bindings[ids] = new
            if len(self._bindings) > _MAX_BINDINGS:
                del self._bindings[next(iter(self._bindings))]
            self._current = new
            return new

    def _permitted(self, old: Binding | None) -> None:
        """Raise where nothing may be compiled now, but for what `refresh` dropped; what was there stays."""
        if self._renewals:
            self._renewals -= 1
            return
        try:
            self._permit()
        except FairleadError:
            if old is not None:
                self._bindings[old.key[: len(self._watched)]] = old
            raise

    def _thrashes(self, old: Binding) -> bool:
        self._short_lived = self._short_lived + 1 if old.calls <= _SHORT_LIVED else 0
        return self._short_lived >= _MAX_SHORT_LIVED

    def _without_weights(self, args: Sequence[Any]) -> Binding:
        _log.warning(
            "the weights of graph %s change at nearly every call: from now on they are inputs like any other, and "
            "nothing is baked in",
            self._layout.plan.graph.name,
        )
        self._layout = _Layout(self._unwatched())
        self._bindings.clear()
        self._watched = ()
        self._current = in_clean_thread(lambda: self._made(args, (), None))
        return self._current

    def _made(self, args: Sequence[Any], key: tuple[int, ...], old: Binding | None) -> Binding:
        layout = self._layout
        plan = layout.plan
        statics = {i: args[i].detach() for i in self._watched}
        tail: list[Any] = list(plan.constants)
        if layout.setup is not None:
            with _hook_calls.stage(Stage.constants, plan.graph.name):
                tail += [t.contiguous() for t in layout.setup(*args, *tail)]
        statics.update(enumerate(tail, start=len(args)))
        binding = Binding(layout, key, statics)
        self._make_steps(binding, len(args) + len(tail), old)
        made = sum(len(p.graph.outputs) for p in plan.parts)
        binding.tail = [*tail, *([None] * made)]
        if self._watched:
            ids = key[: len(self._watched)]
            weakref.finalize(args[self._watched[0]], _forget, weakref.ref(self), ids).atexit = False
        return binding

    def _make_steps(self, binding: Binding, count: int, old: Binding | None) -> None:
        plan = binding.layout.plan
        registers = {item.value.id: i for i, item in enumerate(plan.graph.inputs)}
        start = count
        for index, part in enumerate(plan.parts):
            inputs = [registers[i.value.id] for i in part.graph.inputs]
            step = Step(part, inputs, count)
            offered = {i: binding.statics[r] for i, r in enumerate(inputs) if r in binding.statics}
            step.install(self._executable(part, offered, old.steps[index].executable if old else None))
            for output in part.graph.output_values():
                registers[output.id] = count
                count += 1
            binding.steps.append(step)
        binding.layout.outputs.locate(registers)
        binding.note_last_reads(start)
        binding.note_detached()

    def _executable(self, part: Part, offered: Mapping[int, torch.Tensor], old: Executable | None) -> Executable:
        """The old executable, where it is content with the new weights, or a new one."""
        if old is None:
            return self._compiler(part, offered)
        if not old.baked:
            return old
        if isinstance(old, Refittable):
            old.refit({i: t for i, t in offered.items() if i in old.baked})
            return old
        return self._compiler(part, offered)


def _detach(registers: list[Any], places: Sequence[int]) -> None:
    for i in places:
        tensor = registers[i]
        if tensor is not None and tensor.requires_grad:
            registers[i] = tensor.detach()


def _key(tensors: Sequence[torch.Tensor]) -> tuple[int, ...]:
    return (*map(id, tensors), *map(_version, tensors), *map(_data_ptr, tensors))


def _forget(reference: weakref.ref[Program], ids: tuple[int, ...]) -> None:
    program = reference()
    if program is not None:
        program.forget(ids)
