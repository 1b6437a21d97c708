"""Layer, group, batch and root-mean-square normalisation as means and products, forward and backward.

Halves are computed in float32. With ``n`` the normalised values, ``g`` the gradient times the weight and means over
what is normalised together, the gradient of the input is ``rstd * (g - mean(g) - n * mean(g * n))`` (Ioffe and Szegedy
2015, arXiv:1502.03167, section 3); without ``mean(g)`` where the mean is not subtracted, and ``rstd * g`` alone where
the statistics are given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from fairlead.ir import DimExpr, DType, Node, Value, dims
from fairlead.passes._nodes import number, operand
from fairlead.passes._ops import Ops
from fairlead.passes._rewrite import Replacement


class _Normalized(NamedTuple):
    """Values with mean 0 and deviation 1 over ``axes``, and what made them so."""

    values: Value
    mean: Value
    variance: Value
    rstd: Value


def _normalized(b: Ops, x: Value, axes: tuple[int, ...], eps: float) -> _Normalized:
    mean = b.reduce("mean", x, axes)
    centred = b.binary("sub", x, mean)
    variance = b.reduce("mean", b.binary("mul", centred, centred), axes)
    rstd = b.unary("rsqrt", b.binary("add", variance, eps))
    return _Normalized(b.binary("mul", centred, rstd), mean, variance, rstd)


def _gradient(b: Ops, grad: Value, values: Value, rstd: Value, axes: tuple[int, ...], centred: bool = True) -> Value:
    """Of the input, for ``grad`` of the normalised values."""
    along = b.binary("mul", values, b.reduce("mean", b.binary("mul", grad, values), axes))
    if centred:
        grad = b.binary("sub", grad, b.reduce("mean", grad, axes))
    return b.binary("mul", b.binary("sub", grad, along), rstd)


def _affine(b: Ops, x: Value, weight: object, bias: object) -> Value:
    if isinstance(weight, Value):
        x = b.binary("mul", x, b.cast(weight, x.tensor.dtype))
    return b.binary("add", x, b.cast(bias, x.tensor.dtype)) if isinstance(bias, Value) else x


def _scaled(b: Ops, x: Value, weight: object) -> Value:
    return _affine(b, x, weight, None)


def _in_types(node: Node, b: Ops, values: Sequence[Value | None]) -> Replacement:
    """The values in the dtypes and shapes of the node's results, of those that someone uses."""
    return tuple(
        None if r is None or v is None else b.view(b.cast(v, r.tensor.dtype), r.tensor.shape)
        for r, v in zip(node.results, values, strict=True)
    )


def _normalized_axes(node: Node, rank: int, index: int) -> tuple[int, ...]:
    normalized = node.args[index]
    assert isinstance(normalized, tuple), "the normalized shape is a list by the signature"
    return tuple(range(rank - len(normalized), rank))


