"""Rules of normalisations: ``(x - mean) * rstd * weight + bias``, in f32 for halves."""

from __future__ import annotations

from typing import Any

from fairlead.ir import Dim, DType, dims
from fairlead_tvm import _tvm as t
from fairlead_tvm._arrays import Array, Strided
from fairlead_tvm._call import Call
from fairlead_tvm._functions import sqrt
from fairlead_tvm._kernel import Kernel
from fairlead_tvm._numbers import cast, constant, wide
from fairlead_tvm._reduce import reduced
from fairlead_tvm._reductions import mean_of
from fairlead_tvm._rows import Row, each_row
from fairlead_tvm._rules import rule
from fairlead_tvm._views import reshaped

__all__ = ["column"]


def _rows(c: Call, x: Array, count: int) -> Array:
    """``x`` as a matrix whose rows are its last ``count`` dimensions."""
    split = x.ndim - count
    return reshaped(c.program, x, (dims.product(x.shape[:split]), dims.product(x.shape[split:])))


def _flat(c: Call, x: Array | None) -> Array | None:
    return None if x is None else reshaped(c.program, wide(x), (dims.product(x.shape),))


def _normalised(
    c: Call, x: Array, weight: Array | None, bias: Array | None, eps: float, *, centred: bool = True
) -> Strided:
    """Each row of a matrix, less its mean where that is asked for, over its deviation."""
    x = c.stored(x) if x.products else x
    dtype = x.dtype

    def body(k: Kernel, out: Strided, row: Row) -> None:
        size = t.cast(t.index(k.size(row.size)), dtype)
        values = row.held(lambda j: k.element(x, [*row.at, j]))
        mean = k.named(row.sum(lambda j: values[j]) / size, dtype) if centred else t.const(0.0, dtype)
        spread = row.sum(lambda j: (values[j] - mean) * (values[j] - mean))
        rstd = k.named(t.const(1.0, dtype) / sqrt(spread / size + t.const(eps, dtype)), dtype)

        def finish(j: Any) -> None:
            value = (values[j] - mean) * rstd
            value = value if weight is None else value * k.element(weight, [j])
            k.write(out, [*row.at, j], value if bias is None else value + k.element(bias, [j]))

        row.each(finish)

    return c.program.kernel(x.shape, dtype, lambda k, out: each_row(k, out, dtype, lambda row: body(k, out, row)))


def _statistics(c: Call, x: Array, over: tuple[int, ...], eps: float) -> tuple[Array, Array]:
    """The mean and the reciprocal deviation, in f64 for f32."""
    mean = c.stored(mean_of(c, x, over))
    squares = c.map(lambda v, m: (v - m) * (v - m), cast(x, mean.dtype), mean)
    return mean, _rstd(c, mean_of(c, squares, over), eps)


def _rstd(c: Call, var: Array, eps: float) -> Array:
    one = t.const(1.0, var.dtype)
    return c.map(lambda v, e: one / sqrt(v + e), var, constant(eps, var.dtype), cost=6)


@rule("native_layer_norm")
def layer_norm(
    c: Call, x: Array, shape: tuple[Dim, ...], weight: Array | None, bias: Array | None, eps: float
) -> tuple[Array | None, ...]:
    x = wide(x)
    x = c.stored(x) if x.cost else x
    rows = _rows(c, x, len(shape))
    out = reshaped(c.program, _normalised(c, rows, _flat(c, weight), _flat(c, bias), eps), x.shape)
    if not (c.wants(1) or c.wants(2)):
        return out, None, None
    mean, rstd = _statistics(c, rows, (1,), eps)
    return out, *(reshaped(c.program, s, c.shape(i)) if c.wants(i) else None for i, s in ((1, mean), (2, rstd)))


def _root_mean_square(
    c: Call, x: Array, shape: tuple[Dim, ...], weight: Array | None, eps: float | None
) -> tuple[Array, Array, float]:
    eps = {DType.f32: 2.0**-23, DType.f64: 2.0**-52, DType.f16: 2.0**-10}.get(x.dtype, 2.0**-7) if eps is None else eps
    x = wide(x)
    x = c.stored(x) if x.cost else x
    rows = _rows(c, x, len(shape))
    out = _normalised(c, rows, _flat(c, weight), None, eps, centred=False)
    return reshaped(c.program, out, x.shape), rows, eps


@rule("_fused_rms_norm")
def fused_rms_norm(
    c: Call, x: Array, shape: tuple[Dim, ...], weight: Array | None, eps: float | None
) -> tuple[Array, Array | None]:
    out, rows, eps = _root_mean_square(c, x, shape, weight, eps)
    if not c.wants(1):
        return out, None
    squares = c.map(lambda v: v * v, cast(rows, DType.f64))
    return out, reshaped(c.program, _rstd(c, mean_of(c, squares, (1,)), eps), c.shape(1))


@rule("rms_norm")
def rms_norm(c: Call, x: Array, shape: tuple[Dim, ...], weight: Array | None, eps: float | None) -> Array:
    return _root_mean_square(c, x, shape, weight, eps)[0]


