"""Convolutions whose weights are known: batch norms folded in, packed once, channels last."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import torch
from torch import fx

from fairlead_ipex._draft import Draft, op_of, type_of
from fairlead_ipex._post_ops import Chain, chain_of
from fairlead_ipex._products import packable

__all__ = ["pack_convolutions"]

_ops = torch.ops.mkldnn
_BATCH_NORM = "aten._native_batch_norm_legit_no_training.default"


class _Weights(NamedTuple):
    weight: torch.Tensor
    bias: torch.Tensor | None


def pack_convolutions(draft: Draft, *, finite: bool) -> None:
    """Before: a module with ``aten.convolution``. After: those with known weights are oneDNN's, channels last."""
    laid_out: set[fx.Node] = set()
    for node in list(draft.graph.nodes):
        if op_of(node) == "aten.convolution.default":
            _pack(draft, node, laid_out, finite)
        elif op_of(node) in _KEEPS_LAYOUT and node.all_input_nodes and node.all_input_nodes[0] in laid_out:
            laid_out.add(node)


def _pack(draft: Draft, node: fx.Node, laid_out: set[fx.Node], finite: bool) -> None:
    x, weight, bias, stride, padding, dilation, transposed, _, groups = node.args
    w, b = draft.value(weight), draft.value(bias)
    given = type_of(x)
    if w is None or given is None or (bias is not None and b is None) or not packable(given.dtype):
        return
    if transposed or w.dim() != 4 or 0 in w.shape or len(given.shape) != 4:
        return
    w, b = _folded(draft, node, _Weights(w, b))
    chain = chain_of(node, finite=finite)
    size = list(given.shape) if given.is_static else None
    packed = _ops._reorder_convolution_weight(w.contiguous(), padding, stride, dilation, groups, size)
    with draft.graph.inserting_before(chain.last):
        image = x if x in laid_out else draft.graph.call_function(_channels_last, (x,))
        made = _call(draft, image, _Weights(packed, b), (padding, stride, dilation, groups), chain)
    made.meta["value"] = chain.last.meta["value"]
    chain.last.replace_all_uses_with(made)
    laid_out.add(made)


def _folded(draft: Draft, node: fx.Node, weights: _Weights) -> _Weights:
    """The weights with the batch norm in them that alone reads the convolution, which is left out."""
    norm = next(iter(node.users))
    if len(node.users) != 1 or op_of(norm) != _BATCH_NORM or norm.args[0] is not node:
        return weights
    scale, shift, mean, variance = map(draft.value, norm.args[1:5])
    if mean is None or variance is None or (scale is None) != (norm.args[1] is None):
        return weights
    if (shift is None) != (norm.args[2] is None):
        return weights
    made = _product(weights, scale, shift, mean, variance, norm.args[6])
    if made is None:
        return weights
    for user in list(norm.users):
        assert user.target is operator.getitem
        user.replace_all_uses_with(node)
    draft.graph.eliminate_dead_code()
    return made


def _product(
    weights: _Weights,
    scale: torch.Tensor | None,
    shift: torch.Tensor | None,
    mean: torch.Tensor,
    variance: torch.Tensor,
    eps: Any,
) -> _Weights | None:
    """The weights of both, rounded once; None where they are not numbers, of which torch makes others."""
    factor = torch.rsqrt(variance.double() + eps) * (1.0 if scale is None else scale.double())
    offset = -mean.double() if weights.bias is None else weights.bias.double() - mean.double()
    weight = weights.weight.double() * factor.view(-1, *[1] * (weights.weight.dim() - 1))
    bias = offset * factor + (0.0 if shift is None else shift.double())
    dtype = weights.weight.dtype
    made = _Weights(weight.to(dtype), bias.to(dtype))
    return made if bool(made.weight.isfinite().all() and bias.to(dtype).isfinite().all()) else None


def _call(draft: Draft, x: Any, weights: _Weights, geometry: tuple[Any, ...], chain: Chain) -> fx.Node:
    held = draft.hold(weights.weight)
    bias = None if weights.bias is None else draft.hold(weights.bias)
    if chain.other is not None:
        both = (x, chain.other, held, bias, *geometry, chain.binary, 1.0, None, [], None)
        return draft.graph.call_function(_ops._convolution_pointwise.binary, both)
    unary = chain.unary
    args = (x, held, bias, *geometry, unary.name, list(unary.numbers), unary.algorithm)
    return draft.graph.call_function(_ops._convolution_pointwise.default, args)


def _channels_last(x: torch.Tensor) -> torch.Tensor:
    return x.contiguous(memory_format=torch.channels_last)


_KEEPS_LAYOUT = frozenset(
    {
        "aten.relu.default",
        "aten.add.Tensor",
        "aten.max_pool2d_with_indices.default",
    }
)
"""Ops whose result lies in memory as their operand does."""
