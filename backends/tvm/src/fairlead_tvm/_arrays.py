"""Tensors while a graph is written: strided views of memory, and functions of indices that are not computed yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from fairlead.ir import DType, dims
from fairlead.ir.dims import Dim
from fairlead_tvm._tvm import Expr

if TYPE_CHECKING:
    from fairlead_tvm._kernel import Kernel

__all__ = ["Array", "Computed", "Index", "Memory", "Shape", "Strided", "channels_last", "row_major"]

Shape: TypeAlias = tuple[Dim, ...]
Index: TypeAlias = "Sequence[Expr | int]"


def row_major(shape: Shape) -> Shape:
    """The strides of a tensor whose last dimension is next to itself in memory."""
    strides: list[Dim] = []
    step: Dim = 1
    for d in reversed(shape):
        strides.append(step)
        step = dims.mul(step, d)
    return tuple(reversed(strides))


def channels_last(rank: int) -> tuple[int, ...]:
    """The order of dimensions in which channels, which are the second, come last."""
    return (0, *range(2, rank), 1)


class Array:
    """A tensor. ``cost`` is what computing an element takes, in additions; ``products`` what is not computed yet.

    ``channels_last`` says that it is read fastest along its second dimension, as what convolutions write.
    """

    __slots__ = ("channels_last", "cost", "dtype", "products", "shape")

    def __init__(self, shape: Shape, dtype: DType, cost: int = 0, products: frozenset[Any] = frozenset()) -> None:
        self.channels_last = False
        self.shape = shape
        self.dtype = dtype
        self.cost = cost
        self.products = products

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def element(self, k: Kernel, index: Index) -> Expr:
        """The element at an index, as an expression within a kernel; ask `Kernel.element`, which remembers it."""
        raise NotImplementedError


class Memory:
    """What a parameter or a kernel's result is: a Relax variable, and the shape that it has."""

    __slots__ = ("dtype", "shape", "value")

    def __init__(self, value: Any, shape: Shape, dtype: DType) -> None:
        self.value = value
        self.shape = shape
        self.dtype = dtype


class Strided(Array):
    """A view of memory."""

    __slots__ = ("memory", "offset", "strides")

    def __init__(self, memory: Memory, shape: Shape, strides: Shape, offset: Dim = 0) -> None:
        super().__init__(shape, memory.dtype)
        self.memory = memory
        self.strides = strides
        self.offset = offset

    @classmethod
    def whole(cls, memory: Memory) -> Strided:
        return cls(memory, memory.shape, row_major(memory.shape))

    @property
    def is_whole(self) -> bool:
        """Whether it is all of its memory, in order."""
        steps = zip(self.shape, self.strides, row_major(self.shape), strict=True)
        in_order = all(size == 1 or stride == step for size, stride, step in steps)
        return self.offset == 0 and in_order and _same_count(self.shape, self.memory.shape)

    def element(self, k: Kernel, index: Index) -> Expr:
        at = k.size(self.offset)
        for i, stride, size in zip(index, self.strides, self.shape, strict=True):
            if size != 1 and stride != 0:
                at = at + i * k.size(stride)
        return k.load(self.memory, at)


def _same_count(a: Shape, b: Shape) -> bool:
    return dims.product(a) == dims.product(b)


class Computed(Array):
    """A function of its indices, evaluated wherever it is read."""

    __slots__ = ("function",)

    def __init__(
        self,
        shape: Shape,
        dtype: DType,
        function: Callable[[Kernel, Index], Expr],
        cost: int = 1,
        products: frozenset[Any] = frozenset(),
    ) -> None:
        super().__init__(shape, dtype, cost, products)
        self.function = function

    def element(self, k: Kernel, index: Index) -> Expr:
        return self.function(k, index)
