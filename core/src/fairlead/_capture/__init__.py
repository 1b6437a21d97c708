"""Capture: a Dynamo graph through AOTAutograd to graphs of the IR.

The only reader of FX, and of torch's private modules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec
import torch

from fairlead import _hook_calls
from fairlead._capture import _torch
from fairlead._capture._corrections import correct_types
from fairlead._capture._fx import graph_of
from fairlead._capture._lazy_bits import may_be_lazy, resolving
from fairlead._capture._order import Arrangement, arranged
from fairlead._capture._torch import InputSource, input_sources
from fairlead._capture._types import Uncapturable
from fairlead._stages import Stage
from fairlead.ir import Graph, Kind, Output, Role, Value

__all__ = ["Arrangement", "Captured", "InputSource", "Sink", "capture", "input_sources"]


class Captured(msgspec.Struct, frozen=True):
    """A graph, the tensors of its own constants by input index, and which inputs can be watched for changes.

    ``graph`` has the ops and types that torch traced; ``canonical`` is the same with the same inputs and outputs in
    canonical form, composites recognized. ``fit`` is how Dynamo's call fits the graph where nothing of AOTAutograd's
    has to stand between them, else None.
    """

    graph: Graph
    canonical: Graph
    constants: dict[int, torch.Tensor]
    versioned: frozenset[int]
    fit: Arrangement | None = None

    def watchable(self, index: int) -> bool:
        """Whether torch counts the writes to the tensor behind an input; inference tensors have no such count."""
        return index in self.versioned


class Sink(Protocol):
    """What takes the graphs of one program."""

    def graph(self, captured: Captured) -> Callable[[list[Any]], Any]:
        """Make a captured graph callable."""
        ...

    def uncapturable(self, gm: torch.fx.GraphModule, kind: Kind, reason: str) -> Callable[[list[Any]], Any]:
        """Make a graph callable that the IR cannot express."""
        ...


def capture(gm: torch.fx.GraphModule, inputs: Sequence[Any], sink: Sink) -> Callable[..., Any]:
    """Compile a Dynamo graph through AOTAutograd; each functional graph that comes out goes to the sink."""
    reader = _Capture(gm, inputs, sink)
    with _hook_calls.stage(Stage.autograd):
        return _torch.aot_compile(
            gm, inputs, forward=reader.forward, backward=reader.backward, inference=reader.inference
        )


class _Capture:
    def __init__(self, gm: torch.fx.GraphModule, inputs: Sequence[Any], sink: Sink) -> None:
        self._sink = sink
        self._inputs = tuple(inputs)
        self._roles = tuple((Role(s.kind), s.name) if s.kind else (Role.user, s.name) for s in input_sources(gm))
        self._versioned = frozenset(i for i, x in enumerate(inputs) if isinstance(x, torch.Tensor) and _has_version(x))
        self._saved_roles: dict[str, tuple[Role, str]] = {}
        self._saved: dict[str, int] = {}
        self._forward: tuple[int, ...] = ()

    def inference(self, gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
        return self._compile(gm, Kind.inference, self._given_roles(inputs))

    def forward(self, gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
        roles = self._given_roles(inputs)
        self._saved_roles = dict(zip(_placeholders(gm), roles, strict=False))
        return self._compile(gm, Kind.forward, roles)

    def backward(self, gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
        first: dict[int, int] = {}
        twins: dict[int, int] = {}
        for index, name in enumerate(_placeholders(gm)):
            place = self._saved.get(name)
            if place is not None and first.setdefault(place, index) != index:
                twins[index] = first[place]
        return self._compile(gm, Kind.backward, self._backward_roles(gm), twins)

    def _given_roles(self, inputs: Sequence[Any]) -> Sequence[tuple[Role, str]]:
        """The roles of the Dynamo graph's inputs, where AOTAutograd passes just those on, in their order."""
        if len(inputs) != len(self._roles) or not all(map(_alike, inputs, self._inputs)):
            return ()
        return self._roles

    def _backward_roles(self, gm: torch.fx.GraphModule) -> list[tuple[Role, str]]:
        return [
            (Role.tangent, n) if n.startswith("tangents") else self._saved_roles.get(n, (Role.saved, n))
            for n in _placeholders(gm)
        ]

    def _compile(
        self, gm: torch.fx.GraphModule, kind: Kind, roles: Sequence[tuple[Role, str]], twins: Mapping[int, int] = {}
    ) -> Callable[[list[Any]], Any]:
        try:
            with _hook_calls.stage(Stage.capture, str(kind)):
                read = graph_of(gm, str(kind), kind, roles)
                graph = correct_types(msgspec.structs.replace(read.graph, outputs=_with_roles(read.graph)))
                fit = arranged(graph, twins, self._forward if kind is Kind.backward else ())
        except Uncapturable as reason:
            return self._sink.uncapturable(gm, kind, str(reason))
        if kind is Kind.forward:
            self._saved, self._forward = _saved(gm, graph, fit), fit.inputs
        versioned = self._versioned if roles else frozenset()
        moved = frozenset(new for new, old in enumerate(fit.inputs) if old in versioned)
        constants = dict(zip(range(len(fit.inputs), len(fit.graph.inputs)), read.constants.values(), strict=True))
        direct = kind is Kind.inference and roles and _torch.passes_through() and not may_be_lazy(gm, graph)
        run = self._sink.graph(Captured(fit.graph, fit.canonical, constants, moved, fit if direct else None))
        return resolving(run if fit.is_identity else _fitted(run, fit), gm, graph)


