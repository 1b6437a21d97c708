"""Fourier transforms, as products with matrices of roots of unity.

Every runtime has these products, and is right and fast at them; their own transforms lose digits where a size is no
power of 2 (``defects/edges.py`` of fairlead-onnxrt and fairlead-openvino). A size that is a product is transformed by
its factors, with roots of unity between them (Cooley and Tukey, 1965), so that no matrix is large.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence

from fairlead.ir import Dim, Value, dims
from fairlead_onnx import _rules
from fairlead_onnx._call import Call
from fairlead_onnx._complex_arithmetic import times
from fairlead_onnx._complex_call import ComplexCall, rule
from fairlead_onnx._complex_ops import Ops, Pair
from fairlead_onnx._writer import Declined, Ref

__all__: list[str] = []

_TABLE = "fairlead_onnx.table"
"""A constant: its elements are the first argument, its shape that of the result."""

_PRODUCT = "fairlead_onnx.product"
"""The products of a matrix with each of many."""

_DENSE = 64
"""Up to this size a transform is one product."""

_LARGEST = 256
"""The largest factor of a size that is none."""

_FORWARD, _BACKWARD = -1, 1
"""The sign of the exponent."""


@_rules.rule(_TABLE)
def table(c: Call) -> Ref:
    (values,) = c.args
    assert isinstance(values, tuple)
    shape = tuple(d for d in c.out.shape if isinstance(d, int))
    return c.writer.const([v for v in values if isinstance(v, float)], c.dtype, shape)


@_rules.rule(_PRODUCT)
def product(c: Call) -> Ref:
    return c.writer.same("MatMul", c.tensor(0), c.tensor(1))


@rule("aten._fft_c2c.default")
def complex_to_complex(c: ComplexCall) -> Pair:
    axes = _axes(c)
    return _along_all(c, c.pair(0), axes, _FORWARD if c.args[3] else _BACKWARD, _scale(c, _sizes(c, axes)))


@rule("aten._fft_r2c.default")
def real_to_complex(c: ComplexCall) -> Pair:
    *others, last = axes = _axes(c)
    sizes = _sizes(c, axes)
    kept = sizes[-1] // 2 + 1 if c.args[3] else sizes[-1]
    half = _along(c.ops, Pair(c.value(0), 0.0), last, _FORWARD, _scale(c, sizes), kept)
    return _along_all(c, half, others, _FORWARD, 1.0)


@rule("aten._fft_c2r.default")
def complex_to_real(c: ComplexCall) -> Value:
    """The other half is made of conjugates; imaginary parts of what has none count for nothing."""
    *others, last = _axes(c)
    b, size = c.ops, c.args[3]
    if not isinstance(size, int) or c.shape(0)[last] != size // 2 + 1:
        raise Declined("a Fourier transform of a dynamic size, or of another than its input has")
    scale = _scale(c, [*_sizes(c, others), size])
    half = _along_all(c, _tensors(c), others, _BACKWARD, 1.0)
    rest = (b("aten.slice.Tensor", part, last, 1, (size + 1) // 2, 1) for part in half)
    re, im = (b("aten.flip.default", part, (last,)) for part in rest)
    whole = Pair(b("aten.cat.default", (half.re, re), last), b("aten.cat.default", (half.im, b.neg(im)), last))
    return b.tensor(_along(b, whole, last, _BACKWARD, scale, size).re)


def _tensors(c: ComplexCall) -> Pair:
    return Pair(*(c.ops.whole(part, c.shape(0)) for part in c.pair(0)))


def _axes(c: ComplexCall) -> list[int]:
    given = c.args[1]
    assert isinstance(given, tuple)
    return [axis % len(c.shape(0)) for axis in given if isinstance(axis, int)]


def _sizes(c: ComplexCall, axes: Sequence[int]) -> list[int]:
    sizes = [size for axis in axes if isinstance(size := c.shape(0)[axis], int)]
    if len(sizes) < len(axes):
        raise Declined("a Fourier transform of a dynamic size")
    return sizes


def _scale(c: ComplexCall, sizes: Sequence[int]) -> float:
    """What the result is multiplied with: 1, or 1 over the root of the number of elements, or 1 over that."""
    count, normalization = math.prod(sizes), c.args[2]
    assert isinstance(normalization, int)
    return (1.0, 1 / math.sqrt(count), 1 / count)[normalization]


def _along_all(c: ComplexCall, z: Pair, axes: Sequence[int], sign: int, scale: float) -> Pair:
    for axis, size in zip(axes, _sizes(c, axes), strict=True):
        z, scale = _along(c.ops, z, axis, sign, scale, size), 1.0
    return z


def _along(b: Ops, z: Pair, axis: int, sign: int, scale: float, kept: int) -> Pair:
    """The transform along one dimension, of which the first ``kept`` results are wanted."""
    shape = b.tensor(z.re).tensor.shape
    size, lead, tail = shape[axis], shape[:axis], shape[axis + 1 :]
    assert isinstance(size, int)
    found = _transformed(b, _viewed(b, z, (dims.product(lead), size, dims.product(tail))), sign, scale, kept)
    return _viewed(b, found, (*lead, kept, *tail))


def _viewed(b: Ops, z: Pair, shape: tuple[Dim, ...]) -> Pair:
    return Pair(*(b.view(part, shape) if isinstance(part, Value) else part for part in z))


def _transformed(b: Ops, z: Pair, sign: int, scale: float, kept: int) -> Pair:
    """The transforms of the columns of matrices: ``n = first * second`` is transformed by one factor, then the other.

    The number ``second * i + j`` of a column is in the i-th row of j columns; results come out the other way round.
    """
    before, size, after = b.tensor(z.re).tensor.shape
    assert isinstance(size, int)
    first = _factor(size)
    if first == size:
        return _dense(b, z, sign, scale, kept)
    second = size // first
    inner = _dense(b, _viewed(b, z, (before, first, dims.mul(second, after))), sign, scale, first)
    inner = times(b, _viewed(b, inner, (before, first, second, after)), _roots(b, sign, first, second))
    inner = _viewed(b, inner, (dims.mul(before, first), second, after))
    found = _viewed(b, _transformed(b, inner, sign, 1.0, second), (before, first, second, after))
    found = _viewed(b, Pair(*(b.permute(b.tensor(part), (0, 2, 1, 3)) for part in found)), (before, size, after))
    return found if kept == size else Pair(*(_rows(b, b.tensor(part), 0, kept) for part in found))


def _dense(b: Ops, z: Pair, sign: int, scale: float, kept: int) -> Pair:
    """One product, of the matrix that stands for a complex one with both parts above each other."""
    before, size, after = b.tensor(z.re).tensor.shape
    assert isinstance(size, int)
    roots = [[_root(sign * j * k, size) for j in range(size)] for k in range(kept)]
    left = [[scale * re for re, _ in row] for row in roots], [[scale * im for _, im in row] for row in roots]
    if z.im == 0.0:
        rows, operand = [*left[0], *left[1]], b.tensor(z.re)
    else:
        above = [[*re, *(-x for x in im)] for re, im in zip(*left, strict=True)]
        rows = above + [[*im, *re] for re, im in zip(*left, strict=True)]
        operand = b("aten.cat.default", (b.tensor(z.re), b.tensor(z.im)), 1)
    if after == 1:  # one product, and not one for each matrix
        flat = b.view(operand, (before, len(rows[0])))
        turned = _constant(b, list(zip(*rows, strict=True)), (len(rows[0]), len(rows)))
        found = b.view(b("aten.mm.default", flat, turned), (before, len(rows), 1))
    else:
        matrix = _constant(b, rows, (len(rows), len(rows[0])))
        found = b.emit(_PRODUCT, (matrix, operand), b.type((before, len(rows), after)))
    return Pair(_rows(b, found, 0, kept), _rows(b, found, kept, 2 * kept))


def _rows(b: Ops, x: Value, start: int, end: int) -> Value:
    return b("aten.slice.Tensor", x, 1, start, end, 1)


def _roots(b: Ops, sign: int, rows: int, columns: int) -> Pair:
    """Powers of a root of unity of ``rows * columns``: the products of the indices of rows and columns."""
    found = [[_root(sign * j * k, rows * columns) for k in range(columns)] for j in range(rows)]
    parts = ([[root[which] for root in row] for row in found] for which in range(2))
    return Pair(*(_constant(b, part, (rows, columns, 1)) for part in parts))


def _constant(b: Ops, rows: Sequence[Sequence[float]], shape: tuple[int, ...]) -> Value:
    return b.emit(_TABLE, (tuple(itertools.chain.from_iterable(rows)),), b.type(shape))


def _root(k: int, n: int) -> tuple[float, float]:
    """The cosine and the sine of k turns over n, exact at quarters of a turn."""
    quarters, rest = divmod(4 * (k % n), n)
    cos, sin = math.cos(math.pi / 2 * rest / n), math.sin(math.pi / 2 * rest / n)
    return ((cos, sin), (-sin, cos), (-cos, -sin), (sin, -cos))[quarters]


@functools.cache
def _factor(size: int) -> int:
    """The factor by which to split a size; the size itself where one product is enough, or there is no other way.

    Raises `Declined` where a factor is too large.
    """
    if size <= _DENSE:
        return size
    root = math.isqrt(size)
    small = (n for n in range(min(_DENSE, root), 1, -1) if size % n == 0)
    large = (n for n in range(_DENSE + 1, root + 1) if size % n == 0)
    found = next(itertools.chain(small, large), size)
    if found > _LARGEST:
        raise Declined(f"a Fourier transform whose size has the factor {found}")
    return found
