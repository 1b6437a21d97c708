"""Rules of scaled dot-product attention, on whole matrices of scores."""

from __future__ import annotations

import math
from typing import Any

from fairlead.ir import DType, Node
from fairlead_tvm import _tvm as t
from fairlead_tvm._arrays import Array, Computed, Index, Shape, Strided
from fairlead_tvm._call import Call
from fairlead_tvm._functions import exp_of_less, log
from fairlead_tvm._gemm import Product
from fairlead_tvm._kernel import Kernel
from fairlead_tvm._numbers import constant
from fairlead_tvm._reduce import reduced
from fairlead_tvm._rows import Row, each_row
from fairlead_tvm._rules import Unless, rule
from fairlead_tvm._tvm import Expr
from fairlead_tvm._views import permuted, reshaped, spread

__all__: list[str] = []


def _unless(dropout: int, query: int) -> Unless:
    def unless(node: Node) -> str | None:
        if node.args[dropout] != 0:
            return "attention that draws its dropout itself"
        given = [node.args[i].tensor for i in (query, query + 1)]  # type: ignore[union-attr]
        if given[0].dtype is DType.f16:
            return "products of float16 are torch's: this processor's instructions for them are not TVM's"
        heads = [each.shape[-3:-2] for each in given]
        if given[0].shape[:-3] != given[1].shape[:-3]:
            return "attention over other batches of keys than of queries"
        if heads[0] != heads[1] and not all(isinstance(n, int) for pair in heads for n in pair):
            return "attention with shared heads of a symbolic number"
        return None

    return unless


def _matmul(x: Strided, y: Strided) -> Array:
    return Product(x, y, (*x.shape[:-1], y.shape[-1]), x.dtype, panels=False).array


def _turned(c: Call, x: Array) -> Strided:
    order = (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)
    return c.stored(permuted(c.program, c.stored(x), order))


def _scores(c: Call, query: Array, key: Array, mask: Array | None, causal: bool, scale: float) -> Strided:
    scores = _matmul(c.stored(query), _turned(c, key))
    scores = c.map(lambda s, n: s * n, scores, constant(scale, query.dtype))
    if mask is not None:
        scores = c.map(lambda s, m: s + m, scores, mask)
    if causal:
        scores = c.map(lambda s, keep: t.select(keep, s, t.const(-math.inf, query.dtype)), scores, _lower(scores.shape))
    return c.stored(scores)


def _lower(shape: Shape) -> Array:
    """Whether a column is none that comes after the row."""

    def element(k: Kernel, index: Index) -> Expr:
        row, column = (t.const(i, DType.i64) if isinstance(i, int) else i for i in index[-2:])
        return column <= row

    return Computed(shape, DType.bool, element, cost=0)


def _grouped(c: Call, heads: Any, *tensors: Array) -> list[Array]:
    """Tensors with heads as (key heads, queries of each), those of keys spread over their queries."""
    found = []
    for x in tensors:
        *lead, own, rows, size = x.shape
        inner = own // heads
        split = reshaped(c.program, c.stored(x), (*lead, heads, inner, rows, size))
        found.append(split)
    most = max(x.shape[-3] for x in found)
    return [spread(x, (*x.shape[:-3], most, *x.shape[-2:])) for x in found]


@rule("nn.scaled_dot_product_attention", unless=_unless(4, 0))
def attention(
    c: Call, query: Array, key: Array, value: Array, mask: Array | None, dropout: float, causal: bool, scale: float
) -> tuple[Array, Array | None]:
    """Rows that the mask shuts out altogether are zero, and so is their logsumexp."""
    shape = (*query.shape[:-1], value.shape[-1])
    if query.shape[:-2] != key.shape[:-2]:
        heads = key.shape[-3]
        query, key, value = _grouped(c, heads, query, key, value)
        if mask is not None and mask.ndim >= 3:
            own = mask.shape[-3]
            groups = (1, 1) if own == 1 else (heads, query.shape[-3])
            mask = reshaped(c.program, mask, (*mask.shape[:-3], *groups, *mask.shape[-2:]))
    out, logsumexp = _attended(c, query, key, value, mask, causal, scale)
    if out.shape == shape:
        return out, logsumexp
    return reshaped(c.program, out, shape), None if logsumexp is None else reshaped(c.program, logsumexp, shape[:-1])


