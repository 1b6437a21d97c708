"""Rules of scaled dot-product attention, forward and backward."""

from __future__ import annotations

import math
from typing import cast

from fairlead.ir import Dim, DType, TensorType, Value
from fairlead.ir.dims import mul
from fairlead_onnx._call import Call, computed_type
from fairlead_onnx._creation import iota
from fairlead_onnx._matmul import matmul
from fairlead_onnx._reductions import everywhere, reduce
from fairlead_onnx._rules import rule
from fairlead_onnx._writer import Declined, Ref, Writer

__all__: list[str] = []


@rule("nn.scaled_dot_product_attention")
def attention(c: Call) -> tuple[Ref | None, ...]:
    """``softmax(scale * q @ k.T + mask) @ v``, with zeros where a row is masked out altogether, as in eager."""
    return _attention(c, mask=3, dropout=4, causal=5, scale=float(c.number(6)))


@rule("aten._scaled_dot_product_efficient_attention.default", "aten._scaled_dot_product_cudnn_attention.default")
def biased_attention(c: Call) -> tuple[Ref | None, ...]:
    """As torch captures attention on CUDA: query, key, value, bias, what is kept, dropout, causal, and more."""
    return _kept_out(c, mask=3, dropout=5, causal=6)


@rule("aten._scaled_dot_product_flash_attention.default")
def flash_attention(c: Call) -> tuple[Ref | None, ...]:
    """Arguments: query, key, value, dropout, causal, and more."""
    return _kept_out(c, mask=None, dropout=3, causal=4)


def _kept_out(c: Call, *, mask: int | None, dropout: int, causal: int) -> tuple[Ref | None, ...]:
    """The first result alone; others are for the backward of torch's own kernel. The scale is the last number."""
    if any(result is not None for result in c.node.results[1:]):
        raise Declined("attention that keeps what the backward of torch's own kernel reads")
    rest = [x for x in c.args[causal + 1 :] if isinstance(x, (int, float)) and not isinstance(x, bool)]
    width = c.type(0).shape[-1]
    if not rest and not isinstance(width, int):
        raise Declined("attention with heads of a dynamic size")
    scale = float(rest[-1]) if rest else float(cast(int, width)) ** -0.5
    out, _ = _attention(c, mask=mask, dropout=dropout, causal=causal, scale=scale)
    return out, *(None for _ in c.node.results[1:])


def _attention(c: Call, *, mask: int | None, dropout: int, causal: int, scale: float) -> tuple[Ref, Ref | None]:
    _check(c, 0, 1, 2, dropout=dropout)
    w, heads = c.writer, _Heads(c, 0, 1)
    scores = _scores(c, heads, query=0, key=1, mask=mask, causal=causal, scale=scale)
    weights = w.same("Softmax", scores, axis=-1)
    out = heads.split(matmul(w, heads.join(weights), c.tensor(2)))
    dead = None if mask is None else _dead_rows(c, mask)
    if dead is not None:
        out = w.select(dead, w.number(0.0, out.dtype), out)
    return out, _logsumexp(w, scores, weights, dead) if c.wants(1) else None


def _logsumexp(w: Writer, scores: Ref, weights: Ref, dead: Ref | None) -> Ref:
    """From the largest element of a row: its weight is ``exp(score - logsumexp)``."""
    lse = w.same("Sub", reduce(w, "ReduceMax", scores, (3,)), w.same("Log", reduce(w, "ReduceMax", weights, (3,))))
    if dead is not None:
        lse = w.select(dead, w.number(0.0, lse.dtype), lse)
    return w.op("Squeeze", lse, w.ints(3))


