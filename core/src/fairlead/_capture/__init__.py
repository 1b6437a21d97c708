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
from fairlead._capture._objects import Bypass, bypass
from fairlead._capture._order import Arrangement, arranged
from fairlead._capture._subclasses import are_made_of_others, gradient_places, pieces
from fairlead._capture._torch import InputSource, Tracing, autocasts, input_sources, no_modes, within_a_backward
from fairlead._capture._types import Uncapturable
from fairlead._capture._whole_step import WholeStep
from fairlead._capture._writes import taken_out
from fairlead._stages import Stage
from fairlead.ir import Graph, Kind, Output, Role, Value

__all__ = [
    "Arrangement",
    "Captured",
    "InputSource",
    "Sink",
    "Tracing",
    "autocasts",
    "capture",
    "capture_step",
    "input_sources",
    "no_modes",
    "runs_as_captured",
    "within_a_backward",
]


class Captured(msgspec.Struct, frozen=True):
    """A graph, the tensors of its own constants by input index, and which inputs can be watched for changes.

    ``graph`` has the ops and types that torch traced; ``canonical`` is the same with the same inputs and outputs in
    canonical form, composites recognized. ``fit`` is how Dynamo's call fits the graph where nothing of AOTAutograd's
    has to stand between them, else None. ``is_step``: it is a whole training step.
    """

    graph: Graph
    canonical: Graph
    constants: dict[int, torch.Tensor]
    versioned: frozenset[int]
    fit: Arrangement | None = None
    is_step: bool = False

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


def capture(
    gm: torch.fx.GraphModule, inputs: Sequence[Any], sink: Sink, *, recompute: bool = False
) -> Callable[..., Any]:
    """Compile a Dynamo graph through AOTAutograd; each functional graph that comes out goes to the sink.

    ``recompute``: a backward computes anew what is cheap to, by torch's own rule, rather than have it saved.
    """
    reader = _Capture(inputs, input_sources(gm), sink, is_wrapped=are_made_of_others(gm, inputs))
    with _hook_calls.stage(Stage.autograd):
        return _torch.aot_compile(
            gm,
            inputs,
            forward=reader.forward,
            backward=reader.backward,
            inference=reader.inference,
            recompute=recompute,
        )


def capture_step(whole: WholeStep, inputs: Sequence[Any], tracing: Tracing, sink: Sink) -> Callable[..., Any]:
    """Compile a whole training step, which is one inference graph; ``inputs`` are those of the call that needs it.

    Raises `fairlead._capture._whole_step.OtherGradients`.
    """
    reader = _Capture(inputs, whole.sources, sink, is_step=True)
    rest = tracing.fixed(inputs[len(tracing.inputs()) :])
    with tracing.resumed(), _hook_calls.stage(Stage.autograd):
        return _torch.aot_compile(
            whole.gm,
            [*tracing.inputs(), *rest],
            forward=reader.forward,
            backward=reader.backward,
            inference=reader.inference,
        )


