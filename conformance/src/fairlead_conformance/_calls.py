"""A backend's executable for one graph, called several times, and everything that must hold of its results."""

from __future__ import annotations

import contextlib
import sys
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
import torch.utils.dlpack

from fairlead.backend import Executable, Refittable
from fairlead.interpret import in_clean_thread, torch_dtype
from fairlead.ir import Graph, Role, dims
from fairlead_conformance._device import generators, home, onto, restored, settle
from fairlead_conformance._device_names import kind_of
from fairlead_conformance._inputs import copies
from fairlead_conformance._observation import Declined, Failed, Observation
from fairlead_conformance._oracle import Expected, Joint, Reference, adds_in_any_order, compare
from fairlead_conformance._status import Status
from fairlead_conformance._subject import Subject
from fairlead_conformance._witness import Witness, changed, state

__all__ = ["Checked"]

_SEED = 0x5EED


class _Call:
    """One call: what went in and what came out, on the device, and copies of both on the CPU as they were."""

    def __init__(self, inputs: Sequence[Any], device: str) -> None:
        self.inputs = copies(inputs, device)
        self.before = copies(inputs)
        self.results: list[torch.Tensor] = []
        self.kept: list[torch.Tensor] = []
        self.drew = False


class Checked:
    """The checks of one Part, which ``check`` runs in an order that names the cause rather than a consequence."""

    def __init__(self, graph: Graph, reference: Reference | Joint, subject: Subject, seen: Observation) -> None:
        self._graph = graph
        self._reference = reference
        self._subject = subject
        self._seen = seen
        self._device = subject.place
        self._witness = Witness(
            graph, subject.capabilities, kind_of(self._device), thorough=_is_drawn_by_lot(graph, subject.seed)
        )

    def check(self, inputs: Sequence[Sequence[Any]], repeated: Sequence[int] = (0,)) -> None:
        """Call with each of these inputs, and with those of the indices ``repeated`` twice again. Raises `Failed`."""
        with self._seeded():
            expected = [self._reference.expected(given) for given in inputs]
        if all(_is_open(each) for right in expected for each in right):
            raise Declined({node.op: "whatever it gives here is right" for node in self._graph.nodes})
        again = [k for k in repeated for _ in range(2)]
        calls = [_Call(inputs[k], self._device) for k in (*range(len(inputs)), *again)]
        executable = self._compiled()
        self._run(executable, calls)
        own = self._reference.eager(inputs[0]) if self._device != "cpu" else [e.eager for e in expected[0]]
        allowed = _shared(own, inputs[0])
        for call in calls:
            self._types(call)
            written = self._written(executable, call)
            self._inputs_unchanged(call, written.values())
            self._aliases(call, allowed | {(f"output {k}", f"input {target}") for k, target in written.items()})
        for call, right in zip(calls, expected, strict=False):
            self._values(call, right)
        self._kept(calls)
        for k, call in zip(again, calls[len(inputs) :], strict=True):
            self._repeats(calls[k], call, expected[k])
        borrowed = self._witness.borrowed(lambda: self._call(executable, calls[0].inputs))
        self._witness.note(self._seen, borrowed)

    def check_constants(self, inputs: Sequence[Sequence[Any]], constants: Collection[int]) -> None:
        """Compile with the first inputs' constants, then change to the second ones'. Raises `Failed`."""
        with self._seeded():
            expected = [self._reference.expected(given) for given in inputs]
        first, second = ({i: onto(given[i], self._device) for i in constants} for given in inputs)
        executable = self._compiled(first)
        self._check_constants(executable, inputs[0], expected[0], first, "baked")
        if isinstance(executable, Refittable) and executable.baked:
            executable.refit({i: t for i, t in second.items() if i in executable.baked})
            check = "refitted"
        else:
            executable, check = self._compiled(second), "recompiled"
        self._check_constants(executable, inputs[1], expected[1], second, check)

    def _check_constants(
        self,
        executable: Executable,
        inputs: Sequence[Any],
        expected: Sequence[Expected],
        constants: Mapping[int, torch.Tensor],
        check: str,
    ) -> None:
        if not executable.baked <= constants.keys():
            raise Failed(Status.FAIL_COMPILE, "baked", "inputs are baked that were not offered as constants")
        given = [constants.get(i, x) for i, x in enumerate(inputs)]
        call = _Call(given, self._device)
        self._run(executable, [call])
        self._types(call)
        self._values(call, expected, check)
        if not all(_same_bits(home(constants[i]), inputs[i]) for i in constants):
            raise Failed(Status.FAIL_MUTATION, "constants", "a constant was written")

    def _compiled(self, constants: Mapping[int, torch.Tensor] = MappingProxyType({})) -> Executable:
        subject = self._subject
        before, modules = state(), len(sys.modules)
        try:
            with self._witness.compiling():
                executable = in_clean_thread(
                    lambda: subject.backend.compile(self._graph, subject.options, dict(constants))
                )
        except Exception as error:
            raise Failed(Status.FAIL_COMPILE, "compiles", _said(error)) from error
        if differing := changed(before, state(), imported=len(sys.modules) > modules):
            raise Failed(Status.FAIL_STATE, "state", f"compiling changed: {differing}")
        return executable

    def _run(self, executable: Executable, calls: Sequence[_Call]) -> None:
        drawn = self._reference.is_drawn
        before, modules = state(random_numbers=not drawn), len(sys.modules)
        failure = None
        try:
            with self._witness.running():
                self._run_all(executable, calls)
        except Exception as error:
            failure = error
        self._witness.check()
        if failure is not None:
            raise Failed(Status.FAIL_RUN, "runs", _said(failure)) from failure
        imported = len(sys.modules) > modules  # by a compiler that waits for the first call
        if differing := changed(before, state(random_numbers=not drawn), imported=imported):
            raise Failed(Status.FAIL_STATE, "state", f"running changed: {differing}")
        for call in calls:
            call.kept = list(map(home, call.kept))

    def _run_all(self, executable: Executable, calls: Sequence[_Call]) -> None:
        shapes: set[tuple[object, ...]] = set()
        for call in calls:
            shape = tuple(tuple(x.shape) if isinstance(x, torch.Tensor) else x for x in call.inputs)
            watch = self._witness.settled() if shape in shapes else contextlib.nullcontext()
            with self._seeded() as drew, watch:
                call.results = self._call(executable, call.inputs)
                settle(self._device)
            call.drew = drew()
            call.kept = [r.detach().clone() for r in call.results]
            if not executable.fresh_outputs:
                call.results = call.kept
            shapes.add(shape)

    @contextlib.contextmanager
    def _seeded(self) -> Iterator[Callable[[], bool]]:
        """Within, torch's generators start from one state, where the graph draws; tells afterwards if one moved."""
        if not self._reference.is_drawn:
            yield lambda: False
            return
        kept = generators(self._device)
        moved: list[bool] = []
        torch.manual_seed(_SEED)
        start = generators(self._device)
        try:
            yield lambda: moved[0]
        finally:
            moved.append(not all(map(torch.equal, start, generators(self._device))))
            restored(self._device, kept)

    def _call(self, executable: Executable, inputs: Sequence[Any]) -> list[torch.Tensor]:
        with torch.no_grad():
            results = executable([x for i, x in enumerate(inputs) if i not in executable.baked])
        return [r if isinstance(r, torch.Tensor) else torch.utils.dlpack.from_dlpack(r) for r in results]

    def _types(self, call: _Call) -> None:
        declared = [v.tensor for v in self._graph.output_values()]
        if len(call.results) != len(declared):
            raise Failed(Status.FAIL_SHAPE, "results", f"{len(call.results)} results, not {len(declared)}")
        env = self._symbols(call.before)
        for index, (got, type_) in enumerate(zip(call.results, declared, strict=True)):
            shape = tuple(dims.evaluate(d, env) for d in type_.shape)
            if tuple(got.shape) != shape:
                raise Failed(Status.FAIL_SHAPE, "shape", f"output {index} is {list(got.shape)}, not {list(shape)}")
            if str(got.device) != type_.device:
                raise Failed(Status.FAIL_SHAPE, "shape", f"output {index} is on {got.device}, not {type_.device}")
            if got.dtype != torch_dtype(type_.dtype):
                raise Failed(Status.FAIL_DTYPE, "dtype", f"output {index} is {got.dtype}, not {type_.dtype.long_name}")

    def _symbols(self, inputs: Sequence[Any]) -> Mapping[str, int]:
        return {
            s.name: inputs[s.source[0]] if s.source[1] is None else inputs[s.source[0]].shape[s.source[1]]
            for s in self._graph.symbols
        }

    def _written(self, executable: Executable, call: _Call) -> dict[int, int]:
        """By output, the inputs that the executable says it writes, and that it has returned for what is written."""
        if not getattr(executable, "writes", False):
            return {}
        return {
            k: output.target
            for k, (output, result) in enumerate(zip(self._graph.outputs, call.results, strict=True))
            if output.role is Role.mutation
            and output.target is not None
            and _span(result) == _span(call.inputs[output.target])
        }

    def _inputs_unchanged(self, call: _Call, written: Collection[int]) -> None:
        for index, (now, before) in enumerate(zip(call.inputs, call.before, strict=True)):
            if index not in written and isinstance(now, torch.Tensor) and not _same_bits(home(now), before):
                raise Failed(Status.FAIL_MUTATION, "inputs", f"input {index} was written")

    def _aliases(self, call: _Call, allowed: set[tuple[str, str]]) -> None:
        """Results may share memory where eager's do, as views do with what they show."""
        for a, b in _shared(call.results, call.inputs) - allowed:
            raise Failed(Status.FAIL_ALIAS, "aliases", f"{a} shares memory with {b}")

    def _values(self, call: _Call, expected: Sequence[Expected], check: str = "values") -> None:
        also = self._reference.also_right(call.before, expected, call.kept)
        for index, (got, right) in enumerate(zip(call.kept, expected, strict=True)):
            compared, problem = compare(
                got, right, signed_zeros=self._reference.signed_zeros[index], also=also.get(index)
            )
            self._seen.count(index, compared)
            if problem:
                raise Failed(Status.FAIL_MISMATCH, check, f"output {index}: {problem}")

    def _kept(self, calls: Sequence[_Call]) -> None:
        for number, call in enumerate(calls, start=1):
            for index, (now, then) in enumerate(zip(call.results, call.kept, strict=True)):
                if not _same_bits(home(now), then):
                    what = f"output {index} of call {number} was overwritten by a later call"
                    raise Failed(Status.FAIL_ALIAS, "first-result-kept", what)

    def _repeats(self, first: _Call, again: _Call, expected: Sequence[Expected]) -> None:
        if adds_in_any_order(self._graph):
            self._values(again, expected, "repeats")
            return
        for index, (a, b) in enumerate(zip(first.kept, again.kept, strict=True)):
            if not _same_bits(a, b):
                what = f"output {index} differs between two calls with the same inputs"
                raise Failed(Status.FAIL_NONDETERMINISM, "repeats", what)
        if self._reference.is_drawn and not first.drew:
            raise Failed(Status.FAIL_RNG, "generator", "torch's generator did not move: the next draw is the same")


