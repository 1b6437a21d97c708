"""A saved graph through a backend, as a program would run it, beside what its ops mean in torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import torch

from fairlead import _options, interpret
from fairlead._accuracy import Case, Findings, Reference, named
from fairlead._capture import Captured
from fairlead._compile import Request, Session
from fairlead._models._fir import example_inputs
from fairlead._registry import registry
from fairlead.interpret import tensor_of
from fairlead.ir import Graph, TensorData, TensorType, Value
from fairlead.ir._tensors import tensor_data
from fairlead.passes import canonicalize, recognize_composites
from fairlead.placement import Placement

__all__ = ["Example", "OutputError", "Replay", "check_backend", "interpreted", "replay"]


class OutputError(msgspec.Struct, frozen=True):
    """One output: its error relative to its largest value, that of rounding alone, and why it is wrong, if it is."""

    name: str
    type: str
    error: float
    rounding: float
    problem: str = ""


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one graph: ``problem`` is empty where every output agrees."""

    graph: str
    backend: str
    outputs: tuple[OutputError, ...]
    placement: Placement
    problem: str = ""

    @property
    def agrees(self) -> bool:
        """Whether the backend compiled what it took, and every output is right."""
        return not self.problem and not any(o.problem for o in self.outputs)


class Example(NamedTuple):
    """What a graph is run on: tensors by input, drawn ones for the others by ``seed``, and sizes of its symbols."""

    given: Mapping[int, torch.Tensor]
    seed: int = 0
    sizes: Mapping[str, int] = {}


def check_backend(name: str, options: Mapping[str, object] | None = None) -> None:
    """Raise where there is no such backend, where it cannot run here, or where it has no such options."""
    _options.parse(registry.ready(name), options)


def replay(graph: Graph, example: Example, backend: str, options: Mapping[str, object] | None, against: str) -> Replay:
    """Run a graph through a backend with these options, and through another.

    ``against`` is ``eager`` (the interpreter), ``numpy`` (the one without torch), or the name of a backend. What a
    backend raises is in the result where eager could take over, and is an `ExecutionError` where it could not.
    """
    seed = example.seed
    torch.manual_seed(seed)
    inputs = example_inputs(graph, example.given, example.sizes)
    torch.manual_seed(seed)
    meant = Reference(graph, inputs)
    reference = named(graph, meant.results if against == "eager" else _expected(graph, inputs, against, seed))
    due = meant.shaken(reference)
    results, placement = _run(
        graph, inputs, Request(backend, options or {}, fallback=("eager",), benchmark=False), seed
    )
    got = named(graph, results)
    notes = [p.note for g in placement.graphs for p in g.parts if p.note]
    outputs = tuple(_compared(name, got.get(name), expected, due) for name, expected in reference.items())
    return Replay(graph=graph.name, backend=backend, outputs=outputs, placement=placement, problem="; ".join(notes))


def _expected(graph: Graph, inputs: tuple[object, ...], against: str, seed: int) -> list[object]:
    if against == "numpy":
        return _without_torch(graph, inputs)
    return _run(graph, inputs, Request(against, fallback=("eager",), benchmark=False), seed)[0]


def _without_torch(graph: Graph, inputs: tuple[object, ...]) -> list[object]:
    from fairlead import numpy

    given = [tensor_data(x) if isinstance(x, torch.Tensor) else x for x in inputs]
    results = numpy.run(graph, given)
    return [
        _tensor(output.value, result) if isinstance(output.value, Value) else result
        for output, result in zip(graph.outputs, results, strict=True)
    ]


def _tensor(value: Value, result: Any) -> object:
    if not isinstance(value.type, TensorType):
        return result
    return tensor_of(TensorData(value.type.dtype, tuple(result.shape), memoryview(result.tobytes())))


def _run(graph: Graph, inputs: tuple[object, ...], request: Request, seed: int) -> tuple[list[object], Placement]:
    session = Session(request)
    tensors = frozenset(i for i, x in enumerate(inputs) if isinstance(x, torch.Tensor))
    program = session.build(Captured(graph, recognize_composites(canonicalize(graph)), {}, tensors))
    torch.manual_seed(seed)
    with torch.no_grad():
        results = list(program([x.clone() if isinstance(x, torch.Tensor) else x for x in inputs]))
    return results, session.placement


def interpreted(graph: Graph, inputs: Sequence[object], seed: int) -> list[object]:
    """What torch computes op by op, with the random numbers of the seed."""
    torch.manual_seed(seed)
    return list(interpret.run(graph, inputs))


def _compared(name: str, got: torch.Tensor | None, expected: torch.Tensor, shaken: dict[str, float]) -> OutputError:
    findings = Findings()
    case = Case({}, {name: expected}, None, {name: shaken.get(name, 0.0)})
    findings.add("", case, {} if got is None else {name: got})
    kind = f"{str(expected.dtype).removeprefix('torch.')}{list(expected.shape)}"
    problem = "; ".join(p.removeprefix(": ").removeprefix(name).strip() for p in findings.problems)
    return OutputError(name, kind, findings.error, findings.eager, problem)
