"""Running sums, products and extremes along a dimension."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fairlead.ir import DType
from fairlead.numpy._dtypes import Array, floating, operand, wide
from fairlead.numpy._table import Call, op


@op("cumsum")
def _cumsum(call: Call, x: Array, dim: int, dtype: DType | None = None) -> Array:
    x = operand(x, call.dtype)
    return np.cumsum(x, dim, dtype=x.dtype) if x.ndim else x


@op("cumprod")
def _cumprod(call: Call, x: Array, dim: int, dtype: DType | None = None) -> Array:
    x = operand(x, call.dtype)
    return np.cumprod(x, dim, dtype=x.dtype) if x.ndim else x


@op("logcumsumexp")
def _logcumsumexp(call: Call, x: Array, dim: int) -> Array:
    x = floating(x)
    if x.ndim == 0 or x.size == 0:
        return x
    if x.dtype.kind != "c":
        return np.logaddexp.accumulate(x, dim)
    rows = np.moveaxis(x.copy(), dim, 0)
    total: Array = np.full(rows.shape[1:], -np.inf, rows.dtype)
    for i, row in enumerate(rows):
        rows[i] = total = _complex_logaddexp(total, row)
    return np.moveaxis(rows, 0, dim)


def _complex_logaddexp(x: Array, y: Array) -> Array:
    """log(exp(x) + exp(y)), near the operand with the larger real part: neither overflow nor a jump of the phase.

    Two operands at the same infinity have no distance, and are zero or infinite themselves.
    """
    far: Array = np.where(x.real < y.real, x, y)
    near: Array = np.where(x.real < y.real, y, x)
    endless = np.isinf(x.real) & (x.real == y.real)
    return np.where(endless, np.log(np.exp(x) + np.exp(y)), near + np.log1p(np.exp(far - near)))


def _running(is_better: Callable[[Array, Array], Array]) -> Callable[[Call, Array, int], tuple[Array, Array]]:
    """The extreme so far and where it is: the last of equals, and a NaN for good."""

    def rule(call: Call, x: Array, dim: int) -> tuple[Array, Array]:
        if x.ndim == 0 or x.size == 0:
            return x, np.zeros(x.shape, np.int64)
        rows = np.moveaxis(wide(x), dim, 0)
        at = np.zeros(rows.shape, np.int64)
        best = rows[0]
        for i in range(1, len(rows)):
            new = np.isnan(rows[i]) | (is_better(rows[i], best) & ~np.isnan(best))
            best = np.where(new, rows[i], best)
            at[i] = np.where(new, i, at[i - 1])
        at = np.moveaxis(at, 0, dim)
        return np.take_along_axis(x, at, dim), at

    return rule


op("cummax")(_running(np.greater_equal))
op("cummin")(_running(np.less_equal))
