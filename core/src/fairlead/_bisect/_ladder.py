"""The ladder, from the top: the first rung that breaks, and where that is the backend, the Part that does."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import torch

from fairlead import _options, ir
from fairlead._accuracy import Case, Findings
from fairlead._bisect._candidate import SEED, Candidate, Cutting, expected
from fairlead._bisect._reduce import SMALLER, Note, Reduction
from fairlead._bisect._script import Script, redrawn, shows
from fairlead._bisect._shadow import shadow_of
from fairlead._bisect._sizes import sized
from fairlead._bisect._trials import EndedError, Outcome, Trials
from fairlead._capture import Captured
from fairlead._capture._dynamo import without_limits
from fairlead._compare._reference import State, case_of
from fairlead._compare._step import results
from fairlead._compile import Request, Session
from fairlead._messages import cause
from fairlead._models import Model
from fairlead._models._fir import check_sizes, example_inputs, given_constants
from fairlead._registry import registry
from fairlead.bisection import Bisection, Failure, Rung
from fairlead.errors import ArgumentError, PlacementError, RegistryError
from fairlead.ir import node_text
from fairlead.passes import canonicalize, recognize_composites
from fairlead.torch import DynamoBackend

__all__ = ["Limits", "bisect_file", "bisect_model"]


class Limits(NamedTuple):
    """``seconds`` for the whole search, ``timeout`` for each graph in the backend, and the folder for the files."""

    seconds: float = 600.0
    timeout: float = 120.0
    folder: Path = Path()


def bisect_model(
    model: Model, backend: str, options: Mapping[str, Any], limits: Limits, note: Note, *, training: bool
) -> Bisection:
    """Go down the ladder with a model and its inputs. An interrupt ends the search with what is known."""
    return _searched(model.name, backend, options, limits, note, lambda search: search.model(model, training))


def bisect_file(
    path: Path, backend: str, options: Mapping[str, Any], limits: Limits, note: Note, *, sizes: Mapping[str, int]
) -> Bisection:
    """The same with the graphs of a file, whose first rung is the interpreter; inputs that it lacks are drawn.

    ``sizes``: what symbols of the file are; the others are small.
    """
    opened = ir.read(path)
    check_sizes(opened, str(path), sizes)
    return _searched(str(path), backend, options, limits, note, lambda search: search.file(opened, sizes))


def _searched(
    subject: str,
    backend: str,
    options: Mapping[str, Any],
    limits: Limits,
    note: Note,
    through: Callable[[_Search], None],
) -> Bisection:
    """What is known when the search is done, or when it is interrupted or its time is up."""
    began = time.monotonic()
    with Trials(backend, options, seconds=limits.seconds, timeout=limits.timeout) as trials:
        search = _Search(subject, Request(backend, options, fallback=("eager",), benchmark=False), trials, limits, note)
        with search.until_ended():
            through(search)
        search.know(trials=trials.count, seconds=round(time.monotonic() - began, 2))
    return search.found


class _Search:
    """What is known of one subject, in ``found``, while it grows."""

    def __init__(self, subject: str, request: Request, trials: Trials, limits: Limits, note: Note) -> None:
        self._request = request
        self._shadow = shadow_of(registry.ready(request.backend))
        self._options = _options.parse(self._shadow.inner, request.options)
        self._trials = trials
        self._limits = limits
        self._note = note
        self.found = Bisection(subject=subject, backend=request.backend)

    def know(self, **known: Any) -> None:
        """Put something more into what is found."""
        self.found = msgspec.structs.replace(self.found, **known)

    @contextlib.contextmanager
    def until_ended(self) -> Iterator[None]:
        """What ends the search within is known afterwards, and no more."""
        try:
            yield
        except KeyboardInterrupt:
            self.know(ended="interrupted")
        except EndedError:
            self.know(ended=f"{self._limits.seconds:g} seconds are up")

    def model(self, model: Model, training: bool) -> None:
        self._note("eager, and the same in float64")
        with tempfile.TemporaryDirectory(prefix="fairlead-bisect-") as folder:
            state = State(Path(folder))
            state.save(model)
            try:
                case = case_of(model, state, training)
            except ArgumentError as error:
                self.know(rung=Rung.eager, failure=Failure.error, detail=f"{error.what} ({error.next})")
                return
            broken = self._upper_rung(model, case, state, training)
        if broken is None:
            self._parts()
        else:
            rung, failure, detail = broken
            self.know(rung=rung, failure=failure, detail=detail)

    def _upper_rung(self, model: Model, case: Case, state: State, training: bool) -> tuple[Rung, Failure, str] | None:
        """Which rung above the backend breaks. What the interpreter gets right, aot_eager does."""
        self._note("capture, passes and the interpreter of the IR")
        target = DynamoBackend(self._request)
        target.session.stand_in(self._shadow)
        problem = _compared(model, target, case, training)
        if problem is None:
            return None
        self._note("aot_eager")
        state.restore(model)
        before = _compared(model, "aot_eager", case, training)
        return (Rung.interpreter, *problem) if before is None else (Rung.aot_eager, *before)

    def file(self, opened: ir.File, sizes: Mapping[str, int]) -> None:
        for number, graph in enumerate(opened.module.graphs):
            torch.manual_seed(SEED)
            inputs = example_inputs(graph, given_constants(opened, number), sizes)
            self._note(f"{graph.name} by the interpreter")
            session = Session(self._request)
            session.stand_in(self._shadow)
            tensors = frozenset(i for i, x in enumerate(inputs) if isinstance(x, torch.Tensor))
            program = session.build(Captured(graph, recognize_composites(canonicalize(graph)), {}, tensors))
            with torch.no_grad():
                got = program([x.clone() if isinstance(x, torch.Tensor) else x for x in inputs])
            meant = expected(Candidate(graph, inputs, frozenset()))
            if meant is not None and (problem := meant.judge(_tensors(got)).problem):
                self.know(rung=Rung.interpreter, failure=Failure.wrong, detail=f"{graph.name}: {problem}")
                return
        self._parts()

    def _parts(self) -> None:
        """Each Part by itself, in the order in which they ran, until one fails; that one is made smaller."""
        parts = self._shadow.parts
        if not parts:
            self.know(ended="nothing ran on the backend: it declined every node, or nothing was captured")
        for number, part in enumerate(parts, 1):
            self._note(f"Part {number} of {len(parts)}")
            outcome = self._trials.run(part)
            if outcome.failure is None:
                continue
            self._broken(part, outcome)
            reduction = Reduction(part, outcome, self._trials, self._note)
            with self.until_ended():
                reduction.search()
            self._write(reduction.best, reduction.outcome)
            return
        for number, part in enumerate(parts, 1):
            self._note(f"every result of Part {number} of {len(parts)}")
            if self._wrong_within(part):
                return

    def _wrong_within(self, part: Candidate) -> bool:
        """Whether a node is wrong alone, though what its Part gives is right: errors may fade, or meet a bias."""
        whole = Cutting(part).exposed
        outcome = self._trials.run(whole)
        reduction = Reduction(whole, outcome, self._trials, self._note)
        if outcome.failure is not Failure.wrong or not reduction.search_alone():
            return False
        self._broken(part, outcome)
        self._write(reduction.best, reduction.outcome)
        self.know(detail=f"{self.found.detail}; what the Part gives is right")
        return True

    def _broken(self, part: Candidate, outcome: Outcome) -> None:
        self.know(rung=Rung.backend, failure=outcome.failure, part=part.graph.name, part_nodes=len(part.graph.nodes))

    def _write(self, best: Candidate, outcome: Outcome) -> None:
        """Say what is left of a Part, and write it."""
        with self.until_ended():
            best, outcome = self._without_symbols(best, outcome)
        nodes = best.graph.nodes
        location = next((n.location for n in reversed(nodes) if n.location), None)
        ops = tuple(dict.fromkeys(n.op for n in nodes))
        self.know(detail=outcome.detail, nodes=tuple(map(node_text, nodes)), ops=ops, location=location)
        for candidate, drawn in ((redrawn(best), True), (best, False)):
            self._note(f"trying the script{' with random inputs' * drawn}")
            script = Script(self._request.backend, self._options, SMALLER * self._limits.timeout, drawn)
            path = script.write(self._limits.folder, candidate, outcome)
            self.know(file=str(path.with_suffix(".fir")), script=str(path), random_inputs=drawn, reproduces=None)
            with self.until_ended():
                self.know(reproduces=shows(path, outcome, self._trials.left))
            if self.found.reproduces:
                return

    def _without_symbols(self, best: Candidate, outcome: Outcome) -> tuple[Candidate, Outcome]:
        """The graph with sizes in the place of its symbols, where it fails so as well."""
        fixed = sized(best)
        if fixed is best:
            return best, outcome
        self._note("the sizes in place of symbols")
        found = self._trials.run(fixed, SMALLER)
        return (fixed, found) if found.same(outcome) else (best, outcome)


def _compared(model: Model, backend: Any, case: Case, training: bool) -> tuple[Failure, str] | None:
    """How the model compiled with a Dynamo backend is not what it ought to be; None where it is right."""
    try:
        compiled = torch.compile(model.module, backend=backend, dynamic=False)
        with without_limits():  # past which Dynamo would run the model in eager, and nothing be seen to break
            got = results(model, compiled, model.tensors, training)
    except (PlacementError, RegistryError):
        raise  # what the caller asked for cannot be done
    except Exception as error:  # torch's, or that of a pass of a plugin
        return Failure.error, cause(error)
    findings = Findings()
    findings.add("example", case, got)
    return (Failure.wrong, findings.problems[0]) if findings.problems else None


def _tensors(values: list[Any]) -> list[torch.Tensor]:
    return [x for x in values if isinstance(x, torch.Tensor)]
