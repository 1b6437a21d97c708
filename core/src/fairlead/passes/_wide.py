"""Products of bfloat16 are computed in float32, whose numbers hold every one of bfloat16.

A product of two numbers of bfloat16 is exact in float32, which sums are added up in anyway: what changes is who
multiplies, and that weights can be kept in float32 from call to call.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

import msgspec

from fairlead.ir import Argument, DType, Graph, Node, TensorType, Token, Value
from fairlead.passes._nodes import operand
from fairlead.passes._rewrite import Emitter, Replacement, rewrite, substitute
from fairlead.passes._work import is_product

__all__ = ["Widened", "widen_products"]

_VIEWS = frozenset(
    f"aten.{name}"
    for name in (
        "view.default", "permute.default", "expand.default", "unsqueeze.default", "squeeze.dims", "select.int",
        "slice.Tensor", "split_with_sizes.default", "unbind.int",
    )
)  # fmt: skip
"""What shows the same numbers whatever their dtype is."""

_ROWS = "aten.embedding.default"
"""Takes some rows of a matrix, which are rounded back: the whole of it would take long."""


class Widened(NamedTuple):
    """The graph, and which of its inputs, by index, come in float32 instead of bfloat16."""

    graph: Graph
    inputs: frozenset[int]


def widen_products(graph: Graph, static: Collection[int] = ()) -> Widened:
    """Have products of matrices, convolutions, attention and the like compute in float32 instead of bfloat16.

    Before: any graph. After: such a node reads float32, to which its operands of bfloat16 are cast, and its results are
    rounded to what they were. ``static``: the inputs, by index, that are the same from call to call. Of these the
    graph takes those that are factors of products in float32; to whoever else reads them they are cast back, which is
    exact. Those that the graph returns stay as they are, and so does what is within regions.

    >>> from fairlead.ir import Builder
    >>> builder = Builder("g", "inference")
    >>> x, w = builder.input("bf16[4, 8]"), builder.input("bf16[16, 8]")
    >>> builder.output(builder.op("aten.linear.default", x, w, None, to="bf16[4, 16]"))
    >>> widened = widen_products(builder.graph(), {1})
    >>> [node.op for node in widened.graph.nodes], sorted(widened.inputs)
    (['aten._to_copy.default', 'aten.linear.default', 'aten._to_copy.default'], [1])
    """
    weights = _factors(graph, static)
    wide = {value.id: _as(value, DType.f32) for value in weights}
    inputs = tuple(msgspec.structs.replace(i, value=wide.get(i.value.id, i.value)) for i in graph.inputs)
    nodes = tuple(msgspec.structs.replace(n, args=substitute(n.args, wide)) for n in graph.nodes)
    taken = msgspec.structs.replace(graph, inputs=inputs, nodes=nodes)
    return Widened(
        rewrite(taken, _Widening(wide.values())),
        frozenset(i for i, item in enumerate(graph.inputs) if item.value.id in wide),
    )


def _factors(graph: Graph, static: Collection[int]) -> list[Value]:
    """The static inputs of bfloat16 that a product reads, or a view of which it reads, and that are no results."""
    given = [item.value for i, item in enumerate(graph.inputs) if i in static and _is_half(item.value)]
    shown = {value.id: value for value in given}
    read: dict[int, Value] = {}
    for node in graph.nodes:
        if node.op in _VIEWS and (root := shown.get(operand(node).id)) is not None:
            shown.update((r.id, root) for r in node.results if r is not None)
        elif _multiplies(node):
            read.update((root.id, root) for v in node.operands() if (root := shown.get(v.id)) is not None)
    returned = {shown[v.id].id for v in graph.output_values() if v.id in shown}
    return [value for value in read.values() if value.id not in returned]


class _Widening:
    """``wide`` are the values that are of float32 in place of bfloat16, with the same numbers."""

    def __init__(self, wide: Collection[Value]) -> None:
        self._wide = {value.id for value in wide}
        self._cast: dict[int, Value] = {}

    def __call__(self, node: Node, emit: Emitter) -> Replacement | None:
        if _multiplies(node):
            return self._in_float32(node, emit) if any(map(self._is_affected, node.operands())) else None
        if not any(v.id in self._wide for v in node.operands()):
            return None
        if node.op in _VIEWS or (node.op == _ROWS and operand(node).id in self._wide):
            results = [_widened(r) for r in node.results]
            emit.nodes.append(msgspec.structs.replace(node, results=tuple(results)))
            if node.op == _ROWS:
                return [None if r is None else _to(emit, r, DType.bf16) for r in results]
            self._wide.update(r.id for r in results if r is not None)
            return results
        self._append(node, emit, {v.id: self._as(v, DType.bf16, emit) for v in node.operands() if v.id in self._wide})
        return node.results

    def _in_float32(self, node: Node, emit: Emitter) -> Replacement:
        halves = (v for v in node.operands() if _is_half(v))
        results = tuple(_widened(r) if r is not None and _is_half(r) else r for r in node.results)
        self._append(
            msgspec.structs.replace(node, results=results),
            emit,
            {v.id: self._as(v, DType.f32, emit) for v in halves},
        )
        return [
            r if r is None or r is old else _to(emit, r, DType.bf16)
            for r, old in zip(results, node.results, strict=True)
        ]

    def _is_affected(self, value: Value) -> bool:
        return value.id in self._wide or _is_half(value)

    def _append(self, node: Node, emit: Emitter, renamed: dict[int, Value]) -> None:
        emit.nodes.append(msgspec.structs.replace(node, args=substitute(node.args, renamed)))

    def _as(self, value: Value, dtype: DType, emit: Emitter) -> Value:
        """The value in another dtype, cast once."""
        if value.id not in self._cast:
            self._cast[value.id] = _to(emit, value, dtype)
        return self._cast[value.id]


def _multiplies(node: Node) -> bool:
    """Whether a node is a product in the dtype of its operands."""
    return is_product(node.op) and not any(isinstance(a, Token) for a in _leaves(node.args))


def _leaves(args: tuple[Argument, ...]) -> Iterator[Argument]:
    for arg in args:
        if isinstance(arg, tuple):
            yield from _leaves(arg)
        else:
            yield arg


def _is_half(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.type.dtype is DType.bf16


def _widened(value: Value | None) -> Value | None:
    return None if value is None else _as(value, DType.f32)


def _as(value: Value, dtype: DType) -> Value:
    return msgspec.structs.replace(value, type=msgspec.structs.replace(value.tensor, dtype=dtype))


def _to(emit: Emitter, value: Value, dtype: DType) -> Value:
    """The value, cast; it lies as it did."""
    args = (value, Token("dtype", dtype), None, None, None, False, None)
    return emit("aten._to_copy.default", args, _as(value, dtype).type)
