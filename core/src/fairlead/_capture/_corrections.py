"""Where torch's fake kernels promise another dtype than its real ones return."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from fairlead.ir import Argument, DType, Graph, Node, Value

_FORWARD = frozenset({"aten.native_layer_norm.default", "aten.native_group_norm.default"})
_BACKWARD = {"aten.native_layer_norm_backward.default": (3, 4, 5), "aten.native_group_norm_backward.default": (2, 3, 4)}
"""Where the backward takes the mean, the reciprocal deviation and the weight."""

_REDUCED = (DType.f16, DType.bf16)


def correct_types(graph: Graph) -> Graph:
    """The graph with the dtypes that the CPU's kernels really return.

    A norm of a half-precision input with float32 weights, as under autocast, returns its statistics in float32; the
    fake kernels say half precision (torch 2.8 to 2.13, ``native_layer_norm`` and ``native_group_norm``).
    """
    wrong = {v.id: v for node in graph.nodes for v in _statistics(node) if v.tensor.dtype in _REDUCED}
    if not wrong:
        return graph
    right = {i: Value(i, msgspec.structs.replace(v.tensor, dtype=DType.f32)) for i, v in wrong.items()}
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
        found, weight, data = node.results[1:3], _norm_weight(node), node.args[0]
    elif node.op in _BACKWARD:
        mean, rstd, at = _BACKWARD[node.op]
        found, weight, data = (node.args[mean], node.args[rstd]), node.args[at], node.args[0]  # type: ignore[assignment]
    else:
        return
    if _dtype(data) in _REDUCED and _dtype(weight) is DType.f32 and _device(data) == "cpu":
        yield from (v for v in found if isinstance(v, Value))


def _norm_weight(node: Node) -> Argument:
    return node.args[2] if node.op == "aten.native_layer_norm.default" else node.args[1]


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