def _placeholders(gm: torch.fx.GraphModule) -> list[str]:
    return [n.name for n in gm.graph.nodes if n.op == "placeholder"]


def _saved(gm: torch.fx.GraphModule, graph: Graph, fit: Arrangement) -> dict[str, int]:
    """What a forward graph saves, by the names that its backward has for it: the places among its outputs."""
    (nodes,) = gm.graph.output_node().args
    return {
        node.name: place
        for node, output, place in zip(nodes, graph.outputs, fit.outputs, strict=True)  # type: ignore[arg-type]
        if output.role is Role.saved and isinstance(output.value, Value)
    }


def _fitted(run: Callable[[list[Any]], Any], fit: Arrangement) -> Callable[[list[Any]], Any]:
    """Takes the inputs as torch passes them, and empties the list as every callee does."""
    inputs, outputs = fit.inputs, fit.outputs

    def fitted(args: list[Any]) -> Any:
        given = [args[i] for i in inputs]
        args.clear()
        results = run(given)
        return [results[i] for i in outputs]

    fitted._boxed_call = True  # type: ignore[attr-defined]
    return fitted


def _with_roles(graph: Graph) -> tuple[Output, ...]:
    """The outputs with their roles: mutated inputs first, then what the user gets, then what the backward needs."""
    if graph.kind is Kind.backward:
        return tuple(Output(o.value, Role.gradient) for o in graph.outputs)
    known = _torch.mutations()
    if known is None:
        return graph.outputs
    outputs: list[Output] = []
    for index, output in enumerate(graph.outputs):
        user = index - len(known.targets)
        if user < 0:
            outputs.append(Output(output.value, Role.mutation, target=known.targets[index]))
        elif user < len(known.user_aliases):
            outputs.append(Output(output.value, Role.user, aliases=known.user_aliases[user]))
        else:
            outputs.append(Output(output.value, Role.saved))
    return tuple(outputs)


def _has_version(tensor: torch.Tensor) -> bool:
    return not tensor.is_inference()


def _alike(traced: Any, given: Any) -> bool:
    if not isinstance(given, torch.Tensor):
        return not isinstance(traced, torch.Tensor)
    return isinstance(traced, torch.Tensor) and traced.dtype == given.dtype and traced.dim() == given.dim()
