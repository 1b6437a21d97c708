"""Tensors from nothing but numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fairlead.numpy._dtypes import Array, cast, number, operand
from fairlead.numpy._table import Call, op


@op("full")
def _full(call: Call, size: Sequence[int], value: Any, *rest: Any) -> Array:
    return np.full(tuple(size), cast(number(value), call.dtype))


@op("full_like", "new_full", "scalar_tensor")
def _full_like(call: Call, *args: Any) -> Array:
    value = args[{"aten.full_like.default": 1, "aten.new_full.default": 2}.get(call.node.op, 0)]
    return np.full(call.shape(), cast(number(value), call.dtype))


@op(
    "zeros", "zeros_like", "new_zeros", "empty.memory_format", "empty_like", "new_empty", "empty_strided",
    "new_empty_strided", "empty_permuted", "_efficientzerotensor",
)  # fmt: skip
def _zeros(call: Call, *rest: Any) -> Array:
    """What is promised to be uninitialised is zero."""
    return np.zeros(call.shape())


@op("ones", "ones_like", "new_ones")
def _ones(call: Call, *rest: Any) -> Array:
    return np.ones(call.shape())


@op("arange.start_step")
def _arange(call: Call, start: Any, end: Any, step: Any = 1, *rest: Any) -> Array:
    if step == 0:
        raise ValueError("the step is zero")
    exact = all(isinstance(x, int) for x in (start, end, step))
    count = -((start - end) // step) if exact else math.ceil((end - start) / step)
    if not exact and call.dtype.is_integer:
        start, step = int(start), int(step)
    return operand(start, call.dtype) + np.arange(max(count, 0)) * operand(step, call.dtype)


@op("prims.iota.default")
def _iota(call: Call, length: int, start: int, step: int, *rest: Any) -> Array:
    return start + np.arange(length) * step


@op("tril_indices")
def _tril_indices(call: Call, rows: int, columns: int, offset: int = 0, *rest: Any) -> Array:
    return np.stack(np.tril_indices(rows, offset, columns))


@op("triu_indices")
def _triu_indices(call: Call, rows: int, columns: int, offset: int = 0, *rest: Any) -> Array:
    return np.stack(np.triu_indices(rows, offset, columns))
