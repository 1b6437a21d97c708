"""The smallest graph and inputs that still fail: fewer nodes, then smaller dimensions, plainer dtypes and values."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import torch

from fairlead.errors import FairleadError
from fairlead.interpret import run, torch_dtype
from fairlead.ir import Argument, Builder, DType, Graph, Input, Node, Output, TensorType, Value, verify
from fairlead.passes import remove_dead_nodes

__all__ = ["Failing", "shrunk"]


class Failing(NamedTuple):
    """A graph and what it fails on."""

    graph: Graph
    inputs: tuple[Any, ...]


def shrunk(failing: Failing, fails: Callable[[Failing], bool], seconds: float = 20.0) -> Failing:
    """The smallest found within the time for which ``fails`` still holds, which it does for ``failing``."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        smaller = next((c for c in _candidates(failing) if time.monotonic() < end and _holds(fails, c)), None)
        if smaller is None:
            break
        failing = smaller
    return failing


def _holds(fails: Callable[[Failing], bool], candidate: Failing) -> bool:
    try:
        verify(candidate.graph)
    except FairleadError:
        return False
    return fails(candidate)


def _candidates(failing: Failing) -> Iterator[Failing]:
    """Smaller ones, those that may save most first."""
    yield from _with_one_output(failing)
    yield from _cut_off_behind(failing)
    yield from _cut_off_before(failing)
    yield from _with_smaller_dims(failing)
    yield from _with_plainer_dtypes(failing)
    yield from _with_plainer_values(failing)


def _with_one_output(failing: Failing) -> Iterator[Failing]:
    graph = failing.graph
    if len(graph.outputs) > 1:
        for value in graph.output_values():
            yield _cleaned(msgspec.structs.replace(graph, outputs=(Output(value),)), failing.inputs)


def _cut_off_behind(failing: Failing) -> Iterator[Failing]:
    """What an earlier node computes is the result."""
    last = failing.graph.outputs[-1].value if failing.graph.outputs else None
    for node in failing.graph.nodes:
        for result in node.results:
            if result is not None and result is not last and isinstance(result.type, TensorType):
                yield _cleaned(msgspec.structs.replace(failing.graph, outputs=(Output(result),)), failing.inputs)


def _cut_off_before(failing: Failing) -> Iterator[Failing]:
    """What a node computes is an input."""
    graph = failing.graph
    made = {value.id for value in graph.output_values()}
    for node in reversed(graph.nodes):
        for result in node.results:
            if result is None or result.id in made or not isinstance(result.type, TensorType):
                continue
            alone = _cleaned(msgspec.structs.replace(graph, outputs=(Output(result),)), failing.inputs)
            (tensor,) = run(alone.graph, alone.inputs)
            nodes = tuple(n for n in graph.nodes if n is not node)
            cut = msgspec.structs.replace(graph, inputs=(*graph.inputs, Input(result)), nodes=nodes)
            yield _cleaned(cut, (*failing.inputs, tensor))


def _cleaned(graph: Graph, inputs: Sequence[Any]) -> Failing:
    """Without nodes and inputs that nothing uses; sizes that inputs show keep theirs."""
    graph = remove_dead_nodes(graph)
    if graph.symbols:
        return Failing(graph, tuple(inputs))
    used = {v.id for node in graph.nodes for v in node.operands()} | {v.id for v in graph.output_values()}
    kept = [index for index, item in enumerate(graph.inputs) if item.value.id in used]
    plain = tuple(Output(output.value) for output in graph.outputs)
    left = msgspec.structs.replace(graph, inputs=tuple(graph.inputs[i] for i in kept), outputs=plain)
    return Failing(left, tuple(inputs[i] for i in kept))


def _with_smaller_dims(failing: Failing) -> Iterator[Failing]:
    """Every input that has a size has half of it."""
    sizes = {d for x in failing.inputs if isinstance(x, torch.Tensor) for d in x.shape if d > 1}
    for size in sorted(sizes, reverse=True):
        for less in dict.fromkeys((1, size // 2)):
            inputs = tuple(_narrowed(x, size, less) for x in failing.inputs)
            yield from _rebuilt(failing.graph, inputs)


def _narrowed(x: Any, size: int, less: int) -> Any:
    if not isinstance(x, torch.Tensor):
        return x
    return x[tuple(slice(0, less) if d == size else slice(None) for d in x.shape)].clone()


def _with_plainer_dtypes(failing: Failing) -> Iterator[Failing]:
    dtypes = {x.dtype for x in failing.inputs if isinstance(x, torch.Tensor)}
    for dtype in dtypes - {torch.float32, torch.int64, torch.bool}:
        plain = torch.float32 if dtype.is_floating_point else torch.int64
        changed = (x.to(plain) if isinstance(x, torch.Tensor) and x.dtype == dtype else x for x in failing.inputs)
        yield from _rebuilt(failing.graph, tuple(changed))


def _with_plainer_values(failing: Failing) -> Iterator[Failing]:
    for index, x in enumerate(failing.inputs):
        if not isinstance(x, torch.Tensor) or not x.is_floating_point():
            continue
        for plain in (torch.zeros_like(x), torch.ones_like(x), x.round(), (x * 4).round() / 4):
            if not torch.equal(plain, x) and _plainness(plain) < _plainness(x):
                yield Failing(failing.graph, (*failing.inputs[:index], plain, *failing.inputs[index + 1 :]))


def _plainness(x: torch.Tensor) -> int:
    """How many different values there are, and how many of them are no small numbers: less is plainer."""
    values = set(x.detach().double().flatten().tolist())
    return len(values) + sum(not (4 * v).is_integer() for v in values) + sum(not v.is_integer() for v in values)


def _rebuilt(graph: Graph, inputs: tuple[Any, ...]) -> Iterator[Failing]:
    """The same ops on inputs of other types, where the rules of the ops allow it."""
    if graph.symbols or any(node.regions for node in graph.nodes):
        return
    builder = Builder(graph.name, graph.kind)
    values: dict[int, Value] = {}
    try:
        for item, x in zip(graph.inputs, inputs, strict=True):
            values[item.value.id] = builder.input(_type_of(x) if isinstance(x, torch.Tensor) else item.value.type)
        for node in graph.nodes:
            _repeat(node, builder, values)
        for output in graph.output_values():
            builder.output(values[output.id])
        yield Failing(builder.graph(), inputs)
    except (FairleadError, ValueError, KeyError):
        return


def _repeat(node: Node, builder: Builder, values: dict[int, Value]) -> None:
    for result, made in zip(node.results, builder.ops(node.op, *_renamed(node.args, values)), strict=True):
        if result is not None and made is not None:
            values[result.id] = made


def _renamed(args: tuple[Argument, ...], values: Mapping[int, Value]) -> tuple[Argument, ...]:
    def renamed(item: Argument) -> Argument:
        if isinstance(item, Value):
            return values[item.id]
        return tuple(map(renamed, item)) if isinstance(item, tuple) else item

    return tuple(map(renamed, args))


def _type_of(x: torch.Tensor) -> TensorType:
    (dtype,) = (d for d in DType if torch_dtype(d) == x.dtype)
    return TensorType(dtype, tuple(x.shape))
