"""A graph while it is written: its sizes, its values, and the kernels that compute them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairlead.ir import Argument, Complex, DimExpr, DType, Token, Value, dims
from fairlead.ir.dims import Dim
from fairlead_tvm._arrays import Array, Computed, Memory, Shape, Strided, channels_last, row_major
from fairlead_tvm._kernel import Kernel, Sizes
from fairlead_tvm._layouts import Layout
from fairlead_tvm._tvm import VECTOR, Module

__all__ = ["Program"]


class Program:
    """What nodes share: ``values`` by id, and ``placed``, weights that lie as one rule wants them.

    ``checks`` are arrays of booleans that have to hold at run time, each with what is wrong where one does not.
    """

    def __init__(self, names: list[str], *, threads: int) -> None:
        self.sizes = Sizes(names)
        self.module = Module()
        self.values: dict[int, Any] = {}
        self.placed: dict[tuple[int, Layout], Strided] = {}
        self.checks: list[tuple[Array, type[Exception], str]] = []
        self._threads = threads
        self._stored: dict[int, tuple[Array, Strided]] = {}

    def argument(self, arg: Argument) -> Any:
        """An argument as rules take it: an `Array`, a number, a dimension, a dtype or a tuple."""
        match arg:
            case Value():
                return self.values[arg.id]
            case DimExpr(expr=expr):
                return dims.normalize(expr)
            case Token(kind="dtype", name=name):
                return DType(name)
            case Complex(re=re, im=im):
                return complex(re, im)
            case tuple():
                return tuple(self.argument(a) for a in arg)
        return arg

    def kernel(
        self, shape: Shape, dtype: DType, write: Callable[[Kernel, Strided], None], order: tuple[int, ...] | None = None
    ) -> Strided:
        """The result of a kernel; ``order`` has its dimensions from the widest stride to the narrowest."""
        order = tuple(range(len(shape))) if order is None else order
        memory = Memory(None, tuple(shape[d] for d in order), dtype)
        steps = dict(zip(order, row_major(memory.shape), strict=True))
        out = Strided(memory, shape, tuple(steps[d] for d in range(len(shape))))
        out.channels_last = len(shape) > 2 and order == channels_last(len(shape))
        k = Kernel(self.sizes, threads=self._threads)
        write(k, out)
        if k.calls_out:
            k = Kernel(self.sizes, threads=self._threads, vectors=False)
            write(k, out)
        function, values, symbols = k.finished(memory)
        args = [*values, *(self.sizes.variables[s] for s in symbols)]
        memory.value = self.module.call(function, args, [self.sizes(d) for d in memory.shape], dtype)
        return out

    def stored(self, array: Array) -> Strided:
        """The array in memory."""
        if isinstance(array, Strided):
            return array
        known = self._stored.get(id(array))
        if known is None:
            known = self._stored[id(array)] = array, self._computed(array)
        return known[1]

    def whole(self, array: Array) -> Strided:
        """The array in memory of its own, in order."""
        found = self.stored(array)
        if found.is_whole:
            return found
        return self.copied(found)

    def copied(self, array: Strided) -> Strided:
        """The same elements in memory of their own."""
        if array.channels_last:
            return self._turned(array)
        return self.stored(Computed(array.shape, array.dtype, lambda k, index: k.element(array, index), cost=0))

    def _turned(self, array: Strided) -> Strided:
        """What a kernel wrote channels last, in order: some places of all channels at a time, which a cache holds."""
        from fairlead_tvm._pointwise import lanes

        batch, channels, *places = array.shape
        count, width = dims.product(places), 2 * lanes(array.dtype)
        image = dims.mul(count, channels)
        source = Strided(array.memory, (batch, channels, count), (image, 1, channels))

        def write(k: Kernel, out: Strided) -> None:
            size, work = k.size(count), k.size(dims.mul(batch, image))
            target = Strided(out.memory, source.shape, row_major(source.shape))

            def copy(n: Any, c: Any, place: Any) -> None:
                k.write(target, [n, c, place], k.element(source, [n, c, place]))

            with k.shared(k.size(batch), work) as n:
                with k.shared(size // width, work) as o, k.loop(k.size(channels)) as c, k.loop(width, VECTOR) as i:
                    copy(n, c, o * width + i)
                with k.loop(size % width) as i, k.loop(k.size(channels)) as c:
                    copy(n, c, size // width * width + i)

        return self.kernel(array.shape, array.dtype, write)

    def _computed(self, array: Array) -> Strided:
        from fairlead_tvm._pointwise import pointwise

        if not array.products:
            return pointwise(self, array)
        (product,) = array.products
        found: Strided = product.emit(self, array)
        return found

    def size(self, dim: Dim) -> Any:
        return self.sizes(dim)
