"""One node as its rule sees it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from fairlead.ir import DType, Node, TensorType, Value
from fairlead_tvm._arrays import Array, Computed, Index, Shape, Strided
from fairlead_tvm._kernel import Kernel
from fairlead_tvm._layouts import Wanted
from fairlead_tvm._program import Program
from fairlead_tvm._schedule import DEFAULT, Schedule
from fairlead_tvm._tvm import Expr

__all__ = ["Call", "broadcast", "mapped", "spread_index"]


class Call:
    """A node, and what its rule may ask besides the arguments."""

    def __init__(
        self, node: Node, program: Program, wanted: Sequence[Wanted] = (), schedule: Schedule = DEFAULT
    ) -> None:
        self.node = node
        self.program = program
        self.schedule = schedule
        self._wanted = wanted

    @functools.cached_property
    def dtype(self) -> DType:
        """The element type of the first result that is used."""
        return next(r for r in self.node.results if r is not None).tensor.dtype

    def wants(self, index: int) -> bool:
        """Whether somebody uses this result."""
        return index < len(self.node.results) and self.node.results[index] is not None

    def shape(self, index: int = 0) -> Shape:
        """The declared shape of a result that is used."""
        result = self.node.results[index]
        assert result is not None, "a rule asks only for shapes of results that are used"
        return result.tensor.shape

    def declared(self, index: int) -> TensorType:
        """The type of a tensor operand."""
        value = self.node.args[index]
        assert isinstance(value, Value), "the argument is a tensor"
        return value.tensor

    def placed(self, which: int = 0) -> Strided | None:
        """The weight that lies as this rule wants it, where that is so; ``which`` of those that it wants."""
        if which >= len(self._wanted):
            return None
        index, layout = self._wanted[which]
        value = self.node.args[index]
        assert isinstance(value, Value), "a rule wants tensors placed"
        return self.program.placed.get((value.id, layout))

    def map(self, function: Callable[..., Expr], *arrays: Array, dtype: DType | None = None, cost: int = 1) -> Array:
        """An array whose elements are a function of those of others, which are spread over a common shape."""
        return mapped(self.program, function, arrays, dtype or arrays[0].dtype, cost)

    def kernel_map(
        self, function: Callable[..., Expr], *arrays: Array, dtype: DType | None = None, cost: int = 1
    ) -> Array:
        """The same of a function that takes the `Kernel` first."""
        return mapped(self.program, function, arrays, dtype or arrays[0].dtype, cost, with_kernel=True)

    def stored(self, array: Array) -> Strided:
        """The array in memory."""
        return self.program.stored(array)

    def require(self, holds: Array, what: str, error: type[Exception] = IndexError) -> None:
        """Have the call raise where not all of ``holds`` is true, as torch does."""
        self.program.checks.append((holds, error, f"{what} in {self.node.op}"))


def broadcast(*shapes: Shape) -> Shape:
    """The shape over which all are spread."""
    rank = max(map(len, shapes), default=0)
    found: list[Any] = [1] * rank
    for shape in shapes:
        for d, size in enumerate(shape, rank - len(shape)):
            if size != 1 and (found[d] == 1 or isinstance(size, int)):
                found[d] = size
    return tuple(found)


def mapped(
    program: Program,
    function: Callable[..., Expr],
    arrays: Sequence[Array],
    dtype: DType,
    cost: int,
    *,
    with_kernel: bool = False,
) -> Array:
    """The array of a function of elements. Of operands that wait for different products, all but one are computed."""
    shape = broadcast(*(a.shape for a in arrays))
    operands = _ready(program, arrays, shape)
    products = frozenset().union(*(a.products for a in operands))

    def element(k: Kernel, index: Index) -> Expr:
        values = [k.element(a, spread_index(a, shape, index)) for a in operands]
        return function(k, *values) if with_kernel else function(*values)

    found = Computed(shape, dtype, element, cost + sum(a.cost for a in operands), products)
    found.channels_last = any(a.channels_last for a in operands if a.shape == shape)
    return found


def _ready(program: Program, arrays: Sequence[Array], shape: Shape) -> list[Array]:
    """The operands, at most one product among them, which has the shape of the result."""
    kept: frozenset[Any] = frozenset()
    found: list[Array] = []
    for array in arrays:
        waits = bool(array.products)
        if waits and (array.shape != shape or (kept and array.products != kept)):
            array = program.stored(array)
        elif waits:
            kept = array.products
        found.append(array)
    return found


def spread_index(array: Array, shape: Shape, index: Index) -> list[Expr | int]:
    """The index of an operand for that of what it is spread over."""
    skipped = len(shape) - array.ndim
    return [0 if size == 1 else i for size, i in zip(array.shape, list(index)[skipped:], strict=True)]
