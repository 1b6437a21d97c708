"""Whether indices are in range, where the runtime goes on with any: a result of the model says so."""

from __future__ import annotations

import functools

from fairlead.ir import Dim, DType
from fairlead_onnx._writer import Ref, Writer

__all__ = ["in_range", "within"]


def within(w: Writer, places: Ref, size: Dim, *, is_static: bool) -> Ref:
    """An index along a dimension of this size. How many of its places are out of range is kept with the writer.

    One that is not static may be empty.
    """
    if w.target.unchecked:
        end = w.scalar(w.dim(size))
        low = w.same("Less", places, w.same("Neg", end), result=DType.bool)
        high = w.op("Not", w.same("Less", places, end, result=DType.bool))
        wrong = w.op("Reshape", w.cast(w.op("Or", low, high), DType.f32), w.ints(-1))
        if not is_static:
            wrong = w.op("Concat", wrong, w.const((0.0,), DType.f32), axis=0)
        w.outside.append(w.op("ReduceSum", wrong, w.ints(0), keepdims=0))
    return places


def in_range(w: Writer) -> Ref | None:
    """Whether every place of every index was in range; None where none was written."""
    if not w.outside:
        return None
    count = functools.reduce(lambda a, b: w.same("Add", a, b), w.outside)
    return w.same("Equal", count, w.number(0.0, DType.f32), result=DType.bool)
