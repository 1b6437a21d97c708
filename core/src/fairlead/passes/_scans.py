"""Finds linear recurrences, ``y[t] = a[t] * y[t - 1] + b[t]``, that are computed as a tree, by what its rows are."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from fairlead.ir import Argument, Graph, Node, Value, dims
from fairlead.passes._nodes import operand

_SLICE = "aten.slice.Tensor"


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


class Tree(NamedTuple):
    """A recurrence along the first dimension: slices of its factors and of its summands, and the last of its values.

    ``inside`` counts how often each value is read within the tree.
    """

    factors: int
    summands: int
    result: int
    steps: int
    inside: Mapping[int, int]


def trees(graph: Graph, users: Mapping[int, int]) -> Iterator[Tree]:
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


def _followed(graph: Graph, factors: Node, summands: Node, users: Mapping[int, int]) -> Tree | None:
    """The tree over factors and summands, if there is a value in which each row is one of the recurrence's."""
    a, b = operand(factors), operand(summands)
    size = b.tensor.shape[0]
    assert isinstance(size, int), "of a recurrence whose number of steps is known"
    steps = range(size)
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
            return Tree(factors.result.id, summands.result.id, node.result.id, len(steps), inside) if known else None
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
