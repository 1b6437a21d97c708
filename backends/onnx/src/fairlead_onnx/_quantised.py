"""Rules of quantised values: QuantizeLinear and DequantizeLinear, which runtimes fuse into kernels of bytes."""

from __future__ import annotations

from fairlead.ir import DType
from fairlead_onnx._call import Call
from fairlead_onnx._rules import rule
from fairlead_onnx._writer import Declined, Quantised, Ref, Writer

__all__ = ["dequantize"]

_RANGES = {DType.u8: (0, 255), DType.i8: (-128, 127)}
"""The bounds of the types that the runtimes have kernels for."""

_SHIFT = 128
"""Between a signed byte and the unsigned one that stands for it."""


@rule("quantized_decomposed.quantize_per_tensor.default")
def quantize_per_tensor(c: Call) -> Ref:
    """Arguments: input, scale, zero point, least, largest, type."""
    return _quantized(c, c.out.dtype)


@rule("quantized_decomposed.quantize_per_tensor.tensor")
def quantize_by_tensors(c: Call) -> Ref:
    """The same, scale and zero point in tensors of one element."""
    _refuse_part(c, 3)
    scale, zero = (c.writer.scalar(ref) for ref in (c.tensor(1, DType.f32), c.tensor(2, c.out.dtype)))
    return c.writer.op("QuantizeLinear", c.exact(0, DType.f32), scale, zero, dtype=c.out.dtype)


@rule("quantized_decomposed.quantize_per_channel.default")
def quantize_per_channel(c: Call) -> Ref:
    """Arguments: input, scales, zero points, axis, least, largest, type."""
    _refuse_part(c, 4)
    scale, zero = c.tensor(1, DType.f32), c.tensor(2, c.out.dtype)
    return c.writer.op("QuantizeLinear", c.exact(0, DType.f32), scale, zero, dtype=c.out.dtype, axis=c.axis(3))


@rule("quantized_decomposed.dequantize_per_tensor.default")
def dequantize_per_tensor(c: Call) -> Ref:
    """Arguments: input, scale, zero point, least, largest, type, type of the result."""
    w, dtype = c.writer, _stored(c)
    scale, zero = w.number(c.number(1), DType.f32), w.number(int(c.number(2)), dtype)
    return _dequantized(c, Quantised(c.tensor(0), scale, zero, None))


@rule("quantized_decomposed.dequantize_per_tensor.tensor")
def dequantize_by_tensors(c: Call) -> Ref:
    scale, zero = (c.writer.scalar(ref) for ref in (c.tensor(1, DType.f32), c.tensor(2, _stored(c))))
    return _dequantized(c, Quantised(c.tensor(0), scale, zero, None))


@rule("quantized_decomposed.dequantize_per_channel.default")
def dequantize_per_channel(c: Call) -> Ref:
    """Arguments: input, scales, zero points or none, axis, least, largest, type, type of the result."""
    scale, zero = c.tensor(1, DType.f32), c.maybe(2, _stored(c))
    return _dequantized(c, Quantised(c.tensor(0), scale, zero, c.axis(3)))


@rule("aten.fake_quantize_per_tensor_affine_cachemask.default")
def fake_quantize(c: Call) -> tuple[Ref | None, ...]:
    """Arguments: input, scale, zero point, least, largest. Results: the input as it would come back, and what was kept.

    Source: fake_quantize_tensor_cachemask_kernel_cpu in ATen/native/quantized/cpu/kernels/QuantizedOpKernels.cpp.
    """
    w, zero, (least, largest) = c.writer, int(c.number(2)), _bounds(c, 3)
    scale = w.number(c.number(1), DType.f32)
    dtype = next(
        (d for d, (low, high) in _RANGES.items() if low <= min(least, zero) <= max(largest, zero) <= high), None
    )
    if dtype is None:
        raise Declined(f"fake quantising to {least} to {largest} around {zero}")
    values = kept = None
    if c.wants(0):
        read = Quantised(_quantized(c, dtype), scale, w.number(zero, dtype), None)
        values = w.rounded(dequantize(w, read), c.out.dtype)
    if c.wants(1):
        place = w.same("Round", w.same("Div", c.exact(0, DType.f32), scale))
        low, high = (w.number(float(end - zero), DType.f32) for end in (least, largest))
        above = w.same("LessOrEqual", low, place, result=DType.bool)
        kept = w.op("And", above, w.same("LessOrEqual", place, high, result=DType.bool))
    return values, kept


def dequantize(w: Writer, read: Quantised) -> Ref:
    """``(values - zero) * scale``, in f32."""
    if w.target.saturates and read.values.dtype is DType.i8:
        read = _raised(w, read)
    axis = 1 if read.axis is None else read.axis  # which is nobody's, where there is one scale
    out = w.op("DequantizeLinear", read.values, read.scale, read.zero, dtype=DType.f32, axis=axis)
    w.quantised[out.name] = read
    return out


def _raised(w: Writer, read: Quantised) -> Quantised:
    """The same numbers of unsigned bytes: those that were quantised so, or, of an input, each byte and 128."""
    raised = w.unsigned.get(read.values.name)
    if raised is None:
        if w.producer(read.values) is not None:
            return read
        raised = _plus(w, read.values, _SHIFT, DType.u8)
    # without zero points, a zero for each scale
    zero = read.zero or w.cast(w.same("Mul", read.scale, w.number(0.0, DType.f32)), DType.i32)
    zero = _plus(w, zero, _SHIFT, DType.u8)
    return read._replace(values=raised, zero=zero)


def _plus(w: Writer, x: Ref, number: int, dtype: DType) -> Ref:
    wide = w.same("Add", w.cast(x, DType.i32), w.number(number, DType.i32))
    return w.cast(wide, dtype)


def _quantized(c: Call, dtype: DType) -> Ref:
    """``clamp(round(x / scale) + zero, least, largest)``; QuantizeLinear stops at the ends of the type itself.

    Torch multiplies by the inverse of the scale: where a quotient is halfway between two integers but for its rounding,
    the two may be one step apart.
    """
    w, x = c.writer, c.exact(0, DType.f32)
    scale, zero, bounds = c.number(1), int(c.number(2)), _bounds(c, 3)
    if dtype not in _RANGES:
        raise Declined(f"quantised values of {dtype}")
    if bounds != _RANGES[dtype]:
        x = w.op("Clip", x, *(w.number((end - zero) * scale, DType.f32) for end in bounds))
    factor = w.number(scale, DType.f32)
    if not (w.target.saturates and dtype is DType.i8):
        return w.op("QuantizeLinear", x, factor, w.number(zero, dtype), dtype=dtype)
    raised = w.op("QuantizeLinear", x, factor, w.number(zero + _SHIFT, DType.u8), dtype=DType.u8)
    out = _plus(w, raised, -_SHIFT, dtype)
    w.unsigned[out.name] = raised
    return out


def _dequantized(c: Call, read: Quantised) -> Ref:
    return c.writer.rounded(dequantize(c.writer, read), c.out.dtype)


def _bounds(c: Call, first: int) -> tuple[int, int]:
    return int(c.number(first)), int(c.number(first + 1))


def _refuse_part(c: Call, first: int) -> None:
    if _bounds(c, first) != _RANGES.get(c.out.dtype):
        raise Declined("quantising to a part of a type's range, with a scale that is not known")


def _stored(c: Call) -> DType:
    dtype = c.type(0).dtype
    if dtype not in _RANGES:
        raise Declined(f"quantised values of {dtype}")
    return dtype
