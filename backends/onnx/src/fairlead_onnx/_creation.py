"""Rules that make tensors from numbers."""

from __future__ import annotations

from fairlead.ir import DType
from fairlead_onnx._call import Call, as_dim
from fairlead_onnx._rules import rule
from fairlead_onnx._writer import Declined, Ref, Writer, computed

__all__ = ["filled", "iota"]

_FEW = 4096
"""So many numbers may be constants of the model."""


@rule("aten.full.default")
def full(c: Call) -> Ref:
    return filled(c.writer, c.operand(c.args[1], c.dtype), c.out.shape)


@rule("aten.full_like.default")
def full_like(c: Call) -> Ref:
    return filled(c.writer, c.operand(c.args[1], c.dtype), c.out.shape)


@rule("aten.zeros.default", "aten.zeros_like.default", "aten.new_zeros.default")
def zeros(c: Call) -> Ref:
    return filled(c.writer, c.operand(0, c.dtype), c.out.shape)


@rule("aten.ones.default", "aten.ones_like.default", "aten.new_ones.default")
def ones(c: Call) -> Ref:
    return filled(c.writer, c.operand(1, c.dtype), c.out.shape)


@rule("aten.scalar_tensor.default")
def scalar_tensor(c: Call) -> Ref:
    return c.operand(c.args[0], c.dtype)


def filled(w: Writer, value: Ref, shape: tuple[int | str, ...]) -> Ref:
    """A tensor of one number everywhere."""
    if not shape:
        return value
    wide = w.kernel_dtype("Expand", value.dtype)
    return w.cast(w.op("Expand", w.cast(value, wide), w.shape(shape)), value.dtype)


@rule("aten.arange.start_step")
def arange(c: Call) -> Ref:
    """``start + step * i``: the count comes from the type, since a runtime counts floats by other rules than torch.

    Whole numbers are counted as integers, which have no -0. Source of the other types: at::acc_type on the CPU.
    """
    w, start, step = c.writer, c.args[0], c.args[2]
    dtype = DType.i64 if not c.dtype.is_floating or _is_whole(start, step) else _accumulated(c.out.dtype)
    if dtype not in w.target.dtypes:
        if isinstance(count := c.out.shape[0], int) and count <= _FEW:
            first, by = c.number(0), c.number(2)
            return w.const([first + i * by for i in range(count)], c.dtype)
        raise Declined(f"fractions counted in {dtype}, which {w.target.name} does not compute in")
    index = w.cast(iota(w, c.out.shape[0]), dtype)
    if step != 1:
        index = w.same("Mul", index, c.operand(step, dtype))
    return index if start == 0 and dtype is DType.i64 else w.same("Add", index, c.operand(start, dtype))


def _is_whole(*numbers: object) -> bool:
    return all(not isinstance(n, float) or (n.is_integer() and abs(n) < 2**53) for n in numbers)


def _accumulated(dtype: DType) -> DType:
    return DType.f64 if dtype is DType.f32 else computed(dtype)


@rule("aten.arange.default")
def arange_from_zero(c: Call) -> Ref:
    return c.writer.cast(iota(c.writer, as_dim(c.out.shape[0], c.node.op)), c.dtype)


def iota(w: Writer, length: int | str) -> Ref:
    """0, 1, 2, ... as 64-bit integers."""
    end = w.number(length, DType.i64) if isinstance(length, int) else w.scalar(w.dim(length))
    return w.op("Range", w.number(0, DType.i64), end, w.number(1, DType.i64))
