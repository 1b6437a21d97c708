"""Rules of matrix products."""

from __future__ import annotations

from typing import Any

from fairlead.ir import DType, Node, Value, dims
from fairlead_tvm._arrays import Array, Strided
from fairlead_tvm._call import Call
from fairlead_tvm._gemm import Product
from fairlead_tvm._layouts import Layout, Places, Wanted, panel_width
from fairlead_tvm._numbers import cast, operand
from fairlead_tvm._reduce import reduced
from fairlead_tvm._rules import rule
from fairlead_tvm._views import permuted, reshaped, squeezed

__all__ = ["linear", "product"]


def _of_halves(node: Node) -> str | None:
    result = next(r for r in node.results if r is not None)
    if result.tensor.dtype in (DType.f16, DType.bf16):
        return "products of halves are torch's: this processor's instructions for them are not TVM's"
    return "a product of bools" if result.tensor.dtype is DType.bool else None


def _panels(index: int, *, transposed: bool = False) -> Places:
    """A right factor of f32 that is a matrix of known size."""

    def places(node: Node) -> tuple[Wanted, ...]:
        value = node.args[index]
        if not isinstance(value, Value) or value.tensor.rank != 2 or not value.tensor.is_static:
            return ()
        if value.tensor.dtype is not DType.f32 or 0 in value.tensor.shape:
            return ()
        return ((index, Layout((1, 0) if transposed else (0, 1), panel_width())),)

    return places


def product(c: Call, x: Array, y: Array, dtype: DType) -> Array:
    """``x @ y`` of matrices, or of as many as their leading dimensions say."""
    a, b = (c.program.stored(cast(each, dtype)) for each in (x, y))
    return Product(a, b, (*a.shape[:-1], b.shape[-1]), dtype, panels=False, schedule=c.schedule).array


def _times(c: Call, x: Array, y: Array) -> Array:
    """``x @ y``, where ``y`` may be a weight that lies in panels."""
    placed = c.placed()
    if placed is None:
        return product(c, x, y, c.dtype)
    return _by_panels(c, x, placed, y.shape[-1])


def _by_panels(c: Call, x: Array, panels: Strided, columns: Any) -> Array:
    rows = reshaped(c.program, c.stored(x), (dims.product(x.shape[:-1]), x.shape[-1]))
    return Product(c.stored(rows), panels, (*x.shape[:-1], columns), c.dtype, panels=True, schedule=c.schedule).array


@rule("bmm", unless=_of_halves)
def bmm(c: Call, x: Array, y: Array) -> Array:
    return product(c, x, y, c.dtype)


@rule("mm", unless=_of_halves, places=_panels(1))
def mm(c: Call, x: Array, y: Array) -> Array:
    return _times(c, x, y)


@rule("mv", "dot", unless=_of_halves)
def mv(c: Call, x: Array, y: Array) -> Array:
    wide = DType.f64 if c.dtype is DType.f32 else c.dtype
    parts = c.map(lambda a, b: a * b, cast(cast(x, c.dtype), wide), cast(cast(y, c.dtype), wide))
    last = parts.ndim - 1
    return squeezed(c.program, reduced(c.program, parts, (last,), "sum"), (last,))


@rule("addmm", unless=_of_halves, places=_panels(2))
@rule("baddbmm", unless=_of_halves)
def addmm(c: Call, x: Array, a: Array, b: Array, beta: Any = 1, alpha: Any = 1) -> Array:
    """``beta * x + alpha * (a @ b)``; a NaN in ``x`` does not count where beta is zero."""
    out = _times(c, a, b)
    if alpha != 1:
        out = c.map(lambda p, n: p * n, out, operand(alpha, c.dtype))
    if beta == 0:
        return out
    x = operand(x, c.dtype)
    scaled = x if beta == 1 else c.map(lambda v, n: v * n, x, operand(beta, c.dtype))
    return c.map(lambda p, v: p + v, out, scaled)


@rule("linear", unless=_of_halves, places=_panels(1, transposed=True))
def linear(c: Call, x: Array, weight: Array, bias: Array | None = None) -> Array:
    """``x @ weight.T + bias``; the weight is what the node wants placed first, if anything."""
    placed = c.placed()
    if placed is not None and x.ndim > 0:
        shape = x.shape
        out = _by_panels(c, x if x.ndim > 1 else reshaped(c.program, x, (1, *shape)), placed, weight.shape[0])
        out = out if x.ndim > 1 else reshaped(c.program, out, (weight.shape[0],))
    else:
        out = _without_panels(c, x, weight)
    return out if bias is None else c.map(lambda p, v: p + v, out, operand(bias, c.dtype))


def _without_panels(c: Call, x: Array, weight: Array) -> Array:
    matrix = weight if weight.ndim == 2 else reshaped(c.program, weight, (1, *weight.shape))
    rows = reshaped(c.program, x, (dims.product(x.shape[:-1]), x.shape[-1]))
    out = product(c, rows, permuted(c.program, c.stored(cast(matrix, c.dtype)), (1, 0)), c.dtype)
    shape = (*x.shape[:-1], *((matrix.shape[0],) if weight.ndim == 2 else ()))
    return out if out.shape == shape else reshaped(c.program, out, shape)
