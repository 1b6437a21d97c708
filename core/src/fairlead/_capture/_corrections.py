"""Where torch's fake kernels promise another type than its real ones return."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from fairlead.ir import Argument, Dim, DimExpr, DType, Graph, Node, TensorType, Value
from fairlead.passes import WAIT, is_collective
from fairlead.passes._regions import in_regions
from fairlead.passes._rewrite import substitute, with_values

_FORWARD = {
    "aten.native_layer_norm.default": (2,),
    "aten.native_group_norm.default": (1,),
    "aten._native_batch_norm_legit_functional.default": (1, 2, 3, 4),
    "aten._native_batch_norm_legit_no_training.default": (1, 2, 3, 4),
    "aten._native_batch_norm_legit.no_stats": (1, 2),
}
"""Where a norm takes what decides the dtype of its statistics, its second and third result."""

_BACKWARD = {
    "aten.native_layer_norm_backward.default": (3, 4, (5,)),
    "aten.native_group_norm_backward.default": (2, 3, (4,)),
    "aten.native_batch_norm_backward.default": (5, 6, (2, 3, 4)),
}
"""Where the backward takes the mean and the reciprocal deviation, and what decides their dtype."""

_UPDATING = ("aten._native_batch_norm_legit_functional.default", "aten._batch_norm_with_update_functional.default")
"""What takes the running statistics as fourth and fifth argument, and returns them last."""

_REDUCED = (DType.f16, DType.bf16)


def correct_types(graph: Graph) -> Graph:
    """The graph with the types that the CPU's kernels really return, in regions too.

    A norm of a half-precision input with float32 weights, as under autocast, returns its statistics in float32; the
    fake kernels say half precision (torch 2.8 to 2.13; layer, group and batch norm). Running statistics keep their
    dtype; the fake kernel says float32 (torch 2.13, batch norm). The gradients of a group norm have the sizes of the
    input and its channels; the fake kernel spells them as groups times channels a group. Collectives fill memory of
    their own, which is row-major; the fake kernels keep the input's strides. What is not there yet is never copied.
    """
    graph = in_regions(graph, correct_types)
    right = {v.id: Value(v.id, type_) for n in graph.nodes for v, type_ in _right(n) if v.type != type_}
    return _with_types(graph, right) if right else graph


def _right(node: Node) -> Iterator[tuple[Value, TensorType]]:
    """Values of a node, and the types that they have."""
    for value, dtype in (*((v, DType.f32) for v in _statistics(node)), *_running(node), *_of_regions(node)):
        yield value, msgspec.structs.replace(value.tensor, dtype=dtype)
    if is_collective(node.op) and node.op != WAIT:
        yield from ((v, msgspec.structs.replace(v.tensor, strides=None)) for v in node.results if v is not None)
    if node.op == "aten.native_group_norm_backward.default":
        data, channels = node.args[1], node.args[6]
        size: Any = channels.expr if isinstance(channels, DimExpr) else channels
        shapes = (_shape(data), (size,), (size,))
        for gradient, shape in zip(node.results, shapes, strict=True):
            if gradient is not None:
                yield gradient, msgspec.structs.replace(gradient.tensor, shape=shape)


def _with_types(graph: Graph, right: Mapping[int, Value]) -> Graph:
    return msgspec.structs.replace(
        graph,
        inputs=tuple(msgspec.structs.replace(x, value=right.get(x.value.id, x.value)) for x in graph.inputs),
        nodes=tuple(_with_types_around(n, right) for n in graph.nodes),
        outputs=with_values(graph.outputs, right),
    )


def _with_types_around(node: Node, right: Mapping[int, Value]) -> Node:
    results = tuple(right.get(r.id, r) if r is not None else None for r in node.results)
    node = msgspec.structs.replace(node, args=substitute(node.args, right), results=results)
    return msgspec.structs.replace(node, regions=tuple(_given(node, r) for r in node.regions)) if node.regions else node


def _given(node: Node, region: Graph) -> Graph:
    """A region with the dtypes of what it is given."""
    right = {
        inner.id: Value(inner.id, msgspec.structs.replace(inner.tensor, dtype=outer.tensor.dtype))
        for outer, inner in _operands(node, region)
        if outer.tensor.dtype is not inner.tensor.dtype
    }
    return _with_types(region, right) if right else region


def _of_regions(node: Node) -> Iterator[tuple[Value, DType]]:
    """What a node gives its regions and gets from them, and the dtypes that those have for it."""
    for region in node.regions:
        yield from ((outer, inner.tensor.dtype) for outer, inner in _operands(node, region))
    for region in node.regions[-1:]:  # a loop has the condition first; a state comes before the results
        for outer, output in zip(reversed(node.results), reversed(region.outputs), strict=False):
            if outer is not None and isinstance(output.value, Value):
                yield outer, output.value.tensor.dtype


def _operands(node: Node, region: Graph) -> Iterator[tuple[Value, Value]]:
    """The tensors that a node gives a region, after a condition or a state, with the inputs that they become."""
    inner = [i.value for i in region.inputs if isinstance(i.value.type, TensorType)]
    outer = [v for v in node.operands() if isinstance(v.type, TensorType)]
    return zip(outer[len(outer) - len(inner) :], inner, strict=True)


def _statistics(node: Node) -> Iterator[Value]:
    """The mean and reciprocal deviation of a CPU norm of half-precision values with float32 weights."""
    if node.op in _FORWARD:
        found, deciding = node.results[1:3], _FORWARD[node.op]
    elif node.op in _BACKWARD:
        mean, rstd, deciding = _BACKWARD[node.op]
        found = (node.args[mean], node.args[rstd])  # type: ignore[assignment]
    else:
        return
    data = node.args[0]
    wide = any(_dtype(node.args[i]) is DType.f32 for i in deciding)
    if _dtype(data) in _REDUCED and wide and _device(data) == "cpu":
        yield from (v for v in found if isinstance(v, Value))


def _running(node: Node) -> Iterator[tuple[Value, DType]]:
    """The running statistics that a batch norm of half-precision values returns, and the dtype that they had."""
    if node.op in _UPDATING and _dtype(node.args[0]) in _REDUCED:
        for new, old in zip(node.results[-2:], node.args[3:5], strict=True):
            if new is not None and isinstance(old, Value):
                yield new, old.tensor.dtype


def _dtype(arg: Argument) -> DType | None:
    return arg.tensor.dtype if isinstance(arg, Value) else None


def _shape(arg: Argument) -> tuple[Dim, ...]:
    return arg.tensor.shape if isinstance(arg, Value) else ()


def _device(arg: Argument) -> str:
    return arg.tensor.device if isinstance(arg, Value) else ""
