"""Graphs of a sample as Fairlead captures them, with what they were called with; without Dynamo, for speed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import torch
from torch._guards import TracingContext, tracing
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_unflatten

from fairlead._capture import Captured, capture
from fairlead.interpret import to_fx
from fairlead.ir import Graph, Kind, Value, verify
from fairlead.passes import canonicalize, recognize_composites, remove_dead_nodes

__all__ = ["Call", "Uncaptured", "captured"]


class Uncaptured(Exception):
    """A sample that is no case, and why."""


class Call(msgspec.Struct, frozen=True):
    """A graph, how many of its last inputs are constants, and what went in and came out."""

    graph: Graph
    constants: int
    inputs: list[Any]
    outputs: list[Any]


_UNWRITTEN = frozenset({
    "aten.empty.memory_format", "aten.empty_like.default", "aten.empty_permuted.default", "aten.empty_strided.default",
    "aten.new_empty.default", "aten.new_empty_strided.default",
})  # fmt: skip
"""Ops whose results nobody wrote to."""


class _Zeroed(TorchDispatchMode):
    """Memory that nobody wrote to holds zeros, as in a captured graph, and not what was there before."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        return found.zero_() if str(func) in _UNWRITTEN else found


class _Calls:
    """A sink that computes with the interpreter and notes each call."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def graph(self, captured: Captured) -> Callable[[list[Any]], Any]:
        graph = verify(recognize_composites(canonicalize(captured.graph)))
        module, constants = to_fx(graph), list(captured.constants.values())

        def call(args: list[Any]) -> list[Any]:
            given = [*args, *constants]
            args.clear()
            outputs = list(module(*given))
            self.calls.append(Call(graph, len(constants), given, outputs))
            return outputs

        call._boxed_call = True  # type: ignore[attr-defined]
        return call

    def uncapturable(self, gm: torch.fx.GraphModule, kind: Kind, reason: str) -> Callable[[list[Any]], Any]:
        raise Uncaptured(reason)


def captured(op: Callable[..., Any], sample: Any, *, training: bool) -> list[Call]:
    """The calls of a sample's graphs: of one, or in training of a forward and a backward. Raises `Uncaptured`."""
    leaves, spec = tree_flatten(((sample.input, *sample.args), sample.kwargs))
    leaves = [_prepared(x, training) for x in leaves]
    places = [i for i, x in enumerate(leaves) if isinstance(x, torch.Tensor)]

    def call(*given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        filled = list(leaves)
        for index, tensor in zip(places, given, strict=True):
            filled[index] = tensor
        args, kwargs = tree_unflatten(filled, spec)
        return tuple(x for x in tree_flatten(op(*args, **kwargs))[0] if isinstance(x, torch.Tensor))

    inputs = [leaves[i] for i in places]
    with torch.set_grad_enabled(training):
        with _Zeroed():
            expected = call(*inputs)
        calls, found = _through_aot(call, inputs, training)
    _agree(found, expected)
    return [_tidy(c) for c in calls]


def _through_aot(
    call: Callable[..., Any], inputs: Sequence[torch.Tensor], training: bool
) -> tuple[list[Call], Sequence[torch.Tensor]]:
    sink = _Calls()
    mode = FakeTensorMode(shape_env=ShapeEnv())
    shown = [mode.from_tensor(x, static_shapes=True) for x in inputs]
    with tracing(TracingContext(mode)):
        outputs = capture(_one_call(call, inputs), shown, sink)(*inputs)
        if training:
            wanted = [x for x in outputs if x.requires_grad]
            if not wanted:
                raise Uncaptured("it has no gradient")
            torch.autograd.backward(wanted, [torch.ones_like(x) for x in wanted])
            if len(sink.calls) != 2:
                raise Uncaptured(f"{len(sink.calls)} graphs, not a forward and a backward")
    return sink.calls, outputs


def _prepared(leaf: Any, training: bool) -> Any:
    if not isinstance(leaf, torch.Tensor):
        return leaf
    return leaf.detach().requires_grad_(training and leaf.requires_grad)


def _one_call(function: Callable[..., Any], inputs: Sequence[Any]) -> torch.fx.GraphModule:
    graph = torch.fx.Graph()
    names = [graph.placeholder(f"in_{i}") for i in range(len(inputs))]
    graph.output(graph.call_function(function, tuple(names)))
    return torch.fx.GraphModule({}, graph)


def _agree(found: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> None:
    if len(found) != len(expected):
        raise Uncaptured(f"{len(found)} results, and eager has {len(expected)}")
    try:
        for x, y in zip(found, expected, strict=True):
            torch.testing.assert_close(x.detach(), y.detach(), rtol=1e-2, atol=1e-3, equal_nan=True)
    except AssertionError as error:
        raise Uncaptured("eager has other results") from error


def _tidy(call: Call) -> Call:
    """The call without outputs that no node computes, or that are there twice: what core never asks a backend for."""
    made = {r.id for n in call.graph.nodes for r in n.results if r is not None}
    kept: list[int] = []
    seen: set[int] = set()
    for index, output in enumerate(call.graph.outputs):
        if isinstance(output.value, Value) and output.value.id in made - seen:
            seen.add(output.value.id)
            kept.append(index)
    if not kept:
        raise Uncaptured("it computes nothing")
    graph = msgspec.structs.replace(call.graph, outputs=tuple(call.graph.outputs[i] for i in kept))
    graph = verify(remove_dead_nodes(graph))
    return Call(graph, call.constants, call.inputs, [call.outputs[i] for i in kept])
