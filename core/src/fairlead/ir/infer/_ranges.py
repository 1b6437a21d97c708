"""What the ranges of symbols say about sizes: which of two is smaller."""

from __future__ import annotations

import ast
import copy
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from fairlead.ir._model import Symbol
from fairlead.ir.dims import Dim, normalize

Range: TypeAlias = tuple[float, float]
"""The least and the greatest value, infinite where there is none."""

Ranges: TypeAlias = Mapping[str, Range]


def ranges_of(symbols: Iterable[Symbol]) -> Ranges:
    """The ranges of symbols by their names."""
    return {s.name: (s.lo, math.inf if s.hi is None else s.hi) for s in symbols}


def decided(dim: Dim, ranges: Ranges) -> Dim:
    """The size without the ``min`` and ``max`` that the ranges of the symbols decide; others are not negative.

    >>> decided("min(8, s) + 1", {"s": (2, 8)}), decided("max(s - 2, 0)", {"s": (2, math.inf)})
    ('s + 1', 's - 2')
    """
    if isinstance(dim, int) or not ("min(" in dim or "max(" in dim):
        return dim
    tree = _Decided(ranges).visit(ast.parse(dim, mode="eval"))
    return normalize(ast.unparse(tree))


def choices(dim: Dim) -> Iterator[Dim]:
    """What the size may be where it is not known which part of a ``min`` or ``max`` counts."""
    if isinstance(dim, int):
        yield dim
        return
    tree = ast.parse(dim, mode="eval")
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
    for picked in itertools.islice(itertools.product(*(range(len(c.args)) for c in calls)), _MOST_CHOICES):
        chosen = dict(zip(map(ast.unparse, calls), picked, strict=True))
        yield normalize(ast.unparse(_Picked(chosen).visit(copy.deepcopy(tree))))


_MOST_CHOICES = 64


def may_be(dim: Dim, number: int, ranges: Ranges) -> bool:
    """Whether an expression can have a value, as far as the ranges of its symbols tell; a symbol alone is not asked.

    A guard can make a number of an expression, which torch then writes in some places; of a symbol, it does so in all.

    >>> may_be("(s//8)", 1, {"s": (8, math.inf)}), may_be("s + 1", 1, {"s": (2, 9)}), may_be("s", 3, {"s": (2, 9)})
    (True, False, False)
    """
    if isinstance(dim, int) or dim.isidentifier():
        return False
    low, high = _range(dim, ranges)
    return low <= number <= high


class _Picked(ast.NodeTransformer):
    def __init__(self, picked: Mapping[str, int]) -> None:
        self.picked = picked

    def visit_Call(self, node: ast.Call) -> ast.expr:
        index = self.picked[ast.unparse(node)]
        self.generic_visit(node)
        return node.args[index]


class _Decided(ast.NodeTransformer):
    def __init__(self, ranges: Ranges) -> None:
        self.ranges = ranges

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        smallest = isinstance(node.func, ast.Name) and node.func.id == "min"
        left = list(node.args)
        for arg in node.args:
            if any(self._yields(arg, other, smallest) for other in left if other is not arg):
                left.remove(arg)
        return left[0] if len(left) == 1 else ast.Call(node.func, left, [])

    def _yields(self, a: ast.expr, b: ast.expr, smallest: bool) -> bool:
        """Whether ``a`` never counts beside ``b``."""
        low, high = _range(f"({ast.unparse(a)}) - ({ast.unparse(b)})", self.ranges)
        return low >= 0 if smallest else high <= 0


def _range(text: str, ranges: Ranges) -> Range:
    """The values that an expression takes."""
    dim = normalize(text)
    return (dim, dim) if isinstance(dim, int) else _of(ast.parse(dim, mode="eval").body, ranges)


def _of(node: ast.expr, ranges: Ranges) -> Range:
    match node:
        case ast.Constant(value=int(value)):
            return value, value
        case ast.Name(id=name):
            return ranges.get(name, _A_SIZE)
        case ast.UnaryOp(operand=operand):
            low, high = _of(operand, ranges)
            return -high, -low
        case ast.BinOp(left=left, op=op, right=right):
            return _combined(op, _of(left, ranges), _of(right, ranges))
        case ast.Call(func=ast.Name(id=name), args=args):
            pick = min if name == "min" else max
            found = [_of(arg, ranges) for arg in args]
            return pick(low for low, _ in found), pick(high for _, high in found)
    return _ANY


_ANY: Range = (-math.inf, math.inf)
_A_SIZE: Range = (0, math.inf)


def _combined(op: ast.operator, a: Range, b: Range) -> Range:
    match op:
        case ast.Add():
            return a[0] + b[0], a[1] + b[1]
        case ast.Sub():
            return a[0] - b[1], a[1] - b[0]
        case ast.Mult():
            products = [_times(x, y) for x in a for y in b]
            return min(products), max(products)
        case ast.FloorDiv() if b[0] == b[1] and b[0] > 0:
            return _divided(a[0], b[0]), _divided(a[1], b[0])
        case ast.Mod() if b[0] == b[1] and b[0] > 0:
            return 0, b[0] - 1
    return _ANY


def _times(x: float, y: float) -> float:
    return 0 if 0 in (x, y) else x * y


def _divided(x: float, y: float) -> float:
    return x if math.isinf(x) else x // y
