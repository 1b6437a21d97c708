"""Attention, forward and backward, as products of matrices and a softmax."""

from __future__ import annotations

import math
from typing import NamedTuple

from fairlead.ir import Node, Value, dims
from fairlead.passes._nodes import number, operand
from fairlead.passes._ops import Ops
from fairlead.passes._rewrite import Replacement


def attention(node: Node, b: Ops) -> Replacement | None:
    """Rows that the mask shuts out altogether are zero, and so is their logsumexp, as ATen's kernel has it."""
    heads = _Heads.of(operand(node, 0), operand(node, 1))
    if node.args[4] != 0.0 or heads is None:
        return None
    query, key, value = (b.float32(operand(node, i)) for i in range(3))
    mask = node.args[3]
    scores = _scores(b, heads, query, key, mask, node.args[5], number(node, 6))
    peak = b.reduce("amax", scores, (3,))
    if isinstance(mask, Value):
        peak = b.where(b.compare("eq", peak, -math.inf), b.full(peak, (), 0.0), peak)
    e = b.unary("exp", b.binary("sub", scores, peak))
    total = b.reduce("sum", e, (3,))
    if isinstance(mask, Value):
        total = b.where(b.compare("eq", total, 0.0), b.full(total, (), 1.0), total)
    out = heads.split(b, b.matmul(heads.join(b, b.binary("div", e, total)), value))
    lse = b.binary("add", b.unary("log", total), peak)
    return b.cast(out, operand(node).tensor.dtype), b.view(lse, lse.tensor.shape[:-1])


def attention_backward(node: Node, b: Ops) -> Replacement | None:
    """The flash attention backward of Dao et al. 2022 (arXiv:2205.14135), equation by equation, on whole matrices."""
    heads = _Heads.of(operand(node, 1), operand(node, 2))
    if node.args[7] != 0.0 or heads is None:
        return None
    grad, query, key, value, out, lse = (b.float32(operand(node, i)) for i in range(6))
    scale = number(node, 9)
    scores = _scores(b, heads, query, key, node.args[6], node.args[8], scale)
    weights = heads.join(b, b.unary("exp", b.binary("sub", scores, b.view(lse, (*lse.tensor.shape, 1)))))
    grad, query, out = (heads.join(b, x) for x in (grad, query, out))
    grad_value = b.matmul(b.swap_last(weights), grad)
    row = b.reduce("sum", b.binary("mul", grad, out), (3,))
    grad_scores = b.binary("mul", weights, b.binary("sub", b.matmul(grad, b.swap_last(value)), row))
    grad_scores = b.binary("mul", grad_scores, scale)
    grad_query = heads.split(b, b.matmul(grad_scores, key))
    grads = grad_query, b.matmul(b.swap_last(grad_scores), query), grad_value
    return tuple(b.cast(g, operand(node, 1).tensor.dtype) for g in grads)


class _Heads(NamedTuple):
    """Query heads, ``group`` of which share a key head: together they are more rows of one product."""

    group: int

    @classmethod
    def of(cls, query: Value, key: Value) -> _Heads | None:
        """None where it is not known how many share one."""
        heads, keys = query.tensor.shape[1], key.tensor.shape[1]
        if heads == keys:
            return cls(1)
        return cls(heads // keys) if isinstance(heads, int) and isinstance(keys, int) else None

    def join(self, b: Ops, x: Value) -> Value:
        """(batch, query heads, rows, n) as (batch, key heads, group and rows, n)."""
        batch, heads, rows, n = x.tensor.shape
        return x if self.group == 1 else b.view(x, (batch, int(heads) // self.group, dims.mul(self.group, rows), n))

    def split(self, b: Ops, x: Value) -> Value:
        """The reverse of `join`."""
        batch, keys, rows, n = x.tensor.shape
        if self.group == 1:
            return x
        return b.view(x, (batch, int(keys) * self.group, dims.normalize(f"({rows})//{self.group}"), n))


def _scores(b: Ops, heads: _Heads, query: Value, key: Value, mask: object, causal: object, scale: float) -> Value:
    product = heads.split(b, b.matmul(heads.join(b, query), b.swap_last(key)))
    scores = b.binary("mul", product, scale)
    if isinstance(mask, Value):
        scores = b.binary("add", scores, b.cast(mask, scores.tensor.dtype))
    return _causal(b, scores) if causal else scores


def _causal(b: Ops, scores: Value) -> Value:
    queries, keys = scores.tensor.shape[-2:]
    rows = b.view(b.arange(scores, queries), (queries, 1))
    return b.where(b.compare("ge", rows, b.arange(scores, keys)), scores, b.full(scores, (), -math.inf))
