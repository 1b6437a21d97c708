"""Products of matrices and vectors, summed in float64; integers wrap around."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fairlead.ir import DType
from fairlead.numpy._dtypes import Array, operand, wide
from fairlead.numpy._table import Call, op


def matmul(x: Array, y: Array, dtype: DType) -> Array:
    """The product in the widest type of the result's kind."""
    return operand(x, dtype) @ operand(y, dtype)


@op("mm", "bmm", "_int_mm")
def _mm(call: Call, x: Array, y: Array) -> Array:
    return matmul(x, y, call.dtype)


@op("linear")
def _linear(call: Call, x: Array, weight: Array, bias: Array | None = None) -> Array:
    out = matmul(x, weight.T, call.dtype)
    return out if bias is None else out + operand(bias, call.dtype)


def _plus(call: Call, x: Array, product: Array, beta: Any, alpha: Any) -> Array:
    """``beta * x + alpha * product``; NaN in ``x`` does not count where beta is zero."""
    product = product * operand(alpha, call.dtype) if alpha != 1 else product
    if beta == 0:
        return product
    return product + operand(x, call.dtype) * (operand(beta, call.dtype) if beta != 1 else 1)


@op("addmm", "addmv")
def _addmm(call: Call, x: Array, a: Array, b: Array, beta: Any = 1, alpha: Any = 1) -> Array:
    return _plus(call, x, matmul(a, b, call.dtype), beta, alpha)


@op("addbmm")
def _addbmm(call: Call, x: Array, a: Array, b: Array, beta: Any = 1, alpha: Any = 1) -> Array:
    return _plus(call, x, matmul(a, b, call.dtype).sum(0), beta, alpha)


@op("_scaled_mm")
def _scaled_mm(
    call: Call,
    x: Array,
    y: Array,
    scale_x: Array,
    scale_y: Array,
    bias: Array | None = None,
    scale_result: Array | None = None,
    out_dtype: DType | None = None,
    use_fast_accum: bool = False,
) -> Array:
    """A product of float8 matrices, whose scales are numbers or one for each row of x and column of y."""
    out = (wide(x) * wide(scale_x)) @ (wide(y) * wide(scale_y))
    out = out if bias is None else out + wide(bias)
    return out if scale_result is None or not call.dtype.value.startswith("f8") else out * wide(scale_result)


@op("_trilinear")
def _trilinear(
    call: Call,
    a: Array,
    b: Array,
    c: Array,
    expand_a: Sequence[int],
    expand_b: Sequence[int],
    expand_c: Sequence[int],
    sums: Sequence[int],
    unroll: int = 1,
) -> Array:
    """The sum over some dimensions of the product of three tensors, each with dimensions put in."""
    parts = ((a, expand_a), (b, expand_b), (c, expand_c))
    x, y, z = (np.expand_dims(operand(part, call.dtype), tuple(at)) for part, at in parts)
    return (x * y * z).sum(tuple(sums))


@op("block_diag")
def _block_diag(call: Call, blocks: Sequence[Array]) -> Array:
    parts = [np.atleast_2d(operand(block, call.dtype)) for block in blocks]
    out = np.zeros(np.sum([p.shape for p in parts], 0), parts[0].dtype)
    row = column = 0
    for p in parts:
        out[row : row + p.shape[0], column : column + p.shape[1]] = p
        row, column = row + p.shape[0], column + p.shape[1]
    return out
