"""Rules that write at computed places, one after the other. An index that is out of range is an error at the call."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from fairlead.ir import DType, Node, Value, dims
from fairlead_tvm._arrays import Array, Strided
from fairlead_tvm._call import Call, broadcast, spread_index
from fairlead_tvm._indexing import checked, not_places
from fairlead_tvm._kernel import Kernel
from fairlead_tvm._numbers import cast
from fairlead_tvm._pointwise import lanes
from fairlead_tvm._rules import rule
from fairlead_tvm._tvm import VECTOR

__all__: list[str] = []


def _declined(node: Node) -> str | None:
    result = next(r for r in node.results if r is not None)
    if result.tensor.dtype in (DType.f16, DType.bf16, DType.bool):
        return "writing halves or bools at computed places"
    values = node.args[2]
    assert isinstance(values, Value)
    return "writing nothing" if 0 in values.tensor.shape else not_places(node)


@rule("index_put", unless=_declined)
def index_put(c: Call, x: Array, indices: tuple[Array | None, ...], values: Array, accumulate: bool = False) -> Array:
    """Elements at places that are the same are written, or added, in their order.

    Threads share the dimension that comes last, where it is not indexed: none writes where another does.
    """
    values = cast(values, c.dtype)
    values = c.stored(values) if values.products else values
    put = _Put(c.stored(x), indices, values, accumulate=accumulate)
    for d, row in put.rows.items():
        put.rows[d] = checked(c, row, x.shape[d])
    return c.program.kernel(x.shape, c.dtype, put.write)


class _Put:
    """The loops of one `index_put`."""

    def __init__(self, source: Strided, indices: Sequence[Array | None], values: Array, *, accumulate: bool) -> None:
        self.rows = {d: i for d, i in enumerate(indices) if i is not None}
        self._source, self._values, self._accumulate = source, values, accumulate
        self._common = broadcast(*(i.shape for i in self.rows.values()))
        where = list(self.rows)
        self._front = where[0] if where == list(range(where[0], where[-1] + 1)) else 0
        self._rest = [d for d in range(source.ndim) if d not in self.rows]
        kept = [source.shape[d] for d in self._rest]
        self._shape = (*kept[: self._front], *self._common, *kept[self._front :])

    def write(self, k: Kernel, out: Strided) -> None:
        """Copy the tensor, then write: all of it for a few vectors of the last dimension at a time."""
        last = self._source.ndim - 1
        along = last if last in self._rest else None
        count, width = (k.size(self._source.shape[last]), 4 * lanes(out.dtype)) if along is not None else (1, 1)
        work = k.size(dims.add(dims.product(self._source.shape), dims.product(self._shape)))
        with k.shared(count // width, work) as block:
            self._columns(k, out, along, block * width, width)
        rest, done = count % width, count // width * width
        if isinstance(rest, int):
            if rest:
                self._columns(k, out, along, done, rest)
            return
        with k.loop(rest) as i:
            self._columns(k, out, along, done + i, 1)

    def _columns(self, k: Kernel, out: Strided, along: int | None, first: Any, width: int) -> None:
        """Some places of the dimension ``along``, which may be none."""
        sizes = self._source.shape if along is None else self._source.shape[:-1]
        with contextlib.ExitStack() as loops:
            index = [loops.enter_context(k.loop(k.size(d))) for d in sizes]
            if along is not None:
                index.append(loops.enter_context(k.loop(width, VECTOR)) + first)
            k.write(out, index, k.element(self._source, index))
        with contextlib.ExitStack() as loops:
            outer = {d: loops.enter_context(k.loop(k.size(self._source.shape[d]))) for d in self._rest if d != along}
            place = [loops.enter_context(k.loop(k.size(d))) for d in self._common]
            found = outer | {d: self._row(k, row, place) for d, row in self.rows.items()}
            if along is not None:
                found[along] = loops.enter_context(k.loop(width, VECTOR)) + first
            self._put(k, out, found, place)

    def _row(self, k: Kernel, row: Array, place: list[Any]) -> Any:
        return k.settled(k.element(row, spread_index(row, self._common, place)))

    def _put(self, k: Kernel, out: Strided, found: dict[int, Any], place: list[Any]) -> None:
        index = [found[d] for d in range(self._source.ndim)]
        kept = [found[d] for d in self._rest]
        at = [*kept[: self._front], *place, *kept[self._front :]]
        value = k.element(self._values, spread_index(self._values, self._shape, at))
        k.write(out, index, out.element(k, index) + value if self._accumulate else value)
