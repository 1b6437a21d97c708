"""Rules of normalisation layers, forward."""

from __future__ import annotations

from fairlead.ir import DType
from fairlead.ir.dims import product
from fairlead_onnx._call import Call
from fairlead_onnx._creation import filled
from fairlead_onnx._reductions import reduce
from fairlead_onnx._rules import rule
from fairlead_onnx._writer import Declined, Ref, Writer

__all__ = ["as_channels", "standardised"]


@rule("aten.native_layer_norm.default")
def layer_norm(c: Call) -> tuple[Ref | None, ...]:
    w, x = c.writer, c.tensor(0)
    _refuse_empty(c)
    normal = len(c.ints(1))
    shape = c.type(0).shape
    scale, shift = c.maybe(2, x.dtype), c.maybe(3, x.dtype)
    avoided = "LayerNormalization" in w.target.avoided and (c.wants(1) or c.wants(2))
    if avoided or x.dtype is not DType.f32:  # runtimes give the statistics of f64 in f32
        axes = tuple(range(len(shape) - normal, len(shape)))
        y, mean, rstd = standardised(w, x, axes, float(c.number(4)))
        return scaled(w, y, scale, shift), mean, rstd
    scale = scale or filled(w, w.number(1.0, x.dtype), shape[len(shape) - normal :])
    outs = 3 if c.wants(2) else 2 if c.wants(1) else 1
    refs = w.ops(
        "LayerNormalization", x, scale, shift, dtypes=[x.dtype] * outs, axis=-normal, epsilon=float(c.number(4))
    )
    return (*refs, None, None)[:3]


@rule("aten.rms_norm.default", "aten._fused_rms_norm.default")
def rms_norm(c: Call) -> Ref | tuple[Ref | None, ...]:
    w, x = c.writer, c.tensor(0)
    normal, eps = len(c.ints(1)), c.args[3]
    if w.target.contrib and x.dtype is DType.f32 and not c.wants(1) and isinstance(eps, (int, float)):
        scale = c.maybe(2, x.dtype) or filled(w, w.number(1.0, x.dtype), c.type(0).shape[c.rank(0) - normal :])
        # ONNX Runtime has it in ONNX's own domain, where ONNX has no such op
        y = w.op("SimplifiedLayerNormalization", x, scale, dtype=x.dtype, axis=-normal, epsilon=float(eps))
        return y if len(c.node.results) == 1 else (y, None)
    axes = tuple(range(c.rank(0) - normal, c.rank(0)))
    mean = reduce(w, "ReduceMean", w.same("Mul", x, x), axes)
    epsilon = w.number(float(eps) if isinstance(eps, (int, float)) else _machine_epsilon(c.type(0).dtype), x.dtype)
    rstd = w.same("Reciprocal", w.same("Sqrt", w.same("Add", mean, epsilon)))
    y = scaled(w, w.same("Mul", x, rstd), c.maybe(2, x.dtype), None)
    return y if len(c.node.results) == 1 else (y, rstd)


def _machine_epsilon(dtype: DType) -> float:
    return {DType.f16: 2.0**-10, DType.bf16: 2.0**-7, DType.f32: 2.0**-23}.get(dtype, 2.0**-52)


def standardised(w: Writer, x: Ref, axes: tuple[int, ...], eps: float) -> tuple[Ref, Ref, Ref]:
    """``(x - mean) * rstd`` over ``axes``, the mean and the reciprocal standard deviation, dimensions kept."""
    mean = reduce(w, "ReduceMean", x, axes)
    centred = w.same("Sub", x, mean)
    variance = reduce(w, "ReduceMean", w.same("Mul", centred, centred), axes)
    rstd = w.same("Reciprocal", w.same("Sqrt", w.same("Add", variance, w.number(eps, x.dtype))))
    return w.same("Mul", centred, rstd), mean, rstd


def scaled(w: Writer, y: Ref, scale: Ref | None, shift: Ref | None) -> Ref:
    """``y * scale + shift``, either absent."""
    if scale is not None:
        y = w.same("Mul", y, scale)
    return y if shift is None else w.same("Add", y, shift)


def as_channels(w: Writer, ref: Ref | None, rank: int) -> Ref | None:
    """A vector over channels, shaped to broadcast along dimension 1."""
    return None if ref is None else w.op("Reshape", ref, w.ints(1, -1, *[1] * (rank - 2)))


