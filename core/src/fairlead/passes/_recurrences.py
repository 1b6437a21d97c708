"""Linear recurrences that are computed as a tree, ``y[t] = a[t] * y[t - 1] + b[t]``, are computed in order.

State space models ask whether they are compiled, and then give the recurrence to ``associative_scan``, which torch
writes out on a CPU: neighbours are combined, the half that is left is scanned, and what lies between is filled in. That
makes few steps of many for devices that need large ones; a CPU only copies every second row again and again.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from fairlead.ir import Argument, Graph, Node, Value, dims
from fairlead.passes._dead import remove_dead_nodes
from fairlead.passes._nodes import operand, shape_argument
from fairlead.passes._ops import Ops, plain
from fairlead.passes._rewrite import Emitter, Replacement, rewrite
from fairlead.passes._views import merge_permutations

_IN_ORDER = 64
"""So many rows are computed one after another; more in blocks of about the root of their number, side by side."""

_SLICE = "aten.slice.Tensor"

_ROWWISE = frozenset(
    f"aten.{name}"
    for name in (
        "add.Tensor", "div.Tensor", "exp.default", "mul.Tensor", "neg.default", "sigmoid.default", "silu.default",
        "softplus.default", "sub.Tensor", "_to_copy.default",
    )
)  # fmt: skip
"""What computes the factors and summands of a recurrence, and may as well compute a row of them when it is needed."""


def unroll_recurrences(graph: Graph, *, in_blocks: bool = False) -> Graph:
    """The graph with the steps of linear recurrences in order, on a CPU, where they are computed as a tree.

    Before: a canonical graph. After: ``y[t] = a[t] * y[t - 1] + b[t]`` along a dimension of at most 64 rows is as many
    products and sums, wherever it was the tree of ``associative_scan`` and nothing else reads the tree's values; rows
    of ``a`` and ``b`` that only this needs are computed one by one. ``in_blocks``: along longer dimensions too, whose
    blocks, of about the root of their number, are computed side by side.
    """
    users = graph.users()
    trees = [t for t in _trees(graph, users) if in_blocks or t.steps <= _IN_ORDER]
    if not trees:
        return graph
    return remove_dead_nodes(merge_permutations(rewrite(graph, _Recurrences(trees, users))))


class _Span(NamedTuple):
    """What one row of a tree is of the recurrence's rows from ``first`` to ``last``.

    ``a``: the product of their factors. ``b``: what they make of a zero. ``ab``: the product of the factors from
    ``middle`` on and of what the rows before it make of a zero.
    """

    kind: str
    first: int
    last: int
    middle: int = 0


class _Known(NamedTuple):
    """What the rows of a tensor are, along its first dimension; None for one that is filled up, or something else.

    ``beside``: so many lie side by side in each place of that dimension, counted one by one.
    """

    rows: tuple[_Span | None, ...]
    beside: int = 1


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


class _Tree(NamedTuple):
    """A recurrence: slices of its factors and of its summands, and the last of its values.

    ``inside`` counts how often each value is read within the tree.
    """

    factors: int
    summands: int
    result: int
    steps: int
    inside: Mapping[int, int]


class _Recurrences:
    """The rule that puts steps in order in place of the last node of each tree."""

    def __init__(self, trees: Iterable[_Tree], users: Mapping[int, int]) -> None:
        self._trees = {tree.result: tree for tree in trees}
        self._users = users
        self._producers: dict[int, Node] = {}

    def __call__(self, node: Node, emit: Emitter) -> Replacement | None:
        self._producers.update((r.id, node) for r in node.results if r is not None)
        tree = self._trees.get(node.results[0].id) if node.results and node.results[0] is not None else None
        if tree is None:
            return None
        factors, summands = (operand(self._producers[i]) for i in (tree.factors, tree.summands))
        return (_Steps(self._producers, self._users, tree.inside, emit).recurrence(factors, summands),)


class _Steps:
    """The steps of a recurrence, and the rows that each needs, computed where nothing else needs the others."""

    def __init__(
        self, producers: Mapping[int, Node], users: Mapping[int, int], inside: Mapping[int, int], emit: Emitter
    ) -> None:
        self._producers = producers
        self._users = users
        self._inside = inside
        self._ops = Ops(emit)
        self._made: dict[tuple[int, _Order, _Part | None], Value] = {}

    def recurrence(self, a: Value, b: Value) -> Value:
        """The values of the recurrence, along the first dimension."""
        steps = _size(b)
        if steps > _IN_ORDER:
            return self._in_blocks(a, b, steps, math.isqrt(steps))
        return self._stacked(self._in_order(a, b, range(1, steps), self._row(b, 0)))

    def _in_order(self, a: Value, b: Value, steps: Iterable[int], y: Value) -> list[Value]:
        values = [y]
        for t in steps:
            values.append(self._step(self._row(a, t), values[-1], self._row(b, t)))
        return values

    def _in_blocks(self, a: Value, b: Value, steps: int, size: int) -> Value:
        """All blocks at once as if each began with zero; then what each hands on to the next; then both together."""
        ops, blocks = self._ops, steps // size
        parts = [_Part(j, (blocks - 1) * size + j + 1, size) for j in range(size)]
        as_it_is = tuple(range(b.tensor.rank))
        ys, products = [self._rows(b, as_it_is, parts[0])], [self._rows(a, as_it_is, parts[0])]
        for part in parts[1:]:
            factor = self._rows(a, as_it_is, part)
            ys.append(self._step(factor, ys[-1], self._rows(b, as_it_is, part)))
            products.append(ops.binary("mul", factor, products[-1]))
        *handed, last = self._in_order(products[-1], ys[-1], range(1, blocks), self._row(ys[-1], 0))
        y, product = (ops.cat([ops.unsqueeze(v, 1) for v in values], 1) for values in (ys, products))
        begun, carried = ops.slice(y, 0, 1, blocks), ops.unsqueeze(self._stacked(handed), 1)
        later = self._step(ops.slice(product, 0, 1, blocks), carried, begun)
        whole = ops.cat([ops.slice(y, 0, 0, 1), later], 0)
        values = ops.view(whole, (blocks * size, *b.tensor.shape[1:]))
        _, *tail = self._in_order(a, b, range(blocks * size, steps), last)
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

    def _row(self, value: Value, t: int) -> Value:
        return self._rows(value, tuple(range(value.tensor.rank)), _Part(t, t + 1, 1))

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


def _trees(graph: Graph, users: Mapping[int, int]) -> Iterator[_Tree]:
    """The recurrences that are computed as trees, outermost first, where nothing reads what lies within one."""
    producers = graph.producers()
    known: set[int] = set()
    for node in graph.nodes:
        if (node.op, node.args[2:]) != ("aten.add.Tensor", (1,)) or node.result.id in known:
            continue
        for factors, summands in _beginnings(node, producers):
            tree = _followed(graph, factors, summands, users)
            if tree is not None:
                known.update(tree.inside)
                yield tree


def _beginnings(node: Node, producers: Mapping[int, Node]) -> Iterator[tuple[Node, Node]]:
    """The slices of factors and of summands where a sum is what neighbours in a tree are combined to."""
    x, y = node.args[:2]
    for product, own in ((x, y), (y, x)):
        multiplied, summands = _made(product, "aten.mul.Tensor", producers), _made(own, _SLICE, producers)
        if multiplied is None or summands is None or summands.args[1:3] != (0, 1):
            continue
        for factor, carried in (multiplied.args, multiplied.args[::-1]):
            factors, before = _made(factor, _SLICE, producers), _made(carried, _SLICE, producers)
            if factors is None or before is None or before.args[0] != summands.args[0]:
                continue
            a, b = operand(factors), operand(summands)
            same = (a.tensor.shape, a.tensor.dtype) == (b.tensor.shape, b.tensor.dtype)
            if same and a.id != b.id and b.tensor.device == "cpu" and isinstance(b.tensor.shape[0], int):
                yield factors, summands


def _made(arg: Argument, op: str, producers: Mapping[int, Node]) -> Node | None:
    node = producers.get(arg.id) if isinstance(arg, Value) else None
    return node if node is not None and node.op == op else None


def _followed(graph: Graph, factors: Node, summands: Node, users: Mapping[int, int]) -> _Tree | None:
    """The tree over factors and summands, if there is a value in which each row is one of the recurrence's."""
    a, b = operand(factors), operand(summands)
    steps = range(_size(b))
    rows: dict[int, _Known] = {
        a.id: _Known(tuple(_Span("a", t, t) for t in steps)),
        b.id: _Known(tuple(_Span("b", t, t) for t in steps)),
    }
    wanted = _Known(tuple(_Span("b", 0, t) for t in steps))
    inside: dict[int, int] = {}
    for node in graph.nodes:
        found = _found(node, rows, b.tensor.shape[1:])
        if found is None:
            continue
        for value in node.operands():
            inside[value.id] = inside.get(value.id, 0) + 1
        if found == wanted and node.result.tensor.shape == b.tensor.shape:
            known = all(users.get(i, 0) == inside.get(i, 0) for i in rows if i not in (a.id, b.id))
            return _Tree(factors.result.id, summands.result.id, node.result.id, len(steps), inside) if known else None
        rows[node.result.id] = found
    return None


