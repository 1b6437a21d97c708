"""Where torch's fake kernels promise another dtype than its real ones return."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from fairlead.ir import Argument, DType, Graph, Node, Value

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
    """The graph with the dtypes that the CPU's kernels really return.

    A norm of a half-precision input with float32 weights, as under autocast, returns its statistics in float32; the
    fake kernels say half precision (torch 2.8 to 2.13; layer, group and batch norm). Running statistics keep their
    dtype; the fake kernel says float32 (torch 2.13, batch norm).
    """
    right = {
        v.id: Value(v.id, msgspec.structs.replace(v.tensor, dtype=dtype))
        for node in graph.nodes
        for v, dtype in (*((v, DType.f32) for v in _statistics(node)), *_running(node))
        if v.tensor.dtype is not dtype
    }
    if not right:
        return graph
    return msgspec.structs.replace(
        graph,
        inputs=tuple(msgspec.structs.replace(x, value=right.get(x.value.id, x.value)) for x in graph.inputs),
        nodes=tuple(_with_types(n, right) for n in graph.nodes),
        outputs=tuple(
            msgspec.structs.replace(o, value=right.get(o.value.id, o.value)) if isinstance(o.value, Value) else o
            for o in graph.outputs
        ),
    )


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


def _device(arg: Argument) -> str:
    return arg.tensor.device if isinstance(arg, Value) else ""


def _with_types(node: Node, right: Mapping[int, Value]) -> Node:
    args = tuple(_replaced(a, right) for a in node.args)
    results = tuple(right.get(r.id, r) if r is not None else None for r in node.results)
    return msgspec.structs.replace(node, args=args, results=results)


def _replaced(arg: Argument, right: Mapping[int, Value]) -> Argument:
    if isinstance(arg, Value):
        return right.get(arg.id, arg)
    return tuple(_replaced(a, right) for a in arg) if isinstance(arg, tuple) else arg
