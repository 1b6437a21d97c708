"""Tensors from nothing but numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fairlead.ir import DType
from fairlead.numpy._dtypes import Array, cast, number, operand
from fairlead.numpy._table import Call, op


@op("full")
def _full(call: Call, size: Sequence[int], value: Any, *rest: Any) -> Array:
    return np.full(tuple(size), cast(number(value), call.dtype))


@op("empty.memory_format", "_efficientzerotensor")
def _zeros(call: Call, *rest: Any) -> Array:
    """What is promised to be uninitialised is zero."""
    return np.zeros(call.shape())


@op("arange.start_step")
def _arange(call: Call, start: Any, end: Any, step: Any = 1, *rest: Any) -> Array:
    """In 64-bit integers the bounds are cut off before the elements are counted, in shorter ones thereafter."""
    if step == 0:
        raise ValueError("the step is zero")
    if call.dtype is DType.i64:
        start, end, step = int(start), int(end), int(step)
    exact = all(isinstance(x, int) for x in (start, end, step))
    count = -((start - end) // step) if exact else math.ceil((end - start) / step)
    if call.dtype.is_integer:
        start, step = int(start), int(step)
    return operand(start, call.dtype) + np.arange(max(count, 0)) * operand(step, call.dtype)


@op("tril_indices")
def _tril_indices(call: Call, rows: int, columns: int, offset: int = 0, *rest: Any) -> Array:
    return np.stack(np.tril_indices(rows, offset, columns))


@op("triu_indices")
def _triu_indices(call: Call, rows: int, columns: int, offset: int = 0, *rest: Any) -> Array:
    return np.stack(np.triu_indices(rows, offset, columns))