def _attended(
    c: Call, query: Array, key: Array, value: Array, mask: Array | None, causal: bool, scale: float
) -> tuple[Array, Array | None]:
    """Attention where each query has keys of its own."""
    scores = _scores(c, query, key, mask, causal, scale)
    dtype = scores.dtype

    def weigh(k: Kernel, out: Strided, row: Row) -> None:
        values, _, total = _row(k, row, scores, dtype)
        share = k.named(t.const(1.0, dtype) / total, dtype)
        row.each(lambda j: k.write(out, [*row.at, j], values[j] * share))

    weights = c.program.kernel(
        scores.shape, dtype, lambda k, out: each_row(k, out, dtype, lambda row: weigh(k, out, row))
    )
    out = _matmul(weights, c.stored(value))
    return out, _logsumexp(c, scores) if c.wants(1) else None


def _row(k: Kernel, row: Row, scores: Strided, dtype: DType) -> tuple[Any, Expr, Expr]:
    """The exponentials of a row, less the largest score, and their sum."""
    values = row.held(lambda j: k.element(scores, [*row.at, j]))
    most = row.largest(lambda j: values[j])
    peak = k.named(t.select(t.eq(most, t.const(-math.inf, dtype)), t.const(0.0, dtype), most), dtype)
    row.each(lambda j: k.store(values, exp_of_less(k, values[j] - peak, dtype), j))
    total = row.sum(lambda j: values[j])
    return values, peak, k.named(t.select(t.eq(total, t.const(0.0, dtype)), t.const(1.0, dtype), total), dtype)


def _logsumexp(c: Call, scores: Strided) -> Array:
    dtype, shape = scores.dtype, scores.shape[:-1]

    def write(k: Kernel, out: Strided) -> None:
        def body(row: Row) -> None:
            _, peak, total = _row(k, row, scores, dtype)
            k.write(out, row.at, log(k, total, dtype) + peak)

        each_row(k, scores, dtype, body)

    return c.program.kernel(shape, dtype, write)


def _unless_shared(node: Node) -> str | None:
    heads = [node.args[i].tensor.shape[:-2] for i in (1, 2)]  # type: ignore[union-attr]
    return "the gradient of attention with shared heads" if heads[0] != heads[1] else _unless(7, 1)(node)


@rule("nn.scaled_dot_product_attention_backward", unless=_unless_shared)
def attention_backward(
    c: Call,
    grad: Array,
    query: Array,
    key: Array,
    value: Array,
    out: Array,
    logsumexp: Array,
    mask: Array | None,
    dropout: float,
    causal: bool,
    scale: float,
) -> tuple[Array, Array, Array]:
    """Source: Dao et al. 2022, arXiv:2205.14135."""
    grad, query, key, value = (c.stored(x) for x in (grad, query, key, value))
    dtype = query.dtype
    scores = _scores(c, query, key, mask, causal, scale)
    total = reshaped(c.program, c.stored(logsumexp), (*scores.shape[:-1], 1))
    weights = c.stored(c.kernel_map(lambda k, s, n: exp_of_less(k, s - n, dtype), scores, total, cost=20))
    row = reduced(c.program, c.map(lambda g, o: g * o, grad, c.stored(out)), (grad.ndim - 1,), "sum")
    of_weights = _matmul(grad, _turned(c, value))
    number = constant(scale, dtype)
    of_scores = c.stored(c.map(lambda p, w, r, n: w * (p - r) * n, of_weights, weights, row, number))
    return (
        _matmul(of_scores, key),
        _matmul(_turned(c, of_scores), query),
        _matmul(_turned(c, weights), grad),
    )