@rule("aten.native_group_norm.default")
def group_norm(c: Call) -> tuple[Ref | None, ...]:
    """Arguments: input, weight, bias, N, C, HxW, groups, eps."""
    _refuse_empty(c)
    w, x, shape = c.writer, c.tensor(0), c.type(0).shape
    groups = c.ints(6)[0]
    channels = shape[1]
    if not isinstance(channels, int):
        raise Declined("group_norm of a dynamic number of channels")
    per_group = product((channels // groups, *shape[2:]))
    grouped = w.reshape(x, (shape[0], groups, per_group))
    y, mean, rstd = standardised(w, grouped, (2,), float(c.number(7)))
    y = w.reshape(y, shape)
    scale, shift = (as_channels(w, c.maybe(i, x.dtype), len(shape)) for i in (1, 2))
    flat = [w.op("Squeeze", r, w.ints(2)) for r in (mean, rstd)]
    return scaled(w, y, scale, shift), flat[0], flat[1]


@rule("aten._native_batch_norm_legit_no_training.default")
def batch_norm(c: Call) -> tuple[Ref | None, ...]:
    """Batch normalisation by running statistics; the saved ones are empty here.

    Arguments: input, weight, bias, running mean, running variance, momentum, eps.
    """
    _refuse_empty(c)
    w, x = c.writer, c.tensor(0)
    mean, variance = c.tensor(3, x.dtype), c.tensor(4, x.dtype)
    channels = c.type(3).shape
    scale = c.maybe(1, x.dtype) or filled(w, w.number(1.0, x.dtype), channels)
    shift = c.maybe(2, x.dtype) or filled(w, w.number(0.0, x.dtype), channels)
    if "BatchNormalization" in w.target.avoided:
        deviation = w.same("Sqrt", w.same("Add", variance, w.number(float(c.number(6)), x.dtype)))
        scale = w.same("Div", scale, deviation)
        shift = w.same("Sub", shift, w.same("Mul", mean, scale))
        y = scaled(w, x, as_channels(w, scale, c.rank(0)), as_channels(w, shift, c.rank(0)))
    else:
        w.kernel_dtype("BatchNormalization", x.dtype)
        y = w.op("BatchNormalization", x, scale, shift, mean, variance, epsilon=float(c.number(6)))
    return y, *(w.const((), x.dtype) if c.wants(i) else None for i in (1, 2))


@rule("aten._native_batch_norm_legit_functional.default")
def batch_norm_functional(c: Call) -> tuple[Ref | None, ...]:
    """Arguments: input, weight, bias, running mean, running variance, training, momentum, eps.

    Results: output, saved mean, saved rstd, new running mean, new running variance.
    """
    _refuse_empty(c)
    w, x, rank = c.writer, c.tensor(0), c.rank(0)
    if not c.args[5]:
        raise Declined("batch normalisation that does not train")
    axes = (0, *range(2, rank))
    mean, variance = _moments(w, x, axes)
    rstd = w.same("Reciprocal", w.same("Sqrt", w.same("Add", variance, w.number(float(c.number(7)), x.dtype))))
    y = w.same("Mul", w.same("Sub", x, mean), rstd)
    y = scaled(w, y, as_channels(w, c.maybe(1, x.dtype), rank), as_channels(w, c.maybe(2, x.dtype), rank))
    mean, variance, rstd = (w.op("Reshape", r, w.ints(-1)) for r in (mean, variance, rstd))
    momentum = float(c.number(6))
    new_mean = _moving(w, c.tensor(3, x.dtype), mean, momentum)
    new_variance = _moving(w, c.tensor(4, x.dtype), _unbiased(c, variance, axes), momentum)
    return y, mean, rstd, new_mean, new_variance


def _moments(w: Writer, x: Ref, axes: tuple[int, ...]) -> tuple[Ref, Ref]:
    mean = reduce(w, "ReduceMean", x, axes)
    centred = w.same("Sub", x, mean)
    return mean, reduce(w, "ReduceMean", w.same("Mul", centred, centred), axes)


def _moving(w: Writer, old: Ref, new: Ref, momentum: float) -> Ref:
    kept = w.same("Mul", old, w.number(1 - momentum, old.dtype))
    return w.same("Add", kept, w.same("Mul", new, w.number(momentum, old.dtype)))


def _unbiased(c: Call, variance: Ref, axes: tuple[int, ...]) -> Ref:
    w = c.writer
    count = product(c.type(0).shape[a] for a in axes)
    if isinstance(count, int):
        return w.same("Mul", variance, w.number(count / (count - 1) if count > 1 else float("nan"), variance.dtype))
    number = w.cast(w.scalar(w.dim(count)), variance.dtype)
    return w.same("Mul", variance, w.same("Div", number, w.same("Sub", number, w.number(1.0, variance.dtype))))


def _refuse_empty(c: Call) -> None:
    if 0 in c.type(0).shape:
        raise Declined("the normalisation of an empty tensor")
