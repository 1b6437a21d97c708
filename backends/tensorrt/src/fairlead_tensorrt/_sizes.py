"""The ranges of sizes that an engine is built for: TensorRT's optimisation profile, from the symbols of a graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from fairlead.ir import Graph, ScalarType, Symbol, dims
from fairlead_tensorrt._sdk import Range

__all__ = ["Size", "around", "given_sizes", "ranges"]

_TYPICAL, _LARGE = 16, 512
"""What stands for a size of which nothing is known: where an engine is built before the first call."""


class Size(msgspec.Struct, frozen=True):
    """From where to where a symbol of a graph may be, and the number that the engine is fastest for."""

    smallest: int
    best: int
    largest: int

    def holds(self, number: int) -> bool:
        return self.smallest <= number <= self.largest


def around(symbol: Symbol, number: int, before: Size | None = None) -> Size:
    """The range of a symbol that was seen to be ``number``, no smaller than the one before.

    The symbol's own bounds are taken as they are. Without an upper one, there is room for twice the number, up to a
    power of two, so that a size that grows is built for again once for each doubling.

    >>> around(Symbol("s", 2, None, (0, 0)), 100)
    Size(smallest=2, best=100, largest=256)
    >>> around(Symbol("s", 2, 64, (0, 0)), 10)
    Size(smallest=2, best=10, largest=64)
    """
    smallest = min(max(symbol.lo, 1), number)
    largest = (1 << (2 * number - 1).bit_length()) if symbol.hi is None else max(symbol.hi, number)
    if before is not None:
        smallest, largest = min(smallest, before.smallest), max(largest, before.largest)
    return Size(smallest, number, max(largest, 1))


def given_sizes(graph: Graph, sizes: Mapping[str, tuple[int, int, int]]) -> dict[str, Size]:
    """The range of each symbol: the caller's, or one that is as wide as the symbol's bounds, 512 at most without one.

    Raises ValueError for a name that the graph has no symbol of.
    """
    if unknown := set(sizes) - {s.name for s in graph.symbols}:
        raise ValueError(f"the graph has no symbol {', '.join(sorted(unknown))}")
    return {s.name: Size(*sizes[s.name]) if s.name in sizes else _unseen(s) for s in graph.symbols}


def _unseen(symbol: Symbol) -> Size:
    smallest = max(symbol.lo, 1)
    largest = max(_LARGE, smallest) if symbol.hi is None else symbol.hi
    return Size(smallest, min(max(_TYPICAL, smallest), largest), largest)


def ranges(graph: Graph, names: Sequence[str | None], sizes: Mapping[str, Size]) -> dict[str, Range]:
    """The range of each input of the model, by name, whose shape or number depends on symbols."""
    found = {}
    for name, given in zip(names, graph.inputs, strict=True):
        type_ = given.value.type
        if name is None:
            continue
        if isinstance(type_, ScalarType):
            if (symbol := _number(graph, given.value)) is not None:
                size = sizes[symbol.name]
                found[name] = Range((size.smallest,), (size.best,), (size.largest,), is_value=True)
        elif not type_.is_static:
            found[name] = _range(type_.shape, sizes)
    return found


def _number(graph: Graph, value: Any) -> Symbol | None:
    return next((s for s in graph.symbols if s.source[1] is None and graph.inputs[s.source[0]].value is value), None)


def _range(shape: Sequence[dims.Dim], sizes: Mapping[str, Size]) -> Range:
    ends = [_evaluated(shape, {name: getattr(size, end) for name, size in sizes.items()}) for end in _ENDS]
    smallest, best, largest = ends
    pairs = list(zip(smallest, largest, strict=True))  # a size that falls while a symbol grows has its ends swapped
    return Range(tuple(map(min, pairs)), best, tuple(map(max, pairs)))


_ENDS = ("smallest", "best", "largest")


def _evaluated(shape: Iterable[dims.Dim], env: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(dims.evaluate(d, env) for d in shape)
