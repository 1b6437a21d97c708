"""Linear recurrences that are computed as a tree, ``y[t] = a[t] * y[t - 1] + b[t]``, are computed in order.

State space models ask whether they are compiled, and then give the recurrence to ``associative_scan``, which torch
writes out on a CPU: neighbours are combined, the half that is left is scanned, and what lies between is filled in. That
makes few steps of many for devices that need large ones; a CPU only copies every second row again and again.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from fairlead.ir import Argument, Graph, Node, Value
from fairlead.passes._dead import remove_dead_nodes
from fairlead.passes._nodes import operand
from fairlead.passes._ops import Ops, plain
from fairlead.passes._rewrite import Emitter, Replacement, rewrite
from fairlead.passes._scans import Tree, trees
from fairlead.passes._views import merge_permutations

_IN_ORDER = 64
"""So many rows are computed one after another; more in blocks of about the root of their number, side by side."""

_ROWWISE = frozenset(
    f"aten.{name}"
    for name in (
        "add.Tensor", "div.Tensor", "exp.default", "mul.Tensor", "neg.default", "sigmoid.default", "silu.default",
        "softplus.default", "sub.Tensor", "_to_copy.default",
    )
)  # fmt: skip
"""What computes the factors and summands of a recurrence, and may as well compute a row of them when it is needed."""


def unroll_recurrences(graph: Graph, *, in_blocks: bool = False, long_rows: bool = False) -> Graph:
    """The graph with the steps of linear recurrences in order, on a CPU, where they are computed as a tree.

    Before: a canonical graph. After: ``y[t] = a[t] * y[t - 1] + b[t]`` along a dimension of at most 64 rows is as many
    products and sums, wherever it was the tree of ``associative_scan`` and nothing else reads the tree's values; rows
    of ``a`` and ``b`` that only this needs are computed one by one. ``in_blocks``: along longer dimensions too, whose
    blocks, of about the root of their number, are computed side by side. ``long_rows``: steps are computed with their
    last two dimensions exchanged where the last is the shorter one and a product of matrices is all that reads the
    values, which then has them transposed.
    """
    users = graph.users()
    found = [tree for tree in trees(graph, users) if in_blocks or tree.steps <= _IN_ORDER]
    if not found:
        return graph
    exchanged = frozenset(v for tree in found for v in _until_multiplied(graph, tree, users)) if long_rows else ()
    return remove_dead_nodes(merge_permutations(rewrite(graph, _Recurrences(found, users, exchanged))))


def _until_multiplied(graph: Graph, tree: Tree, users: Mapping[int, int]) -> Iterable[int]:
    """The values of a recurrence and what views make of them, up to a product of matrices, of which the rows are short.

    None where something else reads them too, or where the last two dimensions do not stay what they are.
    """
    through = [tree.result]
    for node in graph.nodes:
        read = next((v.tensor.shape for v in node.operands() if v.id == through[-1]), None)
        if read is None:
            continue
        match read, users[through[-1]]:
            case (_, *_, int(long), int(short)), 1 if short < long:
                pass
            case _:
                return ()
        match node.op, node.args[1:]:
            case "aten.bmm.default", _:
                return through
            case "aten.permute.default", ((*_, a, b),) if (a, b) == (len(read) - 2, len(read) - 1):
                through.append(node.result.id)
            case "aten.view.default", _ if node.result.tensor.shape[-2:] == read[-2:]:
                through.append(node.result.id)
            case _:
                return ()
    return ()


_Order: TypeAlias = tuple[int, ...]
"""The dimensions of a value, each in the place where it is to be."""


class _Part(NamedTuple):
    """Which rows: those of a slice."""

    start: int
    stop: int
    step: int

    @property
    def is_one(self) -> bool:
        """Whether it is a single row, of which the dimension is dropped."""
        return self.stop - self.start == 1


class _Recurrences:
    """The rule that puts steps in order in place of the last node of each tree.

    ``exchanged``: values whose last two dimensions are exchanged, until they are multiplied.
    """

    def __init__(self, found: Iterable[Tree], users: Mapping[int, int], exchanged: Collection[int]) -> None:
        self._trees = {tree.result: tree for tree in found}
        self._users = users
        self._exchanged = exchanged
        self._producers: dict[int, Node] = {}
        self._lying_so: set[int] = set()

    def __call__(self, node: Node, emit: Emitter) -> Replacement | None:
        self._producers.update((r.id, node) for r in node.results if r is not None)
        if not node.results or node.results[0] is None:
            return None
        result, ops = node.results[0], Ops(emit)
        if (tree := self._trees.get(result.id)) is not None:
            factors, summands = (operand(self._producers[i]) for i in (tree.factors, tree.summands))
            order = tuple(range(summands.tensor.rank))
            if result.id in self._exchanged:
                order = (*order[:-2], order[-1], order[-2])
            steps = _Steps(self._producers, self._users, tree.inside, order, ops)
            value = steps.recurrence(factors, summands, tree.steps)
        elif result.id in self._exchanged:
            value = _of_exchanged(node, ops)
        elif any(v.id in self._lying_so for v in node.operands()):
            given = (ops.swap_last(v) if v.id in self._lying_so else v for v in node.operands())
            return (emit(node.op, tuple(given), result.type),)
        else:
            return None
        if result.id in self._exchanged:
            self._lying_so.add(value.id)
        return (value,)


def _of_exchanged(node: Node, ops: Ops) -> Value:
    """What a view or a permutation is of a value whose last two dimensions are exchanged: it has them so too."""
    if node.op == "aten.permute.default":
        order = node.args[1]
        assert isinstance(order, tuple), "the dimensions of a permutation are a list"
        return ops.permute(operand(node), tuple(map(_integer, order)))
    *front, long, short = node.result.tensor.shape
    return ops.view(operand(node), (*front, short, long))


class _Steps:
    """The steps of a recurrence, and the rows that each needs, computed where nothing else needs the others.

    ``order``: the dimensions of its values as the steps have them, of which the first counts the steps.
    """

    def __init__(
        self,
        producers: Mapping[int, Node],
        users: Mapping[int, int],
        inside: Mapping[int, int],
        order: _Order,
        ops: Ops,
    ) -> None:
        self._producers = producers
        self._users = users
        self._inside = inside
        self._order = order
        self._ops = ops
        self._made: dict[tuple[int, _Order, _Part | None], Value] = {}

    def recurrence(self, a: Value, b: Value, steps: int) -> Value:
        """The values of the recurrence, along the first dimension."""
        if steps > _IN_ORDER:
            return self._in_blocks(a, b, steps, math.isqrt(steps))
        return self._stacked(self._in_order(a, b, range(steps), self._order))

    def _in_order(
        self, a: Value, b: Value, steps: Iterable[int], order: _Order, before: Value | None = None
    ) -> list[Value]:
        values = [] if before is None else [before]
        for t in steps:
            summand = self._row(b, t, order)
            values.append(self._step(self._row(a, t, order), values[-1], summand) if values else summand)
        return values

    def _in_blocks(self, a: Value, b: Value, steps: int, size: int) -> Value:
        """All blocks at once as if each began with zero; then what each hands on to the next; then both together."""
        ops, blocks = self._ops, steps // size
        parts = [_Part(j, (blocks - 1) * size + j + 1, size) for j in range(size)]
        ys, products = [self._rows(b, self._order, parts[0])], [self._rows(a, self._order, parts[0])]
        for part in parts[1:]:
            factor = self._rows(a, self._order, part)
            ys.append(self._step(factor, ys[-1], self._rows(b, self._order, part)))
            products.append(ops.binary("mul", factor, products[-1]))
        *handed, last = self._in_order(products[-1], ys[-1], range(blocks), tuple(range(len(self._order))))
        y, product = (ops.cat([ops.unsqueeze(v, 1) for v in values], 1) for values in (ys, products))
        begun, carried = ops.slice(y, 0, 1, blocks), ops.unsqueeze(self._stacked(handed), 1)
        later = self._step(ops.slice(product, 0, 1, blocks), carried, begun)
        whole = ops.cat([ops.slice(y, 0, 0, 1), later], 0)
        values = ops.view(whole, (blocks * size, *last.tensor.shape))
        _, *tail = self._in_order(a, b, range(blocks * size, steps), self._order, last)
        return ops.cat([values, self._stacked(tail)], 0) if tail else values

    def _step(self, factor: Value, y: Value, summand: Value) -> Value:
        return self._ops.binary("add", self._ops.binary("mul", factor, y), summand)

    def _stacked(self, values: list[Value]) -> Value:
        shape = values[0].tensor.shape
        whole = self._ops.cat([self._ops.unsqueeze(v, 0) for v in values] if not shape else values, 0)
        return self._ops.view(whole, (len(values), *shape))

    def _picked(self, value: Value, part: _Part) -> Value:
        if not part.is_one:
            return self._ops.slice(value, 0, *part)
        return self._ops.emit("aten.select.int", (value, 0, part.start), plain(value.tensor, value.tensor.shape[1:]))

    def _row(self, value: Value, t: int, order: _Order) -> Value:
        return self._rows(value, order, _Part(t, t + 1, 1))

    def _rows(self, value: Value, order: _Order, part: _Part) -> Value:
        """Rows of a value, its dimensions in this order: made from rows of what only the recurrence needs."""
        key = value.id, order, part
        if key not in self._made:
            node = self._source(value)
            made = self._computed(node, order, part) if node is not None else None
            self._made[key] = self._picked(self._permuted(value, order), part) if made is None else made
        return self._made[key]

    def _source(self, value: Value) -> Node | None:
        """What computes a value for the recurrence alone."""
        alone = self._users.get(value.id, 0) == self._inside.get(value.id, 1)
        return self._producers.get(value.id) if alone else None

    def _permuted(self, value: Value, order: _Order) -> Value:
        """All of a value, its dimensions in this order."""
        if order == tuple(range(len(order))):
            return value
        key = value.id, order, None
        if key not in self._made:
            self._made[key] = self._ops.permute(value, order)
        return self._made[key]

    def _computed(self, node: Node, order: _Order, part: _Part) -> Value | None:
        match node.op, node.args:
            case "aten.permute.default", (Value() as source, tuple(given)):
                return self._rows(source, tuple(_integer(given[d]) for d in order), part)
            case "aten.unsqueeze.default", (Value() as source, int(at)) if at != order[0]:
                inner = tuple(d - (d > at) for d in order if d != at)
                return self._ops.unsqueeze(self._rows(source, inner, part), order.index(at) - part.is_one)
            case op, args if op in _ROWWISE:
                type_ = node.result.tensor
                rows = tuple(self._aligned(v, order, part) if isinstance(v, Value) else v for v in args)
                row = tuple(type_.shape[d] for d in order[1:])
                return self._ops.emit(op, rows, plain(type_, row if part.is_one else (len(range(*part)), *row)))
        return None

    def _aligned(self, value: Value, order: _Order, part: _Part) -> Value:
        """An operand's rows, or all of it where it has one for all, as they broadcast with the others."""
        missing = len(order) - value.tensor.rank
        own = tuple(d - missing for d in order if d >= missing)
        has_rows = order[0] >= missing and value.tensor.shape[own[0]] != 1
        if has_rows:
            aligned = self._rows(value, own, part)
        else:
            aligned = self._permuted(value, own)
            if part.is_one and order[0] >= missing:
                aligned = self._ops.view(aligned, aligned.tensor.shape[1:])
        left = order[part.is_one :]
        begins = next((i for i, d in enumerate(left) if d >= missing), len(left))
        for i, d in enumerate(left[begins:]):
            if d < missing:
                aligned = self._ops.unsqueeze(aligned, i)
        return aligned


def _integer(arg: Argument) -> int:
    assert isinstance(arg, int), "a size or a dimension that is not known only at the call"
    return arg