def _found(node: Node, rows: Mapping[int, _Known], row: tuple[dims.Dim, ...]) -> _Known | None:
    """What the rows of a node's result are, each of this shape, where those of all that it reads are known."""
    operands = tuple(node.operands())
    if not operands or not all(v.id in rows for v in operands):
        return None
    known = [rows[v.id].rows for v in operands]
    beside = {rows[v.id].beside for v in operands}
    alike = len({v.tensor.shape for v in operands}) == 1
    match node.op, node.args[1:]:
        case "aten.view.default", _ if beside == {2}:
            size = len(known[0])
            return {(size // 2, 2, *row): _Known(known[0], 2), (size, *row): _Known(known[0])}.get(
                node.result.tensor.shape
            )
        case _ if beside != {1}:
            return None
        case "aten.slice.Tensor", (0, int(start), int(stop), int(step)):
            return _Known(known[0][start:stop:step])
        case "aten.mul.Tensor", _ if alike and len(known) == 2:
            return _Known(tuple(map(_product, *known)))
        case "aten.add.Tensor", (_, 1) if alike and len(known) == 2:
            return _Known(tuple(map(_sum, *known)))
        case "aten.cat.default", (0,):
            return _Known(tuple(itertools.chain(*known)))
        case "aten.cat.default", (1,) if alike and len(known) == 2:
            return _Known(tuple(itertools.chain(*zip(*known, strict=True))), 2)
        case "aten.unsqueeze.default", (1,):
            return _Known(known[0])
        case "aten.constant_pad_nd.default", ((*others, 0, int(more)), _) if more >= 0 and not any(others):
            return _Known((*known[0], *([None] * more))) if len(others) + 2 == 2 * operand(node).tensor.rank else None
    return None


def _product(x: _Span | None, y: _Span | None) -> _Span | None:
    """Of two rows: factors with what comes before them, in either order."""
    for early, late in ((x, y), (y, x)):
        if early is not None and late is not None and late.kind == "a" and early.last + 1 == late.first:
            match early.kind:
                case "a":
                    return _Span("a", early.first, late.last)
                case "b":
                    return _Span("ab", early.first, late.last, late.first)
    return None


def _sum(x: _Span | None, y: _Span | None) -> _Span | None:
    """Of two rows: what is carried to a stretch and the stretch's own, in either order."""
    for carried, own in ((x, y), (y, x)):
        if carried is not None and carried.kind == "ab" and own == _Span("b", carried.middle, carried.last):
            return _Span("b", carried.first, carried.last)
    return None


def _size(value: Value) -> int:
    """The size of the first dimension of a value whose tree was found, which is a number."""
    return _integer(shape_argument(value.tensor.shape)[0])


def _integer(arg: Argument) -> int:
    assert isinstance(arg, int), "a size or a dimension that is not known only at the call"
    return arg


def _without(dim: int, order: Iterable[int]) -> list[int]:
    return [d for d in order if d != dim]
