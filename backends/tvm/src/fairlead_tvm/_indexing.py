"""Rules that read at computed places. An index that is out of range is an error at the call, as in torch."""

from __future__ import annotations

from typing import Any

from fairlead.ir import Dim, DType, Node, Value
from fairlead_tvm import _tvm as t
from fairlead_tvm._arrays import Array, Computed, Index
from fairlead_tvm._call import Call, broadcast, spread_index
from fairlead_tvm._kernel import Kernel
from fairlead_tvm._numbers import cast
from fairlead_tvm._rules import rule
from fairlead_tvm._tvm import Expr
from fairlead_tvm._views import axis

__all__ = ["checked", "not_places"]


def checked(c: Call, index: Array, size: Dim, *, negative: bool = True) -> Array:
    """Indices counted from the front, where none may be out of range; what is gets the nearest that is not."""
    index = c.stored(cast(index, DType.i64)) if index.cost else cast(index, DType.i64)

    def holds(k: Kernel, i: Expr) -> Expr:
        count = t.index(k.size(size))
        return t.all_of(i >= (t.const(0, DType.i64) - count if negative else t.const(0, DType.i64)), i < count)

    def place(k: Kernel, i: Expr) -> Expr:
        count = t.index(k.size(size))
        front = t.select(i < t.const(0, DType.i64), i + count, i)
        return t.minimum(t.maximum(front, t.const(0, DType.i64)), count - 1)

    c.require(c.kernel_map(holds, index, dtype=DType.bool), f"an index is out of range for {size} elements")
    return c.kernel_map(place, index, cost=0)


def _empty(node: Node) -> str | None:
    """Why what is read from has nothing to read."""
    value = node.args[0]
    assert isinstance(value, Value)
    return "reading from what has no elements" if 0 in value.tensor.shape else None


@rule("embedding", unless=_empty)
def embedding(c: Call, weight: Array, indices: Array, *rest: Any) -> Array:
    rows = checked(c, indices, weight.shape[0], negative=False)
    source = c.stored(weight)

    def element(k: Kernel, index: Index) -> Expr:
        return k.element(source, [k.element(rows, list(index)[:-1]), index[-1]])

    return Computed((*indices.shape, weight.shape[1]), weight.dtype, element, cost=2)


@rule("index_select", unless=_empty)
def index_select(c: Call, x: Array, dim: int, index: Array) -> Array:
    at = axis(dim, x.ndim)
    source = c.stored(x)
    rows = checked(c, index, x.shape[at] if x.ndim else 1, negative=False)

    def element(k: Kernel, places: Index) -> Expr:
        if x.ndim == 0:
            return k.element(source, ())
        row = k.element(rows, [places[at]] if index.ndim else ())
        return k.element(source, [*places[:at], row, *places[at + 1 :]])

    return Computed(c.shape(), x.dtype, element, cost=2)


@rule("gather", unless=_empty)
def gather(c: Call, x: Array, dim: int, index: Array, sparse: Any = False) -> Array:
    if x.ndim == 0 or index.ndim == 0:
        return Computed(c.shape(), x.dtype, lambda k, _: k.element(c.stored(x), [0] * x.ndim), cost=1)
    at, source = axis(dim, x.ndim), c.stored(x)
    rows = checked(c, index, x.shape[at], negative=False)

    def element(k: Kernel, places: Index) -> Expr:
        return k.element(source, [*places[:at], k.element(rows, places), *places[at + 1 :]])

    return Computed(index.shape, x.dtype, element, cost=2)


def not_places(node: Node) -> str | None:
    """Why an index is none that has a place known before the call."""
    given = [v for v in node.args[1] if isinstance(v, Value)]  # type: ignore[union-attr]
    if not given:
        return "indexing with nothing"
    if any(v.tensor.dtype in (DType.bool, DType.u8) for v in given):
        return "indexing with a mask"
    return _empty(node)


@rule("index.Tensor", unless=not_places)
def index(c: Call, x: Array, indices: tuple[Array | None, ...]) -> Array:
    """Indices are spread over a common shape, which stands where the first is, or in front where they are apart."""
    given = {d: i for d, i in enumerate(indices) if i is not None}
    shape = broadcast(*(i.shape for i in given.values()))
    where = list(given)
    together = where == list(range(where[0], where[-1] + 1))
    front = where[0] if together else 0
    rest = [d for d in range(x.ndim) if d not in given]
    source = c.stored(x)
    rows = {d: checked(c, i, x.shape[d]) for d, i in given.items()}

    def element(k: Kernel, places: Index) -> Expr:
        common = list(places)[front : front + len(shape)]
        others = iter([*list(places)[:front], *list(places)[front + len(shape) :]])
        found: list[Any] = [None] * x.ndim
        for d in rest:
            found[d] = next(others)
        for d, row in rows.items():
            found[d] = k.element(row, spread_index(row, shape, common))
        return k.element(source, found)

    return Computed(c.shape(), x.dtype, element, cost=2)
