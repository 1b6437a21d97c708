"""Rules of matrix products."""

from __future__ import annotations

from fairlead.ir import Dim, DType
from fairlead.ir.dims import product
from fairlead_onnx._call import Call
from fairlead_onnx._creation import filled
from fairlead_onnx._quantised import dequantize
from fairlead_onnx._rules import rule
from fairlead_onnx._writer import CONTRIB, Declined, Quantised, Ref, Writer

__all__ = ["matmul"]


def matmul(w: Writer, a: Ref, b: Ref, *, ta: bool = False, tb: bool = False, alpha: float = 1.0, rank: int = 4) -> Ref:
    """``alpha * op(a) @ op(b)`` over the last two dimensions of operands of one rank.

    One fused op where the runtime has it.
    """
    single = a.dtype is DType.f32 or alpha == 1.0  # the factor of a fused product is an attribute, in f32
    if w.target.contrib and single and (ta or tb or alpha != 1.0):
        w.kernel_dtype("FusedMatMul", a.dtype)
        return w.op("FusedMatMul", a, b, domain=CONTRIB, alpha=float(alpha), transA=int(ta), transB=int(tb))
    perm = (*range(rank - 2), rank - 1, rank - 2)
    if alpha != 1.0:
        a = w.same("Mul", a, w.number(alpha, a.dtype))
    a = w.op("Transpose", a, perm=perm) if ta else a
    b = w.op("Transpose", b, perm=perm) if tb else b
    return w.same("MatMul", a, b)


@rule("aten.mm.default", "aten.bmm.default")
def product_of_two(c: Call) -> Ref:
    if _has_no_terms(c, 0, 1):
        return filled(c.writer, c.operand(0, c.dtype), c.out.shape)
    return c.writer.same("MatMul", *_apart(c, c.tensor(0, c.dtype), c.tensor(1, c.dtype), weight=1))


@rule("aten._grouped_mm.default", "transformers.grouped_mm_fallback.default")
def products_of_groups(c: Call) -> Ref:
    """Rows from one offset to the next, by the matrix of their group: a product each, whose size the offsets decide.

    Zeros behind the last offset, where transformers has zeros and ATen anything.
    """
    x, matrices, offsets = c.args[:3]
    groups = c.type(1).shape[0] if c.rank(1) == 3 else None
    if c.rank(0) != 2 or not isinstance(groups, int) or offsets is None or any(a is not None for a in c.args[3:]):
        raise Declined("products of groups other than of rows with matrices of a known number")
    if not 0 < groups <= _MOST_GROUPS:
        raise Declined(f"products of {groups} groups")
    w, rows = c.writer, c.operand(x, c.dtype)
    stacked, ends = c.operand(matrices, c.dtype), c.operand(offsets, DType.i64)
    first = w.ints(0)
    products = []
    for group in range(groups):
        last = w.op("Slice", ends, w.ints(group), w.ints(group + 1), w.ints(0))
        of_group = w.op("Slice", rows, first, last, w.ints(0))
        matrix = w.op("Squeeze", w.op("Slice", stacked, w.ints(group), w.ints(group + 1), w.ints(0)), w.ints(0))
        products.append(w.same("MatMul", of_group, matrix))
        first = last
    left = w.op("Sub", w.dim(c.type(0).shape[0]), first)
    shape = w.op("Concat", left, w.dim(c.type(1).shape[2]), axis=0)
    zeros = w.op("Expand", w.number(0.0, c.dtype), shape)
    return w.op("Concat", *products, zeros, axis=0)


_MOST_GROUPS = 256
"""Each group is five steps of the program."""


@rule("aten.mv.default", "aten.dot.default")
def product_with_vector(c: Call) -> Ref:
    if _has_no_terms(c, 0, 1):
        return filled(c.writer, c.operand(0, c.dtype), c.out.shape)
    return c.writer.same("MatMul", c.tensor(0, c.dtype), c.tensor(1, c.dtype))


@rule("aten.addmm.default", "aten.baddbmm.default")
def add_product(c: Call) -> Ref:
    w = c.writer
    beta, alpha = c.number(3), c.number(4)
    if _has_no_terms(c, 1, 2):
        out = filled(w, c.operand(0, c.dtype), c.out.shape)
    else:
        out = w.same("MatMul", *_apart(c, c.tensor(1, c.dtype), c.tensor(2, c.dtype), weight=2))
    if alpha != 1:
        out = w.same("Mul", out, c.operand(alpha, c.dtype))
    if beta == 0:
        return out
    bias = c.tensor(0, c.dtype)
    return w.same("Add", out, bias if beta == 1 else w.same("Mul", bias, c.operand(beta, c.dtype)))


