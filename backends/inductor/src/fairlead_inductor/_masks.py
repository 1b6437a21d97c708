"""Truth values that come and go are bytes to generated code on CPUs, which reads and writes them one by one.

A vector of bytes is converted to float32, and back, by instructions for that: `benchmarks/masks.py` has the times.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, TypeGuard

import msgspec
import torch

from fairlead.ir import DType, Graph, Node, Output, TensorType, Token, Value

__all__ = ["Masks"]

_MANY = 2**10
"""With fewer elements a mask stays what it is: to show its memory as bytes is a call for each."""


class Masks:
    """The masks among the inputs and the results of a graph, and the graph that has bytes in their place.

    A byte is 0 or 1, as in a mask, whose memory is shown as bytes, and the other way round: nothing is copied. What is
    written to an input, and what shows an input's memory, stays as it is; with ``stay`` all masks do.
    """

    def __init__(self, graph: Graph, *, stay: bool = False) -> None:
        self.given = self.graph = graph
        self._inputs: Sequence[int] = ()
        self._results: Sequence[int] = ()
        if stay:
            return
        touched = {i for o in graph.outputs for i in (o.target, o.aliases)}
        inputs = [i for i, item in enumerate(graph.inputs) if i not in touched and _is_mask(item.value)]
        made = {r.id for node in graph.nodes for r in node.results if r is not None}
        own = [k for k, o in enumerate(graph.outputs) if (o.target, o.aliases) == (None, None)]
        results = [k for k in own if _is_mask(v := graph.outputs[k].value) and v.id in made]
        if inputs or results:
            self._inputs, self._results, self.graph = inputs, results, _in_bytes(graph, inputs, results)

    def show_as_bytes(self, inputs: list[Any]) -> None:
        """Put bytes in the place of the masks in the list."""
        for i in self._inputs:
            inputs[i] = inputs[i].view(torch.uint8)

    def show_as_masks(self, inputs: list[Any]) -> None:
        """Put the masks back, for another backend, unless the list was emptied."""
        for i in self._inputs if inputs else ():
            inputs[i] = inputs[i].view(torch.bool)

    def of_bytes(self, results: Sequence[Any]) -> Sequence[Any]:
        """The results of the graph that was given, of those of the graph with bytes."""
        if not self._results:
            return results
        results = list(results)
        for k in self._results:
            results[k] = results[k].view(torch.bool)
        return results


def _is_mask(value: object) -> TypeGuard[Value]:
    """Whether it is a tensor of many truth values on a CPU. A size that is known only at the call may be large."""
    if not isinstance(value, Value) or not isinstance(value.type, TensorType):
        return False
    tensor = value.tensor
    size = math.prod(d if isinstance(d, int) else _MANY for d in tensor.shape)
    return tensor.dtype is DType.bool and tensor.device == "cpu" and size >= _MANY


def _in_bytes(graph: Graph, inputs: Sequence[int], results: Sequence[int]) -> Graph:
    """The graph with bytes for these inputs and outputs, each of which is a mask."""
    ids = itertools.count(graph.next_id())
    taken = {i: Value(next(ids), _of(graph.inputs[i].value, DType.u8)) for i in inputs}
    nodes: list[Node] = []
    for i, byte in taken.items():
        mask = graph.inputs[i].value
        wide = Value(next(ids), _of(mask, DType.f32))
        nodes += (_cast(byte, wide), Node("aten.ne.Tensor", (wide, 0.0), (mask,)))
    given: dict[int, Value] = {}
    for k in results:
        mask = _value(graph.outputs[k])
        given.setdefault(mask.id, Value(next(ids), _of(mask, DType.u8)))
    for node in graph.nodes:
        nodes.append(node)
        for mask in (r for r in node.results if r is not None and r.id in given):
            wide = Value(next(ids), _of(mask, DType.f32))
            nodes += (_cast(mask, wide), _cast(wide, given[mask.id]))
    replace = msgspec.structs.replace
    return replace(
        graph,
        inputs=tuple(replace(x, value=taken[i]) if i in taken else x for i, x in enumerate(graph.inputs)),
        nodes=tuple(nodes),
        outputs=tuple(
            replace(o, value=given[_value(o).id]) if k in results else o for k, o in enumerate(graph.outputs)
        ),
    )


def _value(output: Output) -> Value:
    assert isinstance(output.value, Value), "an output that was found to be a mask"
    return output.value


def _of(value: Value, dtype: DType) -> TensorType:
    return msgspec.structs.replace(value.tensor, dtype=dtype)


def _cast(value: Value, to: Value) -> Node:
    return Node("aten._to_copy.default", (value, Token("dtype", to.tensor.dtype), None, None, None, False, None), (to,))
