"""Composites taken apart into base ops, for backends that do not keep them whole."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection

import msgspec

from fairlead.ir import DType, Graph, Node, TensorType, Token, Value, dims
from fairlead.passes._dead import remove_dead_nodes
from fairlead.passes._nodes import shape_argument
from fairlead.passes._rewrite import Emitter, Replacement, rewrite


def decompose(graph: Graph, keeps: Collection[str]) -> Graph:
    """The graph without the composites that are not in ``keeps`` (``"*"`` keeps all).

    Before: a canonical graph. After: of the ops in `DECOMPOSABLE`, only those in ``keeps``. Reduced-precision inputs
    are computed in float32 inside, as ATen's own kernels do.
    """
    if "*" in keeps:
        return graph
    unwanted = DECOMPOSABLE - set(keeps)

    def rule(node: Node, emit: Emitter) -> Replacement | None:
        return _RULES[node.op](node, _Builder(emit)) if node.op in unwanted else None

    return remove_dead_nodes(rewrite(graph, rule))


class _Builder:
    """Base ops with the types of their results worked out."""

    def __init__(self, emit: Emitter) -> None:
        self.emit = emit

    def unary(self, op: str, x: Value) -> Value:
        return self.emit(f"aten.{op}.default", (x,), _plain(x.tensor))

    def binary(self, op: str, x: Value, y: Value | float) -> Value:
        shape = broadcast(x.tensor.shape, y.tensor.shape) if isinstance(y, Value) else x.tensor.shape
        type_ = msgspec.structs.replace(x.tensor, shape=shape, strides=None)
        tail = (1,) if op in ("add", "sub") else ()
        return self.emit(f"aten.{op}.Tensor", (x, y, *tail), type_)

    def reduce(self, op: str, x: Value, axes: tuple[int, ...]) -> Value:
        shape = tuple(1 if i in axes else d for i, d in enumerate(x.tensor.shape))
        tail = () if op.startswith("amax") else (None,)
        overload = {"sum": "sum.dim_IntList", "mean": "mean.dim", "amax": "amax.default"}[op]
        return self.emit(f"aten.{overload}", (x, axes, True, *tail), _plain(x.tensor, shape))

    def permute(self, x: Value, order: tuple[int, ...]) -> Value:
        shape = tuple(x.tensor.shape[i] for i in order)
        return self.emit("aten.permute.default", (x, order), _plain(x.tensor, shape))

    def swap_last(self, x: Value) -> Value:
        rank = x.tensor.rank
        return self.permute(x, (*range(rank - 2), rank - 1, rank - 2))

    def view(self, x: Value, shape: tuple[dims.Dim, ...]) -> Value:
        if shape == x.tensor.shape:
            return x
        return self.emit("aten.view.default", (x, shape_argument(shape)), _plain(x.tensor, shape))

    def cast(self, x: Value, dtype: DType) -> Value:
        if x.tensor.dtype == dtype:
            return x
        args = (x, Token("dtype", dtype), None, None, None, False, None)
        return self.emit("aten._to_copy.default", args, msgspec.structs.replace(_plain(x.tensor), dtype=dtype))

    def matmul(self, a: Value, b: Value) -> Value:
        """A product of matrices in the last two dimensions, whose leading dimensions agree."""
        lead, m, k, n = a.tensor.shape[:-2], a.tensor.shape[-2], a.tensor.shape[-1], b.tensor.shape[-1]
        if not lead:
            return self.emit("aten.mm.default", (a, b), _plain(a.tensor, (m, n)))
        batch = dims.product(lead)
        flat = self.view(a, (batch, m, k)), self.view(b, (batch, k, n))
        return self.view(self.emit("aten.bmm.default", flat, _plain(a.tensor, (batch, m, n))), (*lead, m, n))

    def float32(self, x: Value) -> Value:
        return self.cast(x, DType.f32) if x.tensor.dtype in (DType.f16, DType.bf16) else x


def _plain(t: TensorType, shape: tuple[dims.Dim, ...] | None = None) -> TensorType:
    return msgspec.structs.replace(t, shape=t.shape if shape is None else shape, strides=None)


def broadcast(a: tuple[dims.Dim, ...], b: tuple[dims.Dim, ...]) -> tuple[dims.Dim, ...]:
    """The shape of an element-wise result; dimensions that are not 1 are taken to agree."""
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    return tuple(y if x == 1 else x for x, y in zip(a, b, strict=True))


def _value(node: Node, index: int) -> Value:
    value = node.args[index]
    assert isinstance(value, Value), f"argument {index} of {node.op} is a tensor by its signature"
    return value


def _number(node: Node, index: int) -> float:
    number = node.args[index]
    assert isinstance(number, int | float), f"argument {index} of {node.op} is a number by its signature"
    return number


def _linear(node: Node, b: _Builder) -> Replacement:
    x, w = _value(node, 0), _value(node, 1)
    flat = b.view(x, (dims.product(x.tensor.shape[:-1]), x.tensor.shape[-1])) if x.tensor.rank != 2 else x
    out = b.matmul(flat, b.permute(w, (1, 0)))
    out = b.view(out, node.result.tensor.shape)
    bias = node.args[2]
    return (b.binary("add", out, bias) if isinstance(bias, Value) else out,)


def _addmm(node: Node, b: _Builder) -> Replacement:
    bias, beta, alpha = _value(node, 0), _number(node, 3), _number(node, 4)
    out = b.matmul(_value(node, 1), _value(node, 2))
    out = out if alpha == 1 else b.binary("mul", out, alpha)
    if beta == 0:
        return (out,)
    return (b.binary("add", out, bias if beta == 1 else b.binary("mul", bias, beta)),)


def _softmax(node: Node, b: _Builder) -> Replacement:
    x = b.float32(_value(node, 0))
    axis = (int(_number(node, 1)) % max(x.tensor.rank, 1),) if x.tensor.rank else ()
    shifted = b.binary("sub", x, b.reduce("amax", x, axis))
    e = b.unary("exp", shifted)
    return (b.cast(b.binary("div", e, b.reduce("sum", e, axis)), node.result.tensor.dtype),)


def _log_softmax(node: Node, b: _Builder) -> Replacement:
    x = b.float32(_value(node, 0))
    axis = (int(_number(node, 1)) % max(x.tensor.rank, 1),) if x.tensor.rank else ()
    shifted = b.binary("sub", x, b.reduce("amax", x, axis))
    total = b.reduce("sum", b.unary("exp", shifted), axis)
    return (b.cast(b.binary("sub", shifted, b.unary("log", total)), node.result.tensor.dtype),)


def _layer_norm(node: Node, b: _Builder) -> Replacement:
    source = _value(node, 0)
    normalized = node.args[1]
    assert isinstance(normalized, tuple), "the normalized shape is a list by the signature"
    x = b.float32(source)
    axes = tuple(range(x.tensor.rank - len(normalized), x.tensor.rank))
    mean = b.reduce("mean", x, axes)
    centred = b.binary("sub", x, mean)
    variance = b.reduce("mean", b.binary("mul", centred, centred), axes)
    rstd = b.unary("rsqrt", b.binary("add", variance, _number(node, 4)))
    out = _affine(b, b.binary("mul", centred, rstd), node.args[2], node.args[3])
    return b.cast(out, source.tensor.dtype), mean, rstd


def _affine(b: _Builder, x: Value, weight: object, bias: object) -> Value:
    if isinstance(weight, Value):
        x = b.binary("mul", x, b.cast(weight, x.tensor.dtype))
    return b.binary("add", x, b.cast(bias, x.tensor.dtype)) if isinstance(bias, Value) else x


def _batch_norm(node: Node, b: _Builder) -> Replacement:
    source, mean, var = _value(node, 0), _value(node, 3), _value(node, 4)
    x = b.float32(source)
    column = (x.tensor.shape[1],) + (1,) * (x.tensor.rank - 2)
    rstd = b.view(b.unary("rsqrt", b.binary("add", b.float32(var), _number(node, 6))), column)
    out = b.binary("mul", b.binary("sub", x, b.view(b.float32(mean), column)), rstd)
    weight, bias = (b.view(v, column) if isinstance(v, Value) else None for v in node.args[1:3])
    return b.cast(_affine(b, out, weight, bias), source.tensor.dtype), None, None


def _silu(node: Node, b: _Builder) -> Replacement:
    x = b.float32(_value(node, 0))
    return (b.cast(b.binary("mul", x, b.unary("sigmoid", x)), node.result.tensor.dtype),)


def _gelu(node: Node, b: _Builder) -> Replacement:
    x = b.float32(_value(node, 0))
    half = b.binary("mul", x, 0.5)
    if node.args[1] == "tanh":
        cube = b.binary("mul", b.binary("mul", x, x), x)
        inner = b.binary("add", x, b.binary("mul", cube, 0.044715))
        curve = b.unary("tanh", b.binary("mul", inner, math.sqrt(2 / math.pi)))
    else:
        curve = b.unary("erf", b.binary("mul", x, math.sqrt(0.5)))
    return (b.cast(b.binary("mul", half, b.binary("add", curve, 1.0)), node.result.tensor.dtype),)


def _attention(node: Node, b: _Builder) -> Replacement | None:
    query, key, value = (b.float32(_value(node, i)) for i in range(3))
    if node.args[4] != 0.0:
        return None
    scores = _scores(b, query, key, node.args[3], node.args[5], _number(node, 6))
    peak = b.reduce("amax", scores, (3,))
    e = b.unary("exp", b.binary("sub", scores, peak))
    total = b.reduce("sum", e, (3,))
    out = b.matmul(b.binary("div", e, total), value)
    lse = b.binary("add", b.unary("log", total), peak)
    return b.cast(out, _value(node, 0).tensor.dtype), b.view(lse, lse.tensor.shape[:-1])


def _scores(b: _Builder, query: Value, key: Value, mask: object, causal: object, scale: float) -> Value:
    scores = b.binary("mul", b.matmul(query, b.swap_last(key)), scale)
    if isinstance(mask, Value):
        scores = b.binary("add", scores, b.cast(mask, scores.tensor.dtype))
    return _causal(b, scores) if causal else scores


def _causal(b: _Builder, scores: Value) -> Value:
    rows, columns = (_arange(b, scores, scores.tensor.shape[i]) for i in (-2, -1))
    allowed_type = msgspec.structs.replace(rows.tensor, shape=scores.tensor.shape[-2:], dtype=DType.bool)
    rows = b.view(rows, (scores.tensor.shape[-2], 1))
    allowed = b.emit("aten.ge.Tensor", (rows, columns), allowed_type)
    minus_infinity = b.emit(
        "aten.full.default",
        ((), -math.inf, Token("dtype", scores.tensor.dtype), Token("layout", "strided"), _device(scores), False),
        _plain(scores.tensor, ()),
    )
    return b.emit("aten.where.self", (allowed, scores, minus_infinity), scores.tensor)


def _arange(b: _Builder, like: Value, size: dims.Dim) -> Value:
    args = (0, *shape_argument((size,)), 1, Token("dtype", "i64"), Token("layout", "strided"), _device(like), False)
    return b.emit(
        "aten.arange.start_step", args, msgspec.structs.replace(_plain(like.tensor, (size,)), dtype=DType.i64)
    )


def _device(value: Value) -> Token:
    return Token("device", value.tensor.device)


def _attention_backward(node: Node, b: _Builder) -> Replacement | None:
    """The flash attention backward of Dao et al. 2022 (arXiv:2205.14135), equation by equation, on whole matrices."""
    grad, query, key, value, out, lse = (b.float32(_value(node, i)) for i in range(6))
    if node.args[7] != 0.0:
        return None
    scale = _number(node, 9)
    scores = _scores(b, query, key, node.args[6], node.args[8], scale)
    weights = b.unary("exp", b.binary("sub", scores, b.view(lse, (*lse.tensor.shape, 1))))
    grad_value = b.matmul(b.swap_last(weights), grad)
    row = b.reduce("sum", b.binary("mul", grad, out), (3,))
    grad_scores = b.binary("mul", weights, b.binary("sub", b.matmul(grad, b.swap_last(value)), row))
    grad_scores = b.binary("mul", grad_scores, scale)
    grads = b.matmul(grad_scores, key), b.matmul(b.swap_last(grad_scores), query), grad_value
    return tuple(b.cast(g, _value(node, 1).tensor.dtype) for g in grads)


_RULES: dict[str, Callable[[Node, _Builder], Replacement | None]] = {
    "aten.linear.default": _linear,
    "aten.addmm.default": _addmm,
    "aten._softmax.default": _softmax,
    "aten._log_softmax.default": _log_softmax,
    "aten.native_layer_norm.default": _layer_norm,
    "aten._native_batch_norm_legit_no_training.default": _batch_norm,
    "aten.silu.default": _silu,
    "aten.gelu.default": _gelu,
    "nn.scaled_dot_product_attention": _attention,
    "nn.scaled_dot_product_attention_backward": _attention_backward,
}

DECOMPOSABLE = frozenset(_RULES)
"""The composites that `decompose` can take apart."""