@rule("native_group_norm")
def group_norm(
    c: Call,
    x: Array,
    weight: Array | None,
    bias: Array | None,
    n: Dim,
    channels: int,
    size: Dim,
    groups: int,
    eps: float,
) -> tuple[Array | None, ...]:
    shape, x = x.shape, wide(x)
    grouped = reshaped(c.program, x, (n, groups, dims.mul(channels // groups, size)))
    mean, rstd = (c.stored(s) for s in _statistics(c, grouped, (2,), eps))
    normal = c.map(lambda v, m, r: (v - m) * r, cast(grouped, mean.dtype), mean, rstd)
    out = reshaped(c.program, cast(normal, x.dtype), (n, channels, size))
    out = _affine(c, out, *(None if a is None else reshaped(c.program, a, (channels, 1)) for a in (weight, bias)))
    kept = (reshaped(c.program, s, c.shape(i)) if c.wants(i) else None for i, s in ((1, mean), (2, rstd)))
    return reshaped(c.program, out, shape), *kept


def _affine(c: Call, x: Array, weight: Array | None, bias: Array | None) -> Array:
    x = x if weight is None else c.map(lambda v, w: v * w, x, cast(weight, x.dtype))
    return x if bias is None else c.map(lambda v, b: v + b, x, cast(bias, x.dtype))


def column(c: Call, x: Array, rank: int) -> Array:
    """A number for each channel, to be spread over the dimensions of a batch."""
    return reshaped(c.program, x, (x.shape[0], *(1,) * (rank - 2)))


@rule("_native_batch_norm_legit_no_training")
def batch_norm_fixed(
    c: Call, x: Array, weight: Array | None, bias: Array | None, mean: Array, var: Array, momentum: float, eps: float
) -> tuple[Array, Array, Array]:
    """A factor and a summand for each channel, which are computed before."""
    x = wide(x)
    factor = _rstd(c, cast(var, DType.f64), eps)
    if weight is not None:
        factor = c.map(lambda f, w: f * w, factor, cast(weight, DType.f64))
    factor = c.stored(factor)
    less = c.map(lambda m, f: m * f, cast(mean, DType.f64), factor)
    offset = c.map(lambda v: t.const(0.0, DType.f64) - v, less)
    if bias is not None:
        offset = c.map(lambda b, v: b - v, cast(bias, DType.f64), less)
    factor, offset = (column(c, c.stored(cast(a, x.dtype)), x.ndim) for a in (factor, offset))
    nothing = constant(0, x.dtype)
    return c.map(lambda v, f, o: v * f + o, x, factor, offset), nothing, nothing


@rule("native_layer_norm_backward")
def layer_norm_backward(
    c: Call,
    grad: Array,
    x: Array,
    shape: tuple[Dim, ...],
    mean: Array,
    rstd: Array,
    weight: Array | None,
    bias: Array | None,
    wanted: tuple[bool, ...],
) -> tuple[Array | None, ...]:
    whole = x.shape
    split = x.ndim - len(shape)
    kept = dims.product(whole[split:])
    grad, x = (_rows(c, c.stored(wide(a)), len(shape)) for a in (grad, x))
    mean, rstd = (c.stored(reshaped(c.program, wide(s), (x.shape[0], 1))) for s in (mean, rstd))
    normal = c.map(lambda v, m, r: (v - m) * r, x, mean, rstd)
    inner = grad if weight is None else c.map(lambda g, w: g * w, grad, reshaped(c.program, wide(weight), (kept,)))
    of_input = _through(c, inner, normal, rstd, (1,)) if wanted[0] else None
    of_weight = _summed(c, c.map(lambda g, v: g * v, grad, normal)) if wanted[1] else None
    of_bias = _summed(c, grad) if wanted[2] else None
    shapes = whole, whole[split:], whole[split:]
    return tuple(
        None if a is None else reshaped(c.program, a, s)
        for a, s in zip((of_input, of_weight, of_bias), shapes, strict=True)
    )


def _summed(c: Call, x: Array) -> Array:
    return reduced(c.program, x, (0,), "sum")


def _through(c: Call, grad: Array, normal: Array, rstd: Array, over: tuple[int, ...]) -> Array:
    """The gradient of x of a normalisation by x's own statistics, given that of the normalised x."""
    mean = c.stored(cast(mean_of(c, grad, over), grad.dtype))
    share = c.stored(cast(mean_of(c, c.map(lambda g, v: g * v, grad, normal), over), grad.dtype))
    return c.map(lambda r, g, m, v, s: r * (g - m - v * s), rstd, grad, mean, normal, share)


@rule("_fused_rms_norm_backward")
def rms_norm_backward(
    c: Call,
    grad: Array,
    x: Array,
    shape: tuple[Dim, ...],
    rstd: Array,
    weight: Array | None,
    wanted: tuple[bool, ...],
) -> tuple[Array | None, Array | None]:
    whole = x.shape
    split = x.ndim - len(shape)
    kept = dims.product(whole[split:])
    grad, x = (_rows(c, c.stored(wide(a)), len(shape)) for a in (grad, x))
    rstd = c.stored(reshaped(c.program, wide(rstd), (x.shape[0], 1)))
    normal = c.map(lambda v, r: v * r, x, rstd)
    inner = grad if weight is None else c.map(lambda g, w: g * w, grad, reshaped(c.program, wide(weight), (kept,)))
    mean = c.stored(cast(mean_of(c, c.map(lambda g, v: g * v, inner, normal), (1,)), grad.dtype))
    of_weight = _summed(c, c.map(lambda g, v: g * v, grad, normal)) if wanted[1] else None
    of_input = c.map(lambda r, g, v, m: r * (g - v * m), rstd, inner, normal, mean) if wanted[0] else None
    return (
        None if of_input is None else reshaped(c.program, of_input, whole),
        None if of_weight is None else reshaped(c.program, of_weight, whole[split:]),
    )