class _Capture:
    def __init__(
        self,
        inputs: Sequence[Any],
        sources: Sequence[InputSource],
        sink: Sink,
        *,
        is_step: bool = False,
        is_wrapped: bool = False,
    ) -> None:
        self._sink = sink
        self._is_step = is_step
        self._is_wrapped = is_wrapped
        given = [list(pieces(x, s)) for x, s in zip(inputs, sources, strict=True)]
        self._counts = tuple(map(len, given))
        tensors = [x for each in given for x, _ in each]
        self._kinds = tuple(map(_kind, tensors))  # not the tensors: AOTAutograd keeps this as long as the program
        self._roles = tuple((Role(s.kind) if s.kind else Role.user, s.name) for each in given for _, s in each)
        whole = [x for x, each in zip(inputs, given, strict=True) for _ in each]
        # writes to a tensor that is made of others do not count as writes to those
        self._versioned = frozenset(i for i, x in enumerate(tensors) if x is whole[i] and _has_version(x))
        self._saved_roles: dict[str, tuple[Role, str]] = {}
        self._saved: dict[str, int] = {}
        self._forward: tuple[int, ...] = ()
        self._given: tuple[int, ...] = ()

    def inference(self, gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
        writes = taken_out(gm)
        run = self._compile(bypass(writes.gm), Kind.inference, self._given_roles(inputs), written=writes.targets)
        return writes.around(run, _torch.hidden_writes())

    def forward(self, gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
        roles = self._given_roles(inputs)
        self._saved_roles = dict(zip(_placeholders(gm), roles, strict=False))
        writes = taken_out(gm)
        around = bypass(writes.gm)
        self._given = around.inputs
        if not roles:
            self._counts = (1,) * len(inputs)
        run = self._compile(around, Kind.forward, roles, written=writes.targets)
        return writes.around(run, _torch.hidden_writes())

    def backward(self, gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
        if taken_out(gm).targets:
            return self._sink.uncapturable(gm, Kind.backward, "a write to an input in a backward")
        gradients: Any = gm.graph.output_node().args[0]
        places = gradient_places(tuple(gradients), self._counts)
        around = bypass(gm, None if places is None else [places[i] for i in self._given])
        first: dict[int, int] = {}
        twins: dict[int, int] = {}
        for index, name in enumerate(_placeholders(around.gm)):
            place = self._saved.get(name)
            if place is not None and first.setdefault(place, index) != index:
                twins[index] = first[place]
        roles = self._backward_roles(gm)
        return self._compile(around, Kind.backward, roles, twins, () if places is None else self._forward)

    def _given_roles(self, inputs: Sequence[Any]) -> Sequence[tuple[Role, str]]:
        """The roles of the Dynamo graph's inputs, where AOTAutograd passes just those on, in their order."""
        return self._roles if tuple(map(_kind, inputs)) == self._kinds else ()

    def _backward_roles(self, gm: torch.fx.GraphModule) -> list[tuple[Role, str]]:
        return [
            (Role.tangent, n) if n.startswith("tangents") else self._saved_roles.get(n, (Role.saved, n))
            for n in _placeholders(gm)
        ]

    def _compile(
        self,
        around: Bypass,
        kind: Kind,
        roles: Sequence[tuple[Role, str]],
        twins: Mapping[int, int] = {},
        forward: Sequence[int] = (),
        written: tuple[int, ...] = (),
    ) -> Callable[[list[Any]], Any]:
        gm = around.gm
        try:
            with _hook_calls.stage(Stage.capture, str(kind)):
                read = graph_of(gm, str(kind), kind, [roles[i] for i in around.inputs] if roles else ())
                graph = correct_types(
                    msgspec.structs.replace(read.graph, outputs=_with_roles(read.graph, around, written))
                )
                fit = arranged(graph, twins, forward)
        except Uncapturable as reason:
            return around.around(self._sink.uncapturable(gm, kind, str(reason)))
        if kind is Kind.forward:
            self._saved, self._forward = _saved(gm, graph, fit), fit.inputs
        versioned = self._versioned if roles else frozenset()
        moved = frozenset(new for new, old in enumerate(fit.inputs) if around.inputs[old] in versioned)
        constants = dict(zip(range(len(fit.inputs), len(fit.graph.inputs)), read.constants.values(), strict=True))
        plain = kind is Kind.inference and roles and not written and not self._is_wrapped
        direct = plain and _passes_through(around) and not may_be_lazy(gm, graph)
        captured = Captured(fit.graph, fit.canonical, constants, moved, fit if direct else None, self._is_step)
        return around.around(resolving(self._sink.graph(captured), gm, graph), fit)


def runs_as_captured(gm: torch.fx.GraphModule) -> bool:
    """Whether torch does in eager mode what Dynamo's graph says, op by op.

    A higher-order op stands for something else there, as for a checkpoint that computes again or attention in one loop.
    """
    return not any(isinstance(n.target, torch._ops.HigherOrderOperator) for n in gm.graph.nodes)


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


def _passes_through(around: Bypass) -> bool:
    return around.is_identity and _torch.passes_through()


def _with_roles(graph: Graph, around: Bypass, written: tuple[int, ...]) -> tuple[Output, ...]:
    """The outputs with their roles: mutated inputs first, then what the user gets, then what the backward needs.

    ``written`` are the inputs to which the first of them belong that AOTAutograd does not know of.
    """
    if graph.kind is Kind.backward:
        return tuple(Output(o.value, Role.gradient) for o in graph.outputs)
    known = _torch.mutations()
    if known is None:
        return graph.outputs
    known = around.mutations(known._replace(targets=(*written, *known.targets)))
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


def _has_version(given: Any) -> bool:
    return isinstance(given, torch.Tensor) and not given.is_inference()


def _kind(given: Any) -> tuple[torch.dtype, int] | None:
    """What an input has in common with what stands for it in a trace: the dtype and rank of a tensor."""
    return (given.dtype, given.dim()) if isinstance(given, torch.Tensor) else None
