"""Rules that reduce dimensions."""

from __future__ import annotations

import math
from typing import Any

from fairlead.ir import DType, Node, dims
from fairlead_tvm import _tvm as t
from fairlead_tvm._arrays import Array, Strided
from fairlead_tvm._call import Call
from fairlead_tvm._functions import exp, exp_of_less, log, sqrt
from fairlead_tvm._kernel import Kernel
from fairlead_tvm._numbers import cast, constant, operand, wide
from fairlead_tvm._reduce import reduced
from fairlead_tvm._rows import Row, each_row
from fairlead_tvm._rules import Rule, rule
from fairlead_tvm._views import axes, axis, squeezed

__all__ = ["mean_of", "sum_of"]


def _kept(c: Call, found: Array, over: tuple[int, ...], keepdim: bool) -> Array:
    return found if keepdim else squeezed(c.program, found, over)


def sum_of(c: Call, x: Array, over: tuple[int, ...]) -> Array:
    """The sum, of f32 in f64, with the reduced dimensions kept."""
    x = cast(x, DType.f64) if x.dtype is DType.f32 else x
    return reduced(c.program, x, over, "sum")


def mean_of(c: Call, x: Array, over: tuple[int, ...]) -> Array:
    """The mean, in the element type of `sum_of`."""
    total = sum_of(c, x, over)
    count = constant(dims.product(x.shape[d] for d in over), total.dtype)
    return c.map(lambda a, b: a / b, total, count)


@rule("sum.dim_IntList")
def sum_(c: Call, x: Array, over: Any = None, keepdim: bool = False, dtype: Any = None) -> Array:
    at = axes(over, x.ndim)
    return _kept(c, sum_of(c, operand(x, c.dtype), at), at, keepdim)


@rule("mean.dim")
def mean(c: Call, x: Array, over: Any = None, keepdim: bool = False, dtype: Any = None) -> Array:
    at = axes(over, x.ndim)
    return _kept(c, mean_of(c, operand(x, c.dtype), at), at, keepdim)


@rule("prod")
def prod(c: Call, x: Array, dtype: Any = None) -> Array:
    at = tuple(range(x.ndim))
    return squeezed(c.program, reduced(c.program, operand(x, c.dtype), at, "prod"), at)


@rule("prod.dim_int")
def prod_along(c: Call, x: Array, dim: int, keepdim: bool = False, dtype: Any = None) -> Array:
    at = axes(dim, x.ndim)
    return _kept(c, reduced(c.program, operand(x, c.dtype), at, "prod"), at, keepdim)


def _extreme(kind: str) -> Rule:
    def write(c: Call, x: Array, over: Any = (), keepdim: bool = False) -> Array:
        at = axes(over, x.ndim)
        if x.dtype is DType.bool:
            return _kept(c, reduced(c.program, x, at, "any" if kind == "max" else "all"), at, keepdim)
        return _kept(c, reduced(c.program, wide(x), at, kind), at, keepdim)

    return write


rule("amax")(_extreme("max"))
rule("amin")(_extreme("min"))


def _truth(kind: str) -> Rule:
    def write(c: Call, x: Array, over: Any = None, keepdim: bool = False) -> Array:
        at = axes(over, x.ndim, empty_is_all=False)
        return _kept(c, reduced(c.program, cast(x, DType.bool), at, kind), at, keepdim)

    return write


rule("any.dims")(_truth("any"))
rule("all.dims")(_truth("all"))


def _variance(c: Call, x: Array, over: tuple[int, ...], correction: Any, keepdim: bool) -> tuple[Array, Array]:
    """Squared distances from the mean over the count less the correction, and the mean."""
    x = cast(x, DType.f64) if x.dtype is DType.f32 else x
    mean = c.program.stored(mean_of(c, x, over))
    total = reduced(c.program, c.map(lambda a, m: (a - m) * (a - m), x, mean), over, "sum")
    count = constant(dims.product(x.shape[d] for d in over), x.dtype)
    less = constant(1 if correction is None else correction, x.dtype)
    zero = t.const(0, x.dtype)

    def share(a: Any, n: Any, m: Any) -> Any:
        return a / t.select(n - m < zero, zero, n - m)

    found = c.map(share, total, count, less)
    return _kept(c, found, over, keepdim), _kept(c, mean, over, keepdim)


@rule("var.correction")
def var(c: Call, x: Array, over: Any = None, correction: Any = None, keepdim: bool = False) -> Array:
    return _variance(c, wide(x), axes(over, x.ndim), correction, keepdim)[0]


@rule("var_mean.correction")
def var_mean(c: Call, x: Array, over: Any = None, correction: Any = None, keepdim: bool = False) -> tuple[Array, Array]:
    return _variance(c, wide(x), axes(over, x.ndim), correction, keepdim)


def _other_norms(node: Node) -> str | None:
    order = node.args[1]
    known = isinstance(order, int | float) and float(order) in (0.0, 1.0, 2.0, math.inf, -math.inf)
    return None if known else f"a norm of order {order}"


