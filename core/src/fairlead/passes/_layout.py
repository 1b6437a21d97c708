"""Inputs whose elements lie in another order than their dimensions, read in the order in which they lie."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import msgspec

from fairlead.ir import Dim, Graph, Input, Node, Symbol, TensorType, Value
from fairlead.ir.dims import mul
from fairlead.passes._rewrite import substitute, with_values

Order: TypeAlias = tuple[int, ...]
R = TypeVar("R")


class RowMajor(NamedTuple):
    """A graph of row-major inputs. ``orders`` has, by input, the dimensions by which its caller permutes a tensor."""

    graph: Graph
    orders: Mapping[int, Order]

    def around(self, run: Callable[[Sequence[Any]], R], baked: Collection[int] = ()) -> Callable[[Sequence[Any]], R]:
        """What runs the given graph, of what runs ``graph``; inputs that are ``baked`` are passed to neither."""
        passed = [i for i in range(len(self.graph.inputs)) if i not in baked]
        orders = [(place, self.orders[i]) for place, i in enumerate(passed) if i in self.orders]
        if not orders:
            return run

        def in_order(inputs: Sequence[Any]) -> R:
            given = list(inputs)
            for place, order in orders:
                given[place] = given[place].permute(order)
            return run(given)

        return in_order


def row_major_inputs(graph: Graph, kept: Collection[int] = ()) -> RowMajor:
    """Take inputs that are a permuted row-major tensor as that tensor, and permute them in the graph.

    For backends that read row-major tensors only, and would copy all others, such as the permuted operands of
    attention that a forward saves for its backward.

    Before: any graph. After: no input but those ``kept`` has the strides of a permutation; those that had are followed
    by an ``aten.permute`` to the value that they were. Other strides (of slices, of expanded tensors) stay.

    >>> from fairlead.ir import Builder, DType
    >>> builder = Builder("g", "inference")
    >>> x = builder.input(TensorType(DType.f32, (2, 3), (1, 2)))
    >>> builder.output(builder.op("aten.neg.default", x))
    >>> found = row_major_inputs(builder.graph())
    >>> found.orders, found.graph.inputs[0].value.tensor.shape, found.graph.nodes[0].op
    ({0: (1, 0)}, (3, 2), 'aten.permute.default')
    """
    orders = {i: order for i, item in enumerate(graph.inputs) if i not in kept and (order := _order(item)) is not None}
    if not orders:
        return RowMajor(graph, {})
    inputs, added, renamed = list(graph.inputs), [], {}
    next_id = graph.next_id()
    for number, (index, order) in enumerate(orders.items()):
        old = inputs[index].value
        shape = tuple(old.tensor.shape[d] for d in order)
        stored = msgspec.structs.replace(old, type=TensorType(old.tensor.dtype, shape, None, old.tensor.device))
        inputs[index] = msgspec.structs.replace(inputs[index], value=stored)
        renamed[old.id] = Value(next_id + number, old.type)
        back = tuple(order.index(d) for d in range(len(order)))
        added.append(Node("aten.permute.default", (stored, back), (renamed[old.id],)))
    nodes = (msgspec.structs.replace(n, args=substitute(n.args, renamed)) for n in graph.nodes)
    changed = msgspec.structs.replace(
        graph,
        inputs=tuple(inputs),
        nodes=(*added, *nodes),
        outputs=with_values(graph.outputs, renamed),
        symbols=tuple(_from_stored(s, orders) for s in graph.symbols),
    )
    return RowMajor(changed, orders)


def _from_stored(symbol: Symbol, orders: Mapping[int, Order]) -> Symbol:
    """A symbol, read from the dimension of its input that has it now."""
    index, axis = symbol.source
    if axis is None or index not in orders:
        return symbol
    return msgspec.structs.replace(symbol, source=(index, orders[index].index(axis)))


def _order(item: Input) -> Order | None:
    """The dimensions from the widest stride to the narrowest; None where that is their own order, or leaves gaps."""
    type_ = item.value.type
    if not isinstance(type_, TensorType) or type_.strides is None or 0 in type_.shape:
        return None
    left = [d for d, size in enumerate(type_.shape) if size != 1]
    order: list[int] = []
    step: Dim = 1
    while left:
        # of sizes that are not known, none is known to be 1: the dimensions are told by their strides
        found = next((d for d in reversed(left) if type_.strides[d] == step), None)
        if found is None:
            return None
        left.remove(found)
        order.insert(0, found)
        step = mul(step, type_.shape[found])
    if order == sorted(order):
        return None
    return (*(d for d, size in enumerate(type_.shape) if size == 1), *order)
