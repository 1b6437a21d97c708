"""Capture: a Dynamo graph through AOTAutograd to graphs of the IR.

The only reader of FX, and of torch's private modules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec
import torch

from fairlead._capture import _torch
from fairlead._capture._corrections import correct_types
from fairlead._capture._fx import graph_of
from fairlead._capture._lazy_bits import resolving
from fairlead._capture._order import by_first_use, permuted
from fairlead._capture._types import Uncapturable
from fairlead.ir import Graph, Kind, Output, Role

__all__ = ["Captured", "Sink", "capture"]


class Captured(msgspec.Struct, frozen=True):
    """A graph, the tensors of its own constants by input index, and which inputs can be watched for changes."""

    graph: Graph
    constants: dict[int, torch.Tensor]
    versioned: frozenset[int]

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
    return _torch.aot_compile(gm, inputs, forward=reader.forward, backward=reader.backward, inference=reader.inference)


class _Capture:
    def __init__(self, gm: torch.fx.GraphModule, inputs: Sequence[Any], sink: Sink) -> None:
        self._sink = sink
        self._inputs = tuple(inputs)
        self._roles = tuple((Role(s.kind), s.name) if s.kind else (Role.user, s.name) for s in _torch.input_sources(gm))
        self._versioned = frozenset(i for i, x in enumerate(inputs) if isinstance(x, torch.Tensor) and _has_version(x))
        self._saved_roles: dict[str, tuple[Role, str]] = {}

    def inference(self, gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
        return self._compile(gm, Kind.inference, self._given_roles(inputs))

    def forward(self, gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
        roles = self._given_roles(inputs)
        placeholders = [n.name for n in gm.graph.nodes if n.op == "placeholder"]
        self._saved_roles = dict(zip(placeholders, roles, strict=False))
        return self._compile(gm, Kind.forward, roles)

    def backward(self, gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
        return self._compile(gm, Kind.backward, self._backward_roles(gm))

    def _given_roles(self, inputs: Sequence[Any]) -> Sequence[tuple[Role, str]]:
        """The roles of the Dynamo graph's inputs, where AOTAutograd passes just those on, in their order."""
        if len(inputs) != len(self._roles) or not all(map(_alike, inputs, self._inputs)):
            return ()
        return self._roles

    def _backward_roles(self, gm: torch.fx.GraphModule) -> list[tuple[Role, str]]:
        names = [n.name for n in gm.graph.nodes if n.op == "placeholder"]
        return [
            (Role.tangent, n) if n.startswith("tangents") else self._saved_roles.get(n, (Role.saved, n)) for n in names
        ]

    def _compile(
        self, gm: torch.fx.GraphModule, kind: Kind, roles: Sequence[tuple[Role, str]]
    ) -> Callable[[list[Any]], Any]:
        try:
            read = graph_of(gm, str(kind), kind, roles)
        except Uncapturable as reason:
            return self._sink.uncapturable(gm, kind, str(reason))
        graph = correct_types(msgspec.structs.replace(read.graph, outputs=_with_roles(read.graph)))
        versioned = self._versioned if roles else frozenset()
        order = by_first_use(graph)
        if order == tuple(range(len(order))):
            return resolving(self._sink.graph(Captured(graph, read.constants, versioned)), gm, graph)
        versioned = frozenset(new for new, old in enumerate(order) if old in versioned)
        run = _reordered(self._sink.graph(Captured(permuted(graph, order), read.constants, versioned)), order)
        return resolving(run, gm, graph)


def _reordered(call: Callable[[list[Any]], Any], order: Sequence[int]) -> Callable[[list[Any]], Any]:
    """Takes the inputs as torch passes them, without the constants, and empties the list as every callee does."""

    def reordered(args: list[Any]) -> Any:
        given = [args[i] for i in order[: len(args)]]
        args.clear()
        return call(given)

    reordered._boxed_call = True  # type: ignore[attr-defined]
    return reordered


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