@rule("nn.scaled_dot_product_attention_backward")
def attention_backward(c: Call) -> tuple[Ref | None, ...]:
    """Gradients from the saved logsumexp. Source: Dao et al., FlashAttention, section B.4."""
    _check(c, 1, 2, 3, dropout=7)
    w, scale, heads = c.writer, float(c.number(9)), _Heads(c, 1, 2)
    grad, query, out = (heads.join(c.tensor(i)) for i in (0, 1, 4))
    key, value = c.tensor(2), c.tensor(3)
    scores = _scores(c, heads, query=1, key=2, mask=6, causal=8, scale=scale)
    lse = w.op("Unsqueeze", w.cast(c.tensor(5), scores.dtype), w.ints(3))
    weights = heads.join(w.same("Exp", w.same("Sub", scores, lse)))
    delta = reduce(w, "ReduceSum", w.same("Mul", grad, out), (3,))
    inner = w.same("Mul", weights, w.same("Sub", matmul(w, grad, value, tb=True), delta))
    grad_query = heads.split(matmul(w, inner, key, alpha=scale)) if c.wants(0) else None
    grad_key = matmul(w, inner, query, ta=True, alpha=scale) if c.wants(1) else None
    grad_value = matmul(w, weights, grad, ta=True) if c.wants(2) else None
    return grad_query, grad_key, grad_value


class _Heads:
    """Query heads that share a key head, as more rows of one product.

    Reshapes cost nothing, copies of the keys would.
    """

    def __init__(self, c: Call, query: int, key: int) -> None:
        self._writer = c.writer
        self._shape = c.type(query).shape
        self._keys = c.type(key).shape[1]
        self._shared = self._keys != self._shape[1]

    def join(self, x: Ref) -> Ref:
        """(batch, query heads, rows, n) as (batch, key heads, group and rows, n)."""
        if not self._shared:
            return x
        batch, heads, rows, _ = self._shape
        assert isinstance(heads, int)
        assert isinstance(self._keys, int)
        return self._reshape(x, (batch, self._keys, mul(heads // self._keys, rows)))

    def split(self, x: Ref) -> Ref:
        """The reverse of `join`."""
        return self._reshape(x, self._shape[:3]) if self._shared else x

    def _reshape(self, x: Ref, front: tuple[Dim, ...]) -> Ref:
        w = self._writer
        dims = w.op("Concat", w.shape(front), w.op("Shape", x, dtype=DType.i64, start=3, end=4), axis=0)
        return w.op("Reshape", x, dims)


def _check(c: Call, query: int, key: int, value: int, *, dropout: int) -> None:
    if c.args[dropout] != 0.0:
        raise Declined("dropout inside attention")
    types = [c.type(i) for i in (query, key, value)]
    if any(t.rank != 4 for t in types):
        raise Declined("attention of other than 4-D tensors")
    if any(0 in t.shape for t in types):
        raise Declined("attention of empty tensors")
    heads = [t.shape[1] for t in types]
    if heads[1] != heads[2] or (heads[0] != heads[1] and not all(isinstance(h, int) for h in heads)):
        raise Declined("attention with a dynamic number of heads")


def _scores(c: Call, heads: _Heads, *, query: int, key: int, mask: int | None, causal: int, scale: float) -> Ref:
    w = c.writer
    product = matmul(w, heads.join(c.tensor(query)), c.tensor(key), tb=True, alpha=scale)
    scores = heads.split(product)
    if mask is not None and c.args[mask] is not None:
        if c.type(mask).dtype is DType.bool:
            return w.select(c.tensor(mask), scores, w.number(-math.inf, scores.dtype))
        scores = w.same("Add", scores, c.tensor(mask, scores.dtype))
    if c.args[causal]:
        scores = w.same("Add", scores, _causal_mask(w, c.type(query), c.type(key), scores.dtype))
    return scores


def _causal_mask(w: Writer, query: TensorType, key: TensorType, dtype: DType) -> Ref:
    """0 at and below the diagonal, minus infinity above it."""
    rows = w.op("Unsqueeze", iota(w, query.shape[2]), w.ints(1))
    below = w.same("LessOrEqual", iota(w, key.shape[2]), rows, result=DType.bool)
    return w.select(below, w.number(0.0, dtype), w.number(-math.inf, dtype))


def _dead_rows(c: Call, mask: int) -> Ref | None:
    """Rows of the mask that let nothing through; None where there is no mask.

    Written once for all layers that share a mask.
    """
    given = c.args[mask]
    if not isinstance(given, Value):
        return None
    w, rank = c.writer, c.rank(mask)
    if c.type(mask).dtype is DType.bool:
        return everywhere(w, w.op("Not", c.tensor(mask)), (rank - 1,))
    x = c.tensor(mask, computed_type(c.type(0)))
    return everywhere(w, w.same("Equal", x, w.number(-math.inf, x.dtype), result=DType.bool), (rank - 1,))
