"""Fourier transforms, as products with matrices of roots of unity.

Every runtime has these products, and is right and fast at them. A size that is a product is transformed by its factors,
with roots of unity between them (Cooley and Tukey, 1965), so that no matrix is large.
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
from fairlead_onnx._complex_ops import Ops, Pair, Part
from fairlead_onnx._writer import Declined, Ref

__all__: list[str] = []

_TABLE = "fairlead_onnx.table"
"""A constant: its elements are the first argument, its shape that of the result."""

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
    size, rank = shape[axis], len(shape)
    assert isinstance(size, int)
    last = tuple(i for i in range(rank) if i != axis)
    back = tuple(rank - 1 if i == axis else i - (i > axis) for i in range(rank))
    rows = dims.product(shape[i] for i in last)
    flat = Pair(*(p if p == 0.0 else b.view(b.permute(b.tensor(p), (*last, axis)), (rows, size)) for p in z))
    found = _rows(b, flat, size, sign, scale, kept)
    return Pair(*(b.permute(b.view(b.tensor(p), (*(shape[i] for i in last), kept)), back) for p in found))


def _rows(b: Ops, z: Pair, size: int, sign: int, scale: float, kept: int) -> Pair:
    """The transforms of the rows of a matrix."""
    first = _factor(size)
    if first == size:
        return _dense(b, z, size, sign, scale, kept)
    second, rows = size // first, b.tensor(z.re).tensor.shape[0]

    def turned(part: Part, m: int, n: int, shape: tuple[Dim, ...]) -> Part:
        """Rows as matrices of m by n, transposed, in another shape."""
        if not isinstance(part, Value):
            return part
        return b.view(b.permute(b.view(part, (rows, m, n)), (0, 2, 1)), shape)

    columns = Pair(*(turned(part, first, second, (dims.mul(rows, second), first)) for part in z))
    inner = _dense(b, columns, first, sign, scale, first)
    inner = Pair(*(b.view(b.tensor(part), (rows, second, first)) for part in inner))
    inner = times(b, inner, _roots(b, sign, size, second, first))
    columns = Pair(*(turned(part, second, first, (dims.mul(rows, first), second)) for part in inner))
    found = _rows(b, columns, second, sign, 1.0, second)
    whole = Pair(*(turned(part, first, second, (rows, size)) for part in found))
    return whole if kept == size else Pair(*(b("aten.slice.Tensor", b.tensor(p), 1, 0, kept, 1) for p in whole))


def _dense(b: Ops, z: Pair, size: int, sign: int, scale: float, kept: int) -> Pair:
    """One product, of both parts beside each other with the matrix that stands for a complex one."""
    roots = [[_root(sign * j * k, size) for k in range(kept)] for j in range(size)]
    above = [[scale * re for re, _ in row] + [scale * im for _, im in row] for row in roots]
    below = [[-scale * im for _, im in row] + [scale * re for re, _ in row] for row in roots]
    is_real = z.im == 0.0
    operand = b.tensor(z.re) if is_real else b("aten.cat.default", (b.tensor(z.re), b.tensor(z.im)), 1)
    found = b("aten.mm.default", operand, _constant(b, above if is_real else above + below))
    return Pair(*(b("aten.slice.Tensor", found, 1, start, start + kept, 1) for start in (0, kept)))


def _roots(b: Ops, sign: int, size: int, rows: int, columns: int) -> Pair:
    """A matrix of powers of a root of unity: the products of the indices of its rows and columns."""
    found = [[_root(sign * j * k, size) for k in range(columns)] for j in range(rows)]
    return Pair(*(_constant(b, [[root[which] for root in row] for row in found]) for which in range(2)))


def _constant(b: Ops, rows: Sequence[Sequence[float]]) -> Value:
    values = tuple(itertools.chain.from_iterable(rows))
    return b.emit(_TABLE, (values,), b.type((len(rows), len(rows[0]))))


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
