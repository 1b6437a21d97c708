"""The schedule of element-wise kernels: vectors along the narrowest dimension, threads along the widest."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from fairlead.ir import DType, dims
from fairlead_tvm._arrays import Array, Shape, Strided, channels_last
from fairlead_tvm._kernel import Kernel
from fairlead_tvm._tvm import SERIAL, VECTOR, Expr, vector_bytes

if TYPE_CHECKING:
    from fairlead_tvm._program import Program

__all__ = ["lanes", "pointwise", "split", "unflattened", "vectors"]

_SHORT = 16
"""A last dimension that is shorter is taken together with those before it."""


def lanes(dtype: DType) -> int:
    """How many elements are computed at once."""
    return max(vector_bytes() // max(dtype.itemsize, 4), 1)


def pointwise(program: Program, array: Array) -> Strided:
    """The array, computed."""
    order = channels_last(array.ndim) if array.channels_last else tuple(range(array.ndim))

    def write(k: Kernel, out: Strided) -> None:
        shape = out.memory.shape
        lead, inner = split(shape)
        with contextlib.ExitStack() as loops:
            work = k.size(dims.product(shape))
            at = [loops.enter_context(k.shared(k.size(d), work)) for d in lead]

            def body(j: Expr | int) -> None:
                lying = dict(zip(order, [*at, *unflattened(k, j, inner)], strict=True))
                index = [lying[d] for d in range(array.ndim)]
                k.write(out, index, k.element(array, index))

            vectors(k, inner, lanes(array.dtype), body)

    return program.kernel(array.shape, array.dtype, write, order)


def split(shape: Shape) -> tuple[Shape, Shape]:
    """The dimensions that are looped over, and those that are taken together as the innermost."""
    at = len(shape)
    count = 1
    while at > 0 and count < _SHORT:
        d = shape[at - 1]
        if not isinstance(d, int):
            return (shape[:at], shape[at:]) if at < len(shape) else (shape[: at - 1], shape[at - 1 :])
        count *= d
        at -= 1
    return shape[:at], shape[at:]


def unflattened(k: Kernel, j: Expr | int, shape: Shape) -> list[Expr | int]:
    """The index of the element ``j`` of dimensions that are taken together."""
    found: list[Expr | int] = [0] * len(shape)
    left = [d for d, size in enumerate(shape) if size != 1]
    for d in reversed(left[1:]):
        found[d], j = j % k.size(shape[d]), j // k.size(shape[d])
    if left:
        found[left[0]] = j
    return found


def vectors(k: Kernel, inner: Shape, width: int, body: Callable[[Expr | int], None]) -> None:
    """The innermost loop: whole vectors, then the elements that are left."""
    count = dims.product(inner)
    if isinstance(count, int):
        whole, rest = divmod(count, width)
        if whole:
            with k.loop(whole) as o, k.loop(width, VECTOR) as i:
                body(o * width + i)
        if rest:
            with k.loop(rest, SERIAL) as i:
                body(i + whole * width)
        return
    size = k.size(count)
    with k.loop(size // width) as o, k.loop(width, VECTOR) as i:
        body(o * width + i)
    with k.loop(size % width) as i:
        body(size // width * width + i)