def _is_open(expected: Expected) -> bool:
    """Whether any element may be anything."""
    return expected.free is not None and bool(expected.free.numel()) and bool(expected.free.all())


def _same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return bool(torch.equal(_bits(a), _bits(b)))


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    plain = tensor.detach().resolve_conj().resolve_neg().contiguous()
    # Dimensions of one entry keep any stride, which a view as bytes does not take.
    return plain.as_strided((plain.numel(),), (1,)).view(torch.uint8) if plain.numel() else plain.reshape(-1)


def _shared(results: Sequence[Any], inputs: Sequence[Any]) -> set[tuple[str, str]]:
    """The pairs of results, and of results and inputs, that lie in the same memory."""
    found: set[tuple[str, str]] = set()
    spans = [(f"output {i}", _span(r)) for i, r in enumerate(results)]
    others = [(f"input {i}", _span(x)) for i, x in enumerate(inputs)]
    for i, (name, span) in enumerate(spans):
        for other, theirs in (*spans[i + 1 :], *others):
            if span and theirs and span[0] < theirs[1] and theirs[0] < span[1]:
                found.add((name, other))
    return found


def _span(x: Any) -> tuple[int, int] | None:
    """The first address of a tensor's memory, and the one after the last."""
    if not isinstance(x, torch.Tensor) or not x.numel():
        return None
    last = sum((n - 1) * s for n, s in zip(x.shape, x.stride(), strict=True))
    return x.data_ptr(), x.data_ptr() + (last + 1) * x.itemsize


def _is_drawn_by_lot(graph: Graph, seed: int) -> bool:
    """Whether every kernel of ATen is poisoned, which costs 0.1 s: for one graph in sixteen, others by each seed."""
    return zlib.crc32(f"{seed} {[node.op for node in graph.nodes]}".encode()) % 16 == 0


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".strip()