def _others(rank: int, axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(i for i in range(rank) if i not in axes)


def _layer_norm(node: Node, b: Ops) -> Replacement:
    x = b.float32(operand(node))
    n = _normalized(b, x, _normalized_axes(node, x.tensor.rank, 1), number(node, 4))
    return _in_types(node, b, (_affine(b, n.values, node.args[2], node.args[3]), n.mean, n.rstd))


def _layer_norm_backward(node: Node, b: Ops) -> Replacement:
    grad, x, mean, rstd = (b.float32(operand(node, i)) for i in (0, 1, 3, 4))
    axes = _normalized_axes(node, x.tensor.rank, 2)
    values = b.binary("mul", b.binary("sub", x, mean), rstd)
    given = _gradient(b, _scaled(b, grad, node.args[5]), values, rstd, axes)
    others = _others(x.tensor.rank, axes)
    weight = b.reduce("sum", b.binary("mul", grad, values), others)
    return _in_types(node, b, (given, weight, b.reduce("sum", grad, others)))


def _rms_norm(node: Node, b: Ops) -> Replacement:
    x = b.float32(operand(node))
    axes = _normalized_axes(node, x.tensor.rank, 1)
    eps = number(node, 3) if node.args[3] is not None else _EPSILON[x.tensor.dtype]
    square = b.reduce("mean", b.binary("mul", x, x), axes)
    rstd = b.unary("rsqrt", b.binary("add", square, eps))
    return _in_types(node, b, (_scaled(b, b.binary("mul", x, rstd), node.args[2]), rstd))


_EPSILON = {DType.f32: 2.0**-23, DType.f64: 2.0**-52}
"""The distance from 1 to the next number, which ATen takes in the dtype that it computes in."""


def _rms_norm_backward(node: Node, b: Ops) -> Replacement:
    grad, x, rstd = (b.float32(operand(node, i)) for i in (0, 1, 3))
    axes = _normalized_axes(node, x.tensor.rank, 2)
    values = b.binary("mul", x, rstd)
    given = _gradient(b, _scaled(b, grad, node.args[4]), values, rstd, axes, centred=False)
    return _in_types(node, b, (given, b.reduce("sum", b.binary("mul", grad, values), _others(x.tensor.rank, axes))))


def _group_norm(node: Node, b: Ops) -> Replacement:
    x = b.float32(operand(node))
    grouped, whole = _groups(x, int(number(node, 6)))
    n = _normalized(b, b.view(x, grouped), (2,), number(node, 7))
    out = _affine(b, b.view(n.values, whole), *(_column(b, v, 3) for v in node.args[1:3]))
    return _in_types(node, b, (out, n.mean, n.rstd))


def _group_norm_backward(node: Node, b: Ops) -> Replacement:
    grad, x, mean, rstd = (b.float32(operand(node, i)) for i in range(4))
    grouped, whole = _groups(x, int(number(node, 8)))
    grad = b.view(grad, whole)
    mean, rstd = (b.view(v, (*v.tensor.shape, 1)) for v in (mean, rstd))
    values = b.binary("mul", b.binary("sub", b.view(x, grouped), mean), rstd)
    scaled = b.view(_scaled(b, grad, _column(b, node.args[4], 3)), grouped)
    weight = b.reduce("sum", b.binary("mul", grad, b.view(values, whole)), (0, 2))
    return _in_types(node, b, (_gradient(b, scaled, values, rstd, (2,)), weight, b.reduce("sum", grad, (0, 2))))


def _groups(x: Value, count: int) -> tuple[tuple[dims.Dim, ...], tuple[dims.Dim, ...]]:
    """The shape of x by batch and group, and by batch and channel."""
    batch, channels, *rest = x.tensor.shape
    size = dims.product(tuple(rest))
    together = dims.normalize(f"({channels})//{count}")
    return (batch, count, dims.mul(together, size)), (batch, channels, size)


def _column(b: Ops, v: object, rank: int) -> Value | None:
    """A vector over the channels as a tensor that broadcasts; None where there is none."""
    if not isinstance(v, Value):
        return None
    return b.view(b.float32(v), (v.tensor.shape[0],) + (1,) * (rank - 2))


def _batch_norm(node: Node, b: Ops) -> Replacement:
    """With given statistics; the saved ones of this op are empty."""
    source = operand(node)
    x = b.float32(source)
    out = _with_statistics(node, b, x, node.args[3], node.args[4], number(node, 6))
    return b.cast(out, source.tensor.dtype), *_empty(node, b, 1, 3)


def _with_statistics(node: Node, b: Ops, x: Value, mean: object, variance: object, eps: float) -> Value:
    rank = x.tensor.rank
    mean, variance = _column(b, mean, rank), _column(b, variance, rank)
    assert mean is not None, "statistics are given by the signature"
    assert variance is not None, "statistics are given by the signature"
    rstd = b.unary("rsqrt", b.binary("add", variance, eps))
    values = b.binary("mul", b.binary("sub", x, mean), rstd)
    return _affine(b, values, *(_column(b, v, rank) for v in node.args[1:3]))


def _empty(node: Node, b: Ops, first: int, last: int) -> Replacement:
    """Results that hold nothing."""
    found = node.results[first:last]
    return tuple(None if r is None else b.full(r, r.tensor.shape, 0) for r in found)


def _batch_norm_of_batch(node: Node, b: Ops, momentum: object, eps: float) -> tuple[Value | None, ...]:
    """With the batch's own statistics: the result, its statistics, and the running ones where there are any."""
    x = b.float32(operand(node))
    rank = x.tensor.rank
    axes = _others(rank, (1,))
    n = _normalized(b, x, axes, eps)
    out = _affine(b, n.values, *(_column(b, v, rank) for v in node.args[1:3]))
    if momentum is None:
        return out, n.mean, n.rstd
    assert isinstance(momentum, int | float), "momentum is a number by the signature"
    count = dims.product(tuple(x.tensor.shape[i] for i in axes))
    others = dims.add(count, -1)
    unbiased = b.binary("mul", n.variance, _argument(count))
    unbiased = b.binary("div", unbiased, _argument(others))
    mean, variance = (_column(b, node.args[i], rank) for i in (3, 4))
    assert mean is not None, "running statistics are given by the signature"
    assert variance is not None, "running statistics are given by the signature"
    return out, n.mean, n.rstd, _moved(b, mean, n.mean, momentum), _moved(b, variance, unbiased, momentum)


def _argument(dim: dims.Dim) -> DimExpr | float:
    return DimExpr(dim) if isinstance(dim, str) else float(dim)


def _moved(b: Ops, old: Value, new: Value, momentum: float) -> Value:
    return b.binary("add", b.binary("mul", old, 1 - momentum), b.binary("mul", new, momentum))


def _batch_norm_functional(node: Node, b: Ops) -> Replacement:
    if node.args[5]:
        return _in_types(node, b, _batch_norm_of_batch(node, b, node.args[6], number(node, 7)))
    x = b.float32(operand(node))
    out = _with_statistics(node, b, x, node.args[3], node.args[4], number(node, 7))
    return b.cast(out, operand(node).tensor.dtype), *_empty(node, b, 1, 3), operand(node, 3), operand(node, 4)


def _batch_norm_with_update(node: Node, b: Ops) -> Replacement:
    out, mean, rstd, *running = _batch_norm_of_batch(node, b, node.args[5], number(node, 6))
    (reserve,) = _empty(node, b, 3, 4)
    return _in_types(node, b, (out, mean, rstd, reserve, *running))


def _batch_norm_without_running(node: Node, b: Ops) -> Replacement:
    return _in_types(node, b, _batch_norm_of_batch(node, b, None, number(node, 5)))


def _batch_norm_backward(node: Node, b: Ops) -> Replacement:
    """Of all forms: the statistics are the batch's own in training, the running ones otherwise."""
    grad, x = (b.float32(operand(node, i)) for i in (0, 1))
    rank = x.tensor.rank
    axes = _others(rank, (1,))
    training = bool(node.args[7])
    mean, spread = (_column(b, node.args[i], rank) for i in ((5, 6) if training else (3, 4)))
    assert mean is not None, "the statistics that count are there"
    assert spread is not None, "the statistics that count are there"
    rstd = spread if training else b.unary("rsqrt", b.binary("add", spread, number(node, 8)))
    values = b.binary("mul", b.binary("sub", x, mean), rstd)
    scaled = _scaled(b, grad, _column(b, node.args[2], rank))
    given = _gradient(b, scaled, values, rstd, axes) if training else b.binary("mul", scaled, rstd)
    weight = b.reduce("sum", b.binary("mul", grad, values), axes)
    return _in_types(node, b, (given, weight, b.reduce("sum", grad, axes)))


NORMALIZATIONS: Mapping[str, Callable[[Node, Ops], Replacement | None]] = {
    "aten.native_layer_norm.default": _layer_norm,
    "aten.native_layer_norm_backward.default": _layer_norm_backward,
    "aten._fused_rms_norm.default": _rms_norm,
    "aten._fused_rms_norm_backward.default": _rms_norm_backward,
    "aten.native_group_norm.default": _group_norm,
    "aten.native_group_norm_backward.default": _group_norm_backward,
    "aten._native_batch_norm_legit_no_training.default": _batch_norm,
    "aten._native_batch_norm_legit_functional.default": _batch_norm_functional,
    "aten._native_batch_norm_legit.no_stats": _batch_norm_without_running,
    "aten._batch_norm_with_update_functional.default": _batch_norm_with_update,
    "aten.native_batch_norm_backward.default": _batch_norm_backward,
    "aten.batch_norm_backward.default": _batch_norm_backward,
}
