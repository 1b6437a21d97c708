"""Rules that say where the extreme element of a dimension is: the first of equals, and the first NaN before all."""

from __future__ import annotations

from fairlead.ir import DType, Node, Value, dims
from fairlead_tvm import _tvm as t
from fairlead_tvm._arrays import Array, Computed
from fairlead_tvm._call import Call
from fairlead_tvm._kernel import Kernel
from fairlead_tvm._numbers import cast, wide
from fairlead_tvm._reduce import highest, reduced
from fairlead_tvm._rules import Rule, rule
from fairlead_tvm._tvm import Expr
from fairlead_tvm._views import axis, reshaped

__all__: list[str] = []


def _of_nothing(node: Node) -> str | None:
    value = node.args[0]
    assert isinstance(value, Value)
    return "an extreme of nothing" if 0 in value.tensor.shape else None


def _found(c: Call, x: Array, at: int, kind: str) -> tuple[Array, Array]:
    """The extreme element of a dimension, and the first place that has it."""
    x = c.stored(wide(cast(x, DType.u8) if x.dtype is DType.bool else x))
    best = reduced(c.program, x, (at,), kind)
    far = t.const(highest(DType.i64), DType.i64)

    def place(k: Kernel, v: Expr, b: Expr, i: Expr) -> Expr:
        same = t.eq(v, b)
        if x.dtype.is_floating:
            same = t.any_of(same, t.all_of(t.ne(v, v), t.ne(b, b)))
        return t.select(same, i, far)

    count = x.shape[at]
    along = tuple(count if d == at else 1 for d in range(x.ndim))
    counted = Computed(along, DType.i64, lambda k, index: t.index(index[at]), cost=0)
    return best, reduced(c.program, c.kernel_map(place, x, best, counted, dtype=DType.i64, cost=3), (at,), "min")


def _with_place(kind: str) -> Rule:
    def write(c: Call, x: Array, dim: int, keepdim: bool = False) -> tuple[Array | None, ...]:
        row = x if x.ndim else reshaped(c.program, x, (1,))
        results = enumerate(_found(c, row, axis(dim, x.ndim), kind))
        return tuple(reshaped(c.program, found, c.shape(i)) if c.wants(i) else None for i, found in results)

    return write


def _place(kind: str) -> Rule:
    def write(c: Call, x: Array, dim: int | None = None, keepdim: bool = False) -> Array:
        whole = dim is None or x.ndim == 0
        row = reshaped(c.program, x, (dims.product(x.shape),)) if whole else x
        return reshaped(c.program, _found(c, row, 0 if dim is None else axis(dim, row.ndim), kind)[1], c.shape())

    return write


rule("max.dim", unless=_of_nothing)(_with_place("max"))
rule("min.dim", unless=_of_nothing)(_with_place("min"))
rule("argmax", unless=_of_nothing)(_place("max"))
rule("argmin", unless=_of_nothing)(_place("min"))
