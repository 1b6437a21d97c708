"""Composites taken apart into base ops, for backends that do not keep them whole."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection

from fairlead.ir import Graph, Node, Value, dims
from fairlead.passes._attention import attention, attention_backward
from fairlead.passes._dead import remove_dead_nodes
from fairlead.passes._nodes import number, operand
from fairlead.passes._ops import Ops
from fairlead.passes._rewrite import Emitter, Replacement, rewrite


def decompose(graph: Graph, keeps: Collection[str]) -> Graph:
    """The graph without the composites that are not in ``keeps`` (``"*"`` keeps all).

    Before: a canonical graph. After: of the ops in `DECOMPOSABLE`, only those in ``keeps``. But for products of
    matrices, reduced-precision inputs are computed in float32 inside, as ATen's own kernels do.
    """
    if "*" in keeps:
        return graph
    unwanted = DECOMPOSABLE - set(keeps)

    def rule(node: Node, emit: Emitter) -> Replacement | None:
        return _RULES[node.op](node, Ops(emit)) if node.op in unwanted else None

    return remove_dead_nodes(rewrite(graph, rule))


def _linear(node: Node, b: Ops) -> Replacement:
    x, w = operand(node), operand(node, 1)
    flat = b.view(x, (dims.product(x.tensor.shape[:-1]), x.tensor.shape[-1]))
    out = b.matmul(flat, b.permute(w, (1, 0)))
    out = b.view(out, node.result.tensor.shape)
    bias = node.args[2]
    return (b.binary("add", out, bias) if isinstance(bias, Value) else out,)


def _addmm(node: Node, b: Ops) -> Replacement:
    bias, beta, alpha = operand(node), number(node, 3), number(node, 4)
    out = b.matmul(operand(node, 1), operand(node, 2))
    out = out if alpha == 1 else b.binary("mul", out, alpha)
    if beta == 0:
        return (out,)
    return (b.binary("add", out, bias if beta == 1 else b.binary("mul", bias, beta)),)


def _softmax(node: Node, b: Ops) -> Replacement:
    x, axis = b.float32(operand(node)), _axis(node)
    if 0 in x.tensor.shape:
        return (b.cast(x, node.result.tensor.dtype),)
    e = b.unary("exp", b.binary("sub", x, b.reduce("amax", x, axis)))
    return (b.cast(b.binary("div", e, b.reduce("sum", e, axis)), node.result.tensor.dtype),)


def _log_softmax(node: Node, b: Ops) -> Replacement:
    x, axis = b.float32(operand(node)), _axis(node)
    if 0 in x.tensor.shape:
        return (b.cast(x, node.result.tensor.dtype),)
    shifted = b.binary("sub", x, b.reduce("amax", x, axis))
    total = b.reduce("sum", b.unary("exp", shifted), axis)
    return (b.cast(b.binary("sub", shifted, b.unary("log", total)), node.result.tensor.dtype),)


def _axis(node: Node) -> tuple[int, ...]:
    """The dimension that a softmax goes over; none of a number."""
    rank = operand(node).tensor.rank
    return (int(number(node, 1)) % rank,) if rank else ()


def _layer_norm(node: Node, b: Ops) -> Replacement:
    source = operand(node)
    normalized = node.args[1]
    assert isinstance(normalized, tuple), "the normalized shape is a list by the signature"
    x = b.float32(source)
    axes = tuple(range(x.tensor.rank - len(normalized), x.tensor.rank))
    mean = b.reduce("mean", x, axes)
    centred = b.binary("sub", x, mean)
    variance = b.reduce("mean", b.binary("mul", centred, centred), axes)
    rstd = b.unary("rsqrt", b.binary("add", variance, number(node, 4)))
    out = _affine(b, b.binary("mul", centred, rstd), node.args[2], node.args[3])
    return b.cast(out, source.tensor.dtype), *(_as_result(node, i, s, b) for i, s in ((1, mean), (2, rstd)))


def _as_result(node: Node, index: int, value: Value, b: Ops) -> Value | None:
    result = node.results[index]
    return None if result is None else b.cast(value, result.tensor.dtype)


def _affine(b: Ops, x: Value, weight: object, bias: object) -> Value:
    if isinstance(weight, Value):
        x = b.binary("mul", x, b.cast(weight, x.tensor.dtype))
    return b.binary("add", x, b.cast(bias, x.tensor.dtype)) if isinstance(bias, Value) else x


def _batch_norm(node: Node, b: Ops) -> Replacement:
    """With given statistics; the saved ones of this op are empty."""
    source, mean, var = operand(node), operand(node, 3), operand(node, 4)
    x = b.float32(source)
    column = (x.tensor.shape[1],) + (1,) * (x.tensor.rank - 2)
    rstd = b.view(b.unary("rsqrt", b.binary("add", b.float32(var), number(node, 6))), column)
    out = b.binary("mul", b.binary("sub", x, b.view(b.float32(mean), column)), rstd)
    weight, bias = (b.view(v, column) if isinstance(v, Value) else None for v in node.args[1:3])
    empty = (None if r is None else b.full(r, (0,), 0.0) for r in node.results[1:])
    return b.cast(_affine(b, out, weight, bias), source.tensor.dtype), *empty


def _silu(node: Node, b: Ops) -> Replacement:
    x = b.float32(operand(node))
    return (b.cast(b.binary("mul", x, b.unary("sigmoid", x)), node.result.tensor.dtype),)


def _gelu(node: Node, b: Ops) -> Replacement:
    x = b.float32(operand(node))
    half = b.binary("mul", x, 0.5)
    if node.args[1] == "tanh":
        cube = b.binary("mul", b.binary("mul", x, x), x)
        inner = b.binary("add", x, b.binary("mul", cube, 0.044715))
        curve = b.unary("tanh", b.binary("mul", inner, math.sqrt(2 / math.pi)))
    else:
        curve = b.unary("erf", b.binary("mul", x, math.sqrt(0.5)))
    return (b.cast(b.binary("mul", half, b.binary("add", curve, 1.0)), node.result.tensor.dtype),)


_RULES: dict[str, Callable[[Node, Ops], Replacement | None]] = {
    "aten.linear.default": _linear,
    "aten.addmm.default": _addmm,
    "aten._softmax.default": _softmax,
    "aten._log_softmax.default": _log_softmax,
    "aten.native_layer_norm.default": _layer_norm,
    "aten._native_batch_norm_legit_no_training.default": _batch_norm,
    "aten.silu.default": _silu,
    "aten.gelu.default": _gelu,
    "nn.scaled_dot_product_attention": attention,
    "nn.scaled_dot_product_attention_backward": attention_backward,
}

DECOMPOSABLE = frozenset(_RULES)
"""The composites that `decompose` can take apart."""