@rule("linalg_vector_norm", unless=_other_norms)
def vector_norm(c: Call, x: Array, order: Any = 2, over: Any = None, keepdim: bool = False, dtype: Any = None) -> Array:
    x = operand(x, c.dtype)
    x = cast(x, DType.f64) if x.dtype is DType.f32 else x
    over, order = axes(over, x.ndim), float(order)
    zero, one = t.const(0, x.dtype), t.const(1, x.dtype)
    match order:
        case 0.0:
            found: Array = reduced(c.program, c.map(lambda v: t.select(t.ne(v, zero), one, zero), x), over, "sum")
        case 1.0:
            found = reduced(c.program, c.map(t.abs_, x), over, "sum")
        case 2.0:
            found = c.map(sqrt, reduced(c.program, c.map(lambda v: v * v, x), over, "sum"), cost=4)
        case _:
            found = reduced(c.program, c.map(t.abs_, x), over, "max" if order > 0 else "min")
    return _kept(c, found, over, keepdim)


def _along_rows(c: Call, x: Array, dim: int, body: Any, *others: Array) -> Array:
    """A kernel that works on each row; another dimension than the last is brought there."""
    return c.program.kernel(x.shape, x.dtype, lambda k, out: each_row(k, out, x.dtype, lambda row: body(k, out, row)))


def _is_last(x: Array, dim: int) -> bool:
    return x.ndim > 0 and axis(dim, x.ndim) == x.ndim - 1


@rule("_softmax")
def softmax(c: Call, x: Array, dim: int, half_to_float: Any = False) -> Array:
    return _softmax(c, wide(x), dim, logarithm=False)


@rule("_log_softmax")
def log_softmax(c: Call, x: Array, dim: int, half_to_float: Any = False) -> Array:
    return _softmax(c, wide(x), dim, logarithm=True)


def _softmax(c: Call, x: Array, dim: int, *, logarithm: bool) -> Array:
    x = c.stored(x) if x.products else x
    if not _is_last(x, dim):
        return _softmax_across(c, x, axes(dim, x.ndim), logarithm)
    dtype = x.dtype

    def write(k: Kernel, out: Strided, row: Row) -> None:
        values = row.held(lambda j: k.element(x, [*row.at, j]))
        peak = row.largest(lambda j: values[j])
        if logarithm:
            total = row.sum(lambda j: exp_of_less(k, values[j] - peak, dtype))
            shift = k.named(log(k, total, dtype), dtype)
            row.each(lambda j: k.write(out, [*row.at, j], (values[j] - peak) - shift))
            return
        row.each(lambda j: k.store(values, exp_of_less(k, values[j] - peak, dtype), j))
        total = row.sum(lambda j: values[j])
        row.each(lambda j: k.write(out, [*row.at, j], values[j] / total))

    return _along_rows(c, x, dim, write)


def _softmax_across(c: Call, x: Array, over: tuple[int, ...], logarithm: bool) -> Array:
    dtype = x.dtype
    peak = reduced(c.program, x, over, "max")
    shifted = c.map(lambda v, p: v - p, x, peak)
    e = c.stored(c.kernel_map(lambda k, v: exp_of_less(k, v, dtype), shifted, cost=20))
    total = reduced(c.program, e, over, "sum")
    if not logarithm:
        return c.map(lambda v, s: v / s, e, total)
    return c.kernel_map(lambda k, v, s: v - log(k, s, dtype), shifted, total, cost=20)


@rule("_safe_softmax")
def safe_softmax(c: Call, x: Array, dim: int, dtype: Any = None) -> Array:
    """A row of -inf alone is zero."""
    x = c.stored(operand(x, c.dtype))
    least, zero = t.const(-math.inf, x.dtype), t.const(0, x.dtype)
    masked = reduced(c.program, c.map(lambda v: t.eq(v, least), x, dtype=DType.bool), axes(dim, x.ndim), "all")
    filled = c.map(t.select, masked, cast(0, x.dtype), x, dtype=x.dtype)
    return c.map(lambda m, v: t.select(m, zero, v), masked, _softmax(c, filled, dim, logarithm=False), dtype=x.dtype)


@rule("_softmax_backward_data")
def softmax_backward(c: Call, grad: Array, y: Array, dim: int, dtype: Any) -> Array:
    grad, y = wide(grad), wide(y)
    total = reduced(c.program, c.map(lambda g, v: g * v, grad, y), axes(dim, y.ndim), "sum")
    return c.map(lambda g, v, s: v * (g - s), grad, y, total)


@rule("_log_softmax_backward_data")
def log_softmax_backward(c: Call, grad: Array, y: Array, dim: int, dtype: Any) -> Array:
    grad, y = wide(grad), wide(y)
    total = reduced(c.program, grad, axes(dim, y.ndim), "sum")
    return c.kernel_map(lambda k, g, v, s: g - exp_of_less(k, v, y.dtype) * s, grad, y, total, cost=20)


@rule("logsumexp")
def logsumexp(c: Call, x: Array, over: tuple[int, ...], keepdim: bool = False) -> Array:
    x = c.stored(operand(x, c.dtype))
    at, dtype = axes(over, x.ndim), x.dtype
    zero = t.const(0, dtype)
    infinite = t.const(math.inf, dtype)
    peak = reduced(c.program, x, at, "max")
    peak = c.stored(c.map(lambda p: t.select(t.eq(t.abs_(p), infinite), zero, p), peak))
    e = c.kernel_map(lambda k, v, p: exp(k, v - p, dtype), x, peak, cost=20)
    total = reduced(c.program, e, at, "sum")
    return _kept(c, c.kernel_map(lambda k, s, p: log(k, s, dtype) + p, total, peak, cost=20), at, keepdim)