@rule("aten.linear.default")
def linear(c: Call) -> Ref:
    """``x @ weight.T + bias``.

    The weight is used as it lies, so that the runtime packs it without a transposed copy. Gemm adds a bias on its way,
    but takes matrices only: without a bias the batched product saves the copies that ONNX Runtime makes to reshape.
    """
    if _has_no_terms(c, 0, 1):
        raise Declined("a linear layer without inputs")
    if c.rank(1) != 2:
        raise Declined("linear with a weight that is no matrix")
    w = c.writer
    x, weight, bias = c.tensor(0, c.dtype), c.tensor(1, c.dtype), c.maybe(2, c.dtype)
    if not w.target.contrib:
        out = w.same("MatMul", x, w.op("Transpose", weight, perm=(1, 0)))
        return out if bias is None else w.same("Add", out, bias)
    shape = c.type(0).shape
    if (whole := _linear_of_bytes(c, x, weight, bias)) is not None:
        return whole
    if bias is None and len(shape) > 2:
        x, weight = _apart(c, x, weight, weight=1, transposed=True, rows=shape[:-1])
        return matmul(w, x, weight, tb=True, rank=len(shape))
    flat = x if len(shape) == 2 else w.reshape(x, (product(shape[:-1]), shape[-1]))
    flat, weight = _apart(c, flat, weight, weight=1, transposed=True)
    wide = w.kernel_dtype("Gemm", x.dtype)
    operands = [w.cast(r, wide) for r in (flat, weight, *([bias] if bias is not None else []))]
    out = w.cast(w.op("Gemm", *operands, transB=1), x.dtype)
    return out if len(shape) == 2 else w.reshape(out, c.out.shape)


_ADDED = 16
"""Terms, a line of the cache of 64 bytes of f32."""

_ROWS, _COLUMNS = 32, 768
"""Of products of at least so many, the copies of the rows are worth it (docs/results/cpu-kernels.md)."""


def _apart(
    c: Call, a: Ref, b: Ref, *, weight: int, transposed: bool = False, rows: tuple[Dim, ...] = ()
) -> tuple[Ref, Ref]:
    """The operands of a product, with terms of zeros more where the rows of ``a`` would contend for the cache.

    ``weight`` is the argument that ``b`` stands for: a constant, whose copy the runtime makes once. ``rows`` are the
    dimensions of ``a`` but for the last, by default one, of all rows of the result.
    """
    w, (*batch, terms, columns) = c.writer, c.type(weight).shape
    if transposed:
        terms, columns = columns, terms
    rows = rows or (product(c.out.shape[:-1]),)
    count = product(rows)
    if not (w.target.contends and a.dtype is DType.f32 and w.is_fixed(b)) or batch:
        return a, b
    if not (isinstance(terms, int) and isinstance(columns, int)) or 4 * terms % w.target.contends:
        return a, b
    if columns < _COLUMNS or (isinstance(count, int) and count < _ROWS):
        return a, b
    ends = (0, _ADDED) if transposed else (_ADDED, 0)
    zeros = w.op("Expand", w.number(0.0, DType.f32), w.shape((*rows, _ADDED)))
    return w.op("Concat", a, zeros, axis=-1), w.op("Pad", b, w.ints(0, 0, *ends))


def _linear_of_bytes(c: Call, x: Ref, weight: Ref, bias: Ref | None) -> Ref | None:
    """The product of quantised operands, as ONNX Runtime fuses it: each operand of Gemm is dequantised in front of it.

    The bias is a 32-bit integer in units of both scales together. None for operands that are not quantised so.
    """
    w, shape = c.writer, c.type(0).shape
    a, b = w.quantised.get(x.name), w.quantised.get(weight.name)
    if a is None or b is None or a.axis is not None or b.axis not in (None, 0):
        return None
    flat = x
    if len(shape) != 2:
        flat = dequantize(w, a._replace(values=w.reshape(a.values, (product(shape[:-1]), shape[-1]))))
    operands = [flat, weight]
    if bias is not None:
        unit = w.same("Mul", a.scale, b.scale)
        steps = w.cast(w.same("Round", w.same("Div", bias, unit)), DType.i32)
        zero = None
        operands.append(dequantize(w, Quantised(steps, unit, zero, b.axis)))
    out = w.op("Gemm", *operands, transB=1)
    return out if len(shape) == 2 else w.reshape(out, c.out.shape)


def _has_no_terms(c: Call, *operands: int) -> bool:
    """Whether every element is a sum of nothing."""
    return any(0 in c.type(i).shape for i in operands)
