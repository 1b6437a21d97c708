"""Rules that join tensors: two or three are read where they are wanted, more are copied one after the other."""

from __future__ import annotations

import contextlib
import itertools
from typing import Any

from fairlead.ir import dims
from fairlead.ir.dims import Dim
from fairlead_tvm import _tvm as t
from fairlead_tvm._arrays import Array, Computed, Index, Strided, channels_last
from fairlead_tvm._call import Call
from fairlead_tvm._kernel import Kernel
from fairlead_tvm._numbers import cast
from fairlead_tvm._pointwise import lanes, unflattened, vectors
from fairlead_tvm._program import Program
from fairlead_tvm._rules import rule
from fairlead_tvm._tvm import Expr
from fairlead_tvm._views import axis, reshaped

__all__ = ["concatenated"]

_MANY = 3
"""How many parts an element may be chosen from, all of which are read."""


def concatenated(program: Program, parts: list[Array], dim: int) -> Array:
    """Arrays one after the other along a dimension."""
    if len(parts) == 1:
        return parts[0]
    if dim == 1 and all(p.channels_last for p in parts):
        return _joined_channels(program, parts)
    if len(parts) > _MANY:
        return _joined(program, parts, dim)
    parts = [program.stored(p) if p.cost else p for p in parts]
    ends = list(itertools.accumulate((p.shape[dim] for p in parts), dims.add))
    shape = (*parts[0].shape[:dim], ends[-1], *parts[0].shape[dim + 1 :])

    def element(k: Kernel, index: Index) -> Expr:
        """Each part is read within its bounds, whichever is taken."""
        value, at = None, index[dim]
        for part, end in reversed(list(zip(parts, ends, strict=True))):
            size, stop = k.size(part.shape[dim]), k.size(end)
            inside = t.minimum(t.maximum(t.index(at - (stop - size)), t.index(0)), t.index(size - 1))
            each = k.element(part, [*index[:dim], inside, *index[dim + 1 :]])
            value = each if value is None else t.select(at < t.index(stop), each, value)
        return value

    return Computed(shape, parts[0].dtype, element, cost=3 * len(parts))


def _joined(program: Program, parts: list[Array], dim: int) -> Strided:
    """The same, copied part by part."""
    parts = [program.stored(p) if p.products else p for p in parts]
    ends = list(itertools.accumulate((p.shape[dim] for p in parts), dims.add))
    shape = (*parts[0].shape[:dim], ends[-1], *parts[0].shape[dim + 1 :])

    def copy(k: Kernel, out: Strided, part: Array, at: list[Any], begin: Dim) -> None:
        inner, shift = part.shape[dim:], k.size(begin)

        def body(j: Expr | int) -> None:
            first, *rest = unflattened(k, j, inner)
            k.write(out, [*at, first + shift, *rest], k.element(part, [*at, first, *rest]))

        vectors(k, inner, lanes(part.dtype), body)

    def write(k: Kernel, out: Strided) -> None:
        work = k.size(dims.product(shape))
        with contextlib.ExitStack() as loops:
            at = [loops.enter_context(k.shared(k.size(d), work)) for d in shape[:dim]]
            for part, begin in zip(parts, [0, *ends], strict=False):
                copy(k, out, part, at, begin)

    return program.kernel(shape, parts[0].dtype, write)


def _joined_channels(program: Program, parts: list[Array]) -> Strided:
    """Channels that lie next to each other, copied part by part."""
    parts = [program.stored(p) if p.products else p for p in parts]
    ends = list(itertools.accumulate((p.shape[1] for p in parts), dims.add))
    batch, _, *places = parts[0].shape
    shape = (batch, ends[-1], *places)

    def write(k: Kernel, out: Strided) -> None:
        work = k.size(dims.product(shape))
        with contextlib.ExitStack() as loops:
            n, *at = [loops.enter_context(k.shared(k.size(d), work)) for d in (batch, *places)]
            for part, begin in zip(parts, [0, *ends], strict=False):
                _copy(k, out, part, [n, at], begin)

    return program.kernel(shape, parts[0].dtype, write, channels_last(len(shape)))


def _copy(k: Kernel, out: Strided, part: Array, place: list[Any], begin: Dim) -> None:
    n, at = place
    shift = k.size(begin)
    vectors(
        k,
        (part.shape[1],),
        lanes(part.dtype),
        lambda j: k.write(out, [n, j + shift, *at], k.element(part, [n, j, *at])),
    )


@rule("cat")
def cat(c: Call, tensors: tuple[Array, ...], dim: int = 0) -> Array:
    """Torch lets empty 1-d tensors join anything."""
    parts = [x for x in tensors if x.shape != (0,)] or list(tensors[:1])
    at = axis(dim, parts[0].ndim)
    parts = [x for x in parts if x.shape[at] != 0] or parts[:1]
    return concatenated(c.program, [cast(x, c.dtype) for x in parts], at)


@rule("stack")
def stack(c: Call, tensors: tuple[Array, ...], dim: int = 0) -> Array:
    at = dim % (tensors[0].ndim + 1)
    grown = [reshaped(c.program, x, (*x.shape[:at], 1, *x.shape[at:])) for x in tensors]
    return concatenated(c.program, [cast(x, c.dtype) for x in grown], at)
