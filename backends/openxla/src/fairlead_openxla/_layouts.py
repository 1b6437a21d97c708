"""How inputs lie in memory: weights as the ops that read them run fastest, others as torch has them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import torch

from fairlead.ir import DType, Graph, Node, TensorType, Value
from fairlead_openxla._releases import turns_products
from fairlead_openxla._tiles import factors

__all__ = [
    "FEW_ROWS",
    "Layout",
    "Places",
    "Wanted",
    "as_declared",
    "behind",
    "cuts",
    "input_layouts",
    "matrix",
    "shares_lines",
    "stacks",
    "turns",
]

_BLOCK = 1536
"""Bytes of a row of a block: what Eigen packs stays in the first cache."""
_LANES = 16

FEW_ROWS = 16
"""Rows from which another layout of the factor on the right is worth having."""

_MANY_ROWS = 97
"""Rows from which transposes cost more than Eigen gains by them.

It takes the rows of a turned product 48 at once, and a few that are left over as long as another 48.
"""


@dataclass(frozen=True, slots=True)
class Layout:
    """The order of a tensor's dimensions, and how much of the last of them each array has, 0 for all of it.

    ``tiled`` are the factors of tiles in place of a weight of 3 by 3 (`factors`). ``apart``: each index of the first
    dimension has an array.
    """

    order: tuple[int, ...]
    width: int = 0
    tiled: bool = False
    apart: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether the tensor is one array, with its own elements."""
        return not (self.width or self.tiled or self.apart)

    def arrays(self, weight: torch.Tensor) -> list[torch.Tensor]:
        """A weight, in the order in which the program takes its parts: views, unless they are factors of tiles."""
        moved = weight.permute(self.order)
        if self.tiled:
            return [factors(moved)]
        if self.apart:
            return list(moved)
        return list(torch.split(moved, self.width, -1)) if self.width else [moved]

    def shapes(self, shape: tuple[int, ...]) -> list[tuple[int, ...]]:
        """The shapes of `arrays`."""
        moved = tuple(shape[d] for d in self.order)
        if self.tiled:
            return [(16, *moved[2:])]
        if self.apart:
            return [moved[1:]] * moved[0]
        if not self.width:
            return [moved]
        *lead, last = moved
        return [(*lead, min(self.width, last - start)) for start in range(0, last, self.width)]


Wanted: TypeAlias = tuple[int, Layout]
"""An operand, and how it should lie."""

Places: TypeAlias = Callable[[Node], Wanted | None]
"""The weight that the rule of a node would rather have in a layout of its own, where it has one."""


def as_declared(rank: int) -> Layout:
    """A tensor as torch has it."""
    return Layout(tuple(range(rank)))


def matrix(index: int, *, transposed: bool = False) -> Places:
    """A factor on the right, with its columns in blocks where rows of whole ones would share lines of the cache.

    Eigen's product reads one row after the other when it packs the factor. Rows that lie a multiple of 4096 bytes apart
    share a few lines of the first cache, which takes twice as long; rows of a block that is narrow enough never do.
    A few rows are not worth more than one product. Where `turns` holds, the factor's columns lie in order.
    """

    def places(node: Node) -> Wanted | None:
        value, x = node.args[index], node.args[index - 1]
        if not isinstance(value, Value) or value.tensor.rank != 2 or not value.tensor.is_static:
            return None
        order = (1, 0) if transposed else (0, 1)
        inner, columns = (value.tensor.shape[d] for d in order)
        assert isinstance(inner, int), "a static shape has numbers"
        assert isinstance(columns, int), "a static shape has numbers"
        rows = _rows(x)
        if value.tensor.dtype is DType.f32 and turns(rows, inner, columns):
            return None if transposed else (index, Layout((1, 0)))
        itemsize = value.tensor.dtype.itemsize
        is_cut = shares_lines(columns, itemsize) and not 0 < rows < FEW_ROWS
        return index, Layout(order, _even(columns, _BLOCK // itemsize) if is_cut else 0)

    return places


def shares_lines(columns: int, itemsize: int) -> bool:
    """Whether rows of so many columns lie a multiple of 4096 bytes apart."""
    return columns * itemsize % 4096 == 0


def turns(rows: int, inner: int, columns: int) -> bool:
    """Whether the product with the transpose of a matrix is faster as that of the matrix with a transpose."""
    return turns_products() and FEW_ROWS <= rows < _MANY_ROWS and rows * (inner + columns) < inner * columns


def _rows(x: object) -> int:
    """How many rows the factor on the left has; 0 where that is known only in a call."""
    if not isinstance(x, Value) or not x.tensor.is_static:
        return 0
    return math.prod(n for n in x.tensor.shape[:-1] if isinstance(n, int))


def cuts(columns: int, itemsize: int) -> list[int]:
    """Where a factor of so many columns is cut."""
    width = _even(columns, _BLOCK // itemsize)
    return list(range(width, columns, width))


def _even(columns: int, most: int) -> int:
    """The width of blocks that are about the same, in whole vectors."""
    blocks = -(-columns // most)
    width = -(-columns // max(blocks, 1))
    return min(-(-width // _LANES) * _LANES, most)


def input_layouts(graph: Graph, placed: frozenset[int], places: Places) -> dict[int, tuple[Layout, ...]]:
    """By value, how inputs lie that do not lie as they are declared: weights, once for each way in which they are read.

    Inputs that are passed come with the strides of their type, as a backward gets what its forward saved.
    """
    found: dict[int, dict[Layout, None]] = {graph.inputs[i].value.id: {} for i in placed}
    transposed = stacks(graph)
    for node in graph.nodes:
        wanted = places(node)
        for index, argument in enumerate(node.args):
            for value in _values(argument):
                asked = wanted is not None and wanted[0] == index
                own = wanted[1] if asked and wanted else as_declared(value.tensor.rank)
                read, placed_as = behind(value.id, own, transposed)
                if read in found:
                    found[read][placed_as] = None
    passed = [item.value for i, item in enumerate(graph.inputs) if i not in placed]
    strided = {value.id: (layout,) for value in passed if (layout := _of_strides(value)) is not None}
    return {value: tuple(layouts) for value, layouts in found.items()} | strided


def stacks(graph: Graph) -> dict[int, int]:
    """By value that is a stack of the transposes of matrices, the value with the matrices."""
    found: dict[int, int] = {}
    for node in graph.nodes:
        match node:
            case Node(op="aten.permute.default", args=(Value() as value, (0, 2 | -1, 1 | -2))):
                found[node.result.id] = value.id
    return found


def behind(value: int, layout: Layout, transposed: Mapping[int, int]) -> tuple[int, Layout]:
    """Which value to lay out, and how, so that this one's matrices are apart: where it has transposes, those of them.

    >>> behind(7, Layout((0, 2, 1), apart=True), {7: 3})
    (3, Layout(order=(0, 1, 2), width=0, tiled=False, apart=True))
    """
    if not layout.apart or value not in transposed:
        return value, layout
    first, row, column = layout.order
    return transposed[value], Layout((first, column, row), apart=True)


def _of_strides(value: Value) -> Layout | None:
    """The dimensions from the widest stride to the narrowest."""
    if not isinstance(value.type, TensorType) or value.type.strides is None:
        return None
    strides = [s for s in value.type.strides if isinstance(s, int)]
    if len(strides) < value.type.rank:
        return None
    return Layout(tuple(sorted(range(len(strides)), key=lambda d: -strides[d])))


def _values(argument: object) -> Iterator[Value]:
    if isinstance(argument, Value):
        yield argument
    elif isinstance(argument, tuple):
        for each in argument:
            yield from _values(each)
