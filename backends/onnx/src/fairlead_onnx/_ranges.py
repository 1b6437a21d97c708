"""Whether indices are in range, where the runtime goes on with others: a result of the model says so."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Sequence

from fairlead.ir import Dim, DType
from fairlead_onnx._writer import Ref, Writer

__all__ = ["guarded", "in_range", "within"]


def within(w: Writer, places: Ref, size: Dim, *, is_static: bool, negative: bool = False, guard: bool = False) -> Ref:
    """An index along a dimension of this size, which is kept with the writer, to be asked about.

    One that is not static may be empty. ``negative``: torch counts those below 0 from the end here, and does not refuse
    them. ``guard``: it is for an op that needs `guarded` ones.
    """
    if w.target.unchecked or (w.target.wraps and not negative):
        w.indices[places.name, size, negative] = places, is_static
    return guarded(w, places, size, negative=negative) if guard else places


def guarded(w: Writer, places: Ref, size: Dim, *, negative: bool = False) -> Ref:
    """The index with 0 in place of what is out of range, for ops that write, or end the process, where it is not."""
    if not w.target.unchecked:
        return places
    return w.select(_wrong(w, places, size, negative=negative), w.number(0, DType.i64), places)


def in_range(w: Writer) -> Ref | None:
    """Whether every place of every index was in range; None where none was written."""
    if not w.indices:
        return None
    if not w.target.unchecked:
        least = w.op("ReduceMin", _joined(w, list(w.indices.values())), keepdims=0)
        return w.op("Not", w.same("Less", least, w.number(0, DType.i64), result=DType.bool))
    alike: dict[tuple[Dim, bool], list[tuple[Ref, bool]]] = defaultdict(list)
    for (_, size, negative), index in w.indices.items():
        alike[size, negative].append(index)
    counts = []
    for (size, negative), indices in alike.items():
        wrong = _wrong(w, _joined(w, indices), size, negative=negative)
        counts.append(w.op("ReduceSum", w.cast(wrong, DType.f32), w.ints(0), keepdims=0))
    count = functools.reduce(lambda a, b: w.same("Add", a, b), counts)
    return w.same("Equal", count, w.number(0.0, DType.f32), result=DType.bool)


def _wrong(w: Writer, places: Ref, size: Dim, *, negative: bool) -> Ref:
    """Which places are out of range."""
    end = w.scalar(w.dim(size))
    first = w.same("Neg", end) if negative else w.number(0, DType.i64)
    low = w.same("Less", places, first, result=DType.bool)
    return w.op("Or", low, w.op("Not", w.same("Less", places, end, result=DType.bool)))


def _joined(w: Writer, indices: Sequence[tuple[Ref, bool]]) -> Ref:
    """All places, and a 0, which is in range, where there may be none."""
    parts = [w.op("Reshape", places, w.ints(-1)) for places, _ in indices]
    if not any(is_static for _, is_static in indices):
        parts.append(w.const((0,), DType.i64))
    while len(parts) > 1:
        most = w.target.most_joined or len(parts)
        parts = [w.op("Concat", *parts[i : i + most], axis=0) for i in range(0, len(parts), most)]
    return parts[0]
