"""Rules of scaled dot-product attention, forward and backward, on whole matrices of scores, in f32 for halves.

Query heads that share a key head are more rows of one product. Source of the backward: Dao et al. 2022,
arXiv:2205.14135.
"""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
from jax import lax

from fairlead.ir import Node, TensorType
from fairlead_openxla._call import Call
from fairlead_openxla._matmul import is_small, product
from fairlead_openxla._numbers import Array, dtype_of, wide
from fairlead_openxla._rules import Unless, rule
from fairlead_openxla._target import on_cpu

__all__: list[str] = []


def _unless(dropout: int, query: int) -> Unless:
    def unless(node: Node) -> str | None:
        if node.args[dropout] != 0:
            return "attention that draws its dropout itself"
        heads = [node.args[i].tensor.shape[-3:-2] for i in (query, query + 1)]  # type: ignore[union-attr]
        if heads[0] != heads[1] and not all(isinstance(n, int) for pair in heads for n in pair):
            return "attention with shared heads of a symbolic number"
        return None

    return unless


def _masked(scores: Array, mask: Array | None, causal: bool) -> Array:
    scores = scores if mask is None else scores + wide(mask)
    if not causal:
        return scores
    row = lax.broadcasted_iota(jnp.int64, scores.shape, scores.ndim - 2)
    return jnp.where(lax.broadcasted_iota(jnp.int64, scores.shape, scores.ndim - 1) <= row, scores, -math.inf)


