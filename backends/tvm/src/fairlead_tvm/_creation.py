"""Rules of tensors that are made of numbers."""

from __future__ import annotations

from typing import Any

from fairlead.ir import DType
from fairlead_tvm import _tvm as t
from fairlead_tvm._arrays import Array, Computed, Index
from fairlead_tvm._call import Call
from fairlead_tvm._kernel import Kernel
from fairlead_tvm._numbers import cast, constant
from fairlead_tvm._rules import rule
from fairlead_tvm._tvm import Expr
from fairlead_tvm._views import spread

__all__ = ["places"]


def places(shape: Any, dim: int, dtype: DType = DType.i64) -> Array:
    """The index of each element along one dimension."""
    return Computed(shape, dtype, lambda k, index: t.cast(t.index(index[dim]), dtype), cost=0)


@rule("full", "full_like")
def full(c: Call, size: Any, value: Any, *rest: Any) -> Array:
    return spread(cast(value, c.dtype), c.shape())


@rule("empty.memory_format")
def empty(c: Call, *rest: Any) -> Array:
    """What is promised to be anything is zero."""
    return spread(constant(0, c.dtype), c.shape())


@rule("arange.start_step")
def arange(c: Call, start: Any, end: Any, step: Any = 1, *rest: Any) -> Array:
    """Counted in f64, for halves in f32, and rounded at the end. Source: accscalar_t of arange in ATen."""
    wide = DType.i64 if c.dtype.is_integer else DType.f32 if c.dtype in (DType.f16, DType.bf16) else DType.f64
    first, by = constant(_cut(start, wide), wide), constant(_cut(step, wide), wide)

    def element(k: Kernel, index: Index) -> Expr:
        return k.element(first, ()) + t.cast(t.index(index[0]), wide) * k.element(by, ())

    return cast(Computed(c.shape(), wide, element, cost=1), c.dtype)


def _cut(value: Any, dtype: DType) -> Any:
    return int(value) if dtype.is_integer and isinstance(value, float) else value