class _Heads:
    """Query heads, ``group`` of which share a key head."""

    def __init__(self, query: Array, key: Array) -> None:
        self.group = query.shape[-3] // max(key.shape[-3], 1)

    def join(self, x: Array) -> Array:
        """(..., heads, rows, n) as (..., key heads, group * rows, n)."""
        *lead, heads, rows, n = x.shape
        return x if self.group == 1 else jnp.reshape(x, (*lead, heads // self.group, self.group * rows, n))

    def split(self, x: Array) -> Array:
        *lead, heads, rows, n = x.shape
        return x if self.group == 1 else jnp.reshape(x, (*lead, heads * self.group, rows // self.group, n))


def _scores(heads: _Heads, query: Array, key: Array, mask: Array | None, causal: bool, scale: float) -> Array:
    scores = heads.split(product(heads.join(query), jnp.swapaxes(key, -1, -2), dtype_of(query)) * scale)
    return _masked(scores, mask, causal)


@rule("nn.scaled_dot_product_attention", unless=_unless(4, 0))
def attention(
    c: Call,
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None,
    dropout: float,
    causal: bool,
    scale: float,
) -> tuple[Array, Array]:
    """Rows that the mask shuts out altogether are zero, and so is their logsumexp.

    On CUDA weights of halves are halves, as in torch's kernels: products of them are many times as fast, where they are
    not small. They are divided by their sum afterwards, so that the largest, which is 1 before, loses nothing.
    """
    heads = _Heads(query, key)
    if on_cpu() or is_small(query, key):
        query, key, value = wide(query), wide(key), wide(value)
    scores = _scores(heads, query, key, mask, causal, scale)
    peak = jnp.max(scores, -1, keepdims=True, initial=-math.inf)
    peak = jnp.where(peak == -math.inf, 0, peak)
    e = jnp.exp(scores - peak)
    total = jnp.sum(e, -1, keepdims=True)
    total = jnp.where(total == 0, 1, total)
    out = heads.split(product(heads.join(e), value, dtype_of(value))) / total
    return out, (jnp.log(total) + peak)[..., 0]


def _plain(dropout: int) -> Unless:
    """Declines what an op of torch's kernels gives or takes besides: the bias's gradient, and lengths in numbers."""

    def unless(node: Node) -> str | None:
        if node.args[dropout] if dropout < len(node.args) else 0:
            return "attention that draws its dropout itself"
        if node.op.endswith("_backward.default"):
            wanted = node.results[3:]
            return "the gradient of attention's bias" if any(r is not None for r in wanted) else None
        numbers = [r for r in node.results if r is not None and not isinstance(r.type, TensorType)]
        return "attention that gives the lengths of its sequences" if numbers else None

    return unless


def _kept(c: Call, out: Array, logsumexp: Array) -> tuple[Array | None, ...]:
    """The results of an op of torch's kernels: seeds that no dropout reads are zero, and so is what is padded."""
    rest = [jnp.zeros(c.shape(i)) if c.wants(i) else None for i in range(2, len(c.node.results))]
    if not c.wants(1):
        return out, None, *rest
    *lead, rows = logsumexp.shape
    shape = c.shape(1)
    if len(shape) == logsumexp.ndim:
        logsumexp = jnp.pad(logsumexp, [*((0, 0) for _ in lead), (0, shape[-1] - rows)])
    return out, jnp.reshape(logsumexp, shape), *rest


@rule("_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention", unless=_plain(5))
def biased_attention(
    c: Call,
    query: Array,
    key: Array,
    value: Array,
    bias: Array | None,
    keeps: bool,
    dropout: float = 0.0,
    causal: bool = False,
    *rest: Any,
) -> tuple[Array | None, ...]:
    """As which torch captures attention on CUDA."""
    return _kept(c, *attention(c, query, key, value, bias, dropout, causal, _scale(query, rest)))


@rule("_scaled_dot_product_flash_attention", unless=_plain(3))
def flash_attention(
    c: Call, query: Array, key: Array, value: Array, dropout: float = 0.0, causal: bool = False, *rest: Any
) -> tuple[Array | None, ...]:
    return _kept(c, *attention(c, query, key, value, None, dropout, causal, _scale(query, rest)))


def _scale(query: Array, rest: tuple[Any, ...]) -> float:
    """The last of the arguments, after which of torch's kernels says whether it gives its mask."""
    given = [x for x in rest if x is not None and not isinstance(x, bool)]
    return float(given[0]) if given else float(query.shape[-1] ** -0.5)


@rule("nn.scaled_dot_product_attention_backward", unless=_unless(7, 1))
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
    """On CUDA the factors of products of halves are halves, as in torch's kernels."""
    heads = _Heads(query, key)
    row = heads.join(jnp.sum(wide(grad) * wide(out), -1, keepdims=True))
    if on_cpu() or is_small(query, key):
        grad, query, key, value = (wide(x) for x in (grad, query, key, value))
    scores = _scores(heads, query, key, mask, causal, scale)
    weights = heads.join(jnp.exp(scores - wide(logsumexp)[..., None]))
    grad, query = heads.join(grad), heads.join(query)
    dtype = dtype_of(query)
    grad_scores = weights * (product(grad, jnp.swapaxes(value, -1, -2), dtype) - row) * scale
    grad_value = product(jnp.swapaxes(weights, -1, -2), grad, dtype)
    grad_key = product(jnp.swapaxes(grad_scores, -1, -2), query, dtype)
    return heads.split(product(grad_scores, key, dtype)), grad_key, grad_value


def _torchs_backward(
    c: Call, saved: tuple[Array, ...], bias: Array | None, dropout: float, causal: bool, rest: tuple[Any, ...]
) -> tuple[Array, Array, Array]:
    """The gradients from what a forward of `_kept` saved: without its padding, and its last dimension of one."""
    grad, query, key, value, out, logsumexp = saved
    logsumexp = jnp.reshape(logsumexp, (*query.shape[:-2], -1))[..., : query.shape[-2]]
    scale = _scale(query, rest)
    return attention_backward(c, grad, query, key, value, out, logsumexp, bias, dropout, causal, scale)


@rule("_scaled_dot_product_efficient_attention_backward", unless=_plain(9))
def biased_attention_backward(
    c: Call,
    grad: Array,
    query: Array,
    key: Array,
    value: Array,
    bias: Array | None,
    out: Array,
    logsumexp: Array,
    seed: Array,
    offset: Array,
    dropout: float,
    wanted: tuple[bool, ...],
    causal: bool = False,
    *rest: Any,
) -> tuple[Array, Array, Array]:
    return _torchs_backward(c, (grad, query, key, value, out, logsumexp), bias, dropout, causal, rest)


@rule("_scaled_dot_product_cudnn_attention_backward", unless=_plain(13))
def cudnn_attention_backward(
    c: Call,
    grad: Array,
    query: Array,
    key: Array,
    value: Array,
    out: Array,
    logsumexp: Array,
    seed: Array,
    offset: Array,
    bias: Array | None,
    starts_q: Array | None,
    starts_k: Array | None,
    longest_q: int,
    longest_k: int,
    dropout: float,
    causal: bool,
    *rest: Any,
) -> tuple[Array, Array, Array]:
    return _torchs_backward(c, (grad, query, key, value, out, logsumexp), bias, dropout, causal, rest)


@rule("_scaled_dot_product_flash_attention_backward", unless=_plain(10))
def flash_attention_backward(
    c: Call,
    grad: Array,
    query: Array,
    key: Array,
    value: Array,
    out: Array,
    logsumexp: Array,
    starts_q: Array | None,
    starts_k: Array | None,
    longest_q: int,
    longest_k: int,
    dropout: float,
    causal: bool,
    seed: Array,
    offset: Array,
    *rest: Any,
) -> tuple[Array, Array, Array]:
    return _torchs_backward(c, (grad, query, key, value, out, logsumexp), None, dropout, causal, rest)
