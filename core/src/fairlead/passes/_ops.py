"""Base ops, put into a graph with the types of their results worked out."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fairlead.ir import DimExpr, DType, TensorType, Token, Value, dims
from fairlead.passes._nodes import shape_argument
from fairlead.passes._rewrite import Emitter


class Ops:
    """Base ops with the types of their results worked out."""

    def __init__(self, emit: Emitter) -> None:
        self.emit = emit

    def unary(self, op: str, x: Value) -> Value:
        return self.emit(f"aten.{op}.default", (x,), plain(x.tensor))

    def binary(self, op: str, x: Value, y: Value | DimExpr | float) -> Value:
        tail = (1,) if op in ("add", "sub") else ()
        return self.emit(f"aten.{op}.Tensor", (x, y, *tail), plain(x.tensor, _broadcast(x, y)))

    def compare(self, op: str, x: Value, y: Value | float) -> Value:
        type_ = msgspec.structs.replace(plain(x.tensor, _broadcast(x, y)), dtype=DType.bool)
        return self.emit(f"aten.{op}.Tensor", (x, y), type_)

    def where(self, condition: Value, x: Value, y: Value) -> Value:
        """The elements of ``x`` where the condition holds, of ``y`` elsewhere."""
        shape = _broadcast_shapes(_broadcast(x, y), condition.tensor.shape)
        return self.emit("aten.where.self", (condition, x, y), plain(x.tensor, shape))

    def pick(self, condition: Value, x: Value | float, y: Value | float) -> Value:
        """As `where`, with a number for one of the two."""
        like = x if isinstance(x, Value) else y
        assert isinstance(like, Value), "one of the two is a tensor"
        return self.where(condition, *(v if isinstance(v, Value) else self.full(like, (), v) for v in (x, y)))

    def negated(self, x: Value) -> Value:
        """Where a condition does not hold."""
        return self.emit("aten.logical_not.default", (x,), plain(x.tensor))

    def both(self, x: Value, y: Value) -> Value:
        """Where two conditions hold."""
        return self.emit("aten.logical_and.default", (x, y), plain(x.tensor, _broadcast(x, y)))

    def clamp(self, x: Value, low: float, high: float) -> Value:
        """Between two numbers; nan stays nan."""
        return self.pick(self.compare("gt", x, high), high, self.pick(self.compare("lt", x, low), low, x))

    def gather(self, x: Value, axis: int, index: Value) -> Value:
        return self.emit("aten.gather.default", (x, axis, index, False), plain(x.tensor, index.tensor.shape))

    def select(self, x: Value, index: Value) -> Value:
        """Elements of a vector, in the shape of the index, whose elements are all valid."""
        flat = self.view(index, (dims.product(index.tensor.shape),))
        found = self.emit("aten.index_select.default", (x, 0, flat), plain(x.tensor, flat.tensor.shape))
        return self.view(found, index.tensor.shape)

    def full(self, like: Value, shape: tuple[dims.Dim, ...], fill: float) -> Value:
        layout, device = Token("layout", "strided"), Token("device", like.tensor.device)
        args = (shape_argument(shape), fill, Token("dtype", like.tensor.dtype), layout, device, False)
        return self.emit("aten.full.default", args, plain(like.tensor, shape))

    def arange(self, like: Value, size: dims.Dim) -> Value:
        layout, device = Token("layout", "strided"), Token("device", like.tensor.device)
        args = (0, *shape_argument((size,)), 1, Token("dtype", DType.i64), layout, device, False)
        type_ = msgspec.structs.replace(plain(like.tensor, (size,)), dtype=DType.i64)
        return self.emit("aten.arange.start_step", args, type_)

    def reduce(self, op: str, x: Value, axes: tuple[int, ...]) -> Value:
        """Over these dimensions, which stay as ones; over none of them it is ``x`` itself."""
        if not axes:
            return x
        shape = tuple(1 if i in axes else d for i, d in enumerate(x.tensor.shape))
        tail = () if op.startswith("amax") else (None,)
        overload = {"sum": "sum.dim_IntList", "mean": "mean.dim", "amax": "amax.default"}[op]
        return self.emit(f"aten.{overload}", (x, axes, True, *tail), plain(x.tensor, shape))

    def permute(self, x: Value, order: tuple[int, ...]) -> Value:
        shape = tuple(x.tensor.shape[i] for i in order)
        return self.emit("aten.permute.default", (x, order), plain(x.tensor, shape))

    def swap_last(self, x: Value) -> Value:
        rank = x.tensor.rank
        return self.permute(x, (*range(rank - 2), rank - 1, rank - 2))

    def view(self, x: Value, shape: tuple[dims.Dim, ...]) -> Value:
        if shape == x.tensor.shape:
            return x
        return self.emit("aten.view.default", (x, shape_argument(shape)), plain(x.tensor, shape))

    def slice(self, x: Value, axis: int, start: int, stop: int, step: int = 1) -> Value:
        """Every ``step``-th place of a dimension from ``start`` to before ``stop``, which lie within it."""
        size = len(range(start, stop, step))
        if size == x.tensor.shape[axis]:
            return x
        type_ = plain(x.tensor, (*x.tensor.shape[:axis], size, *x.tensor.shape[axis + 1 :]))
        return self.emit("aten.slice.Tensor", (x, axis, start, stop, step), type_)

    def unsqueeze(self, x: Value, axis: int) -> Value:
        """With one more dimension, of size 1."""
        type_ = plain(x.tensor, (*x.tensor.shape[:axis], 1, *x.tensor.shape[axis:]))
        return self.emit("aten.unsqueeze.default", (x, axis), type_)

    def cat(self, parts: Sequence[Value], axis: int) -> Value:
        """One after another along a dimension; all others agree."""
        if len(parts) == 1:
            return parts[0]
        first = parts[0].tensor
        size = dims.add(*(p.tensor.shape[axis] for p in parts))
        type_ = plain(first, (*first.shape[:axis], size, *first.shape[axis + 1 :]))
        return self.emit("aten.cat.default", (tuple(parts), axis), type_)

    def cast(self, x: Value, dtype: DType) -> Value:
        if x.tensor.dtype == dtype:
            return x
        args = (x, Token("dtype", dtype), None, None, None, False, None)
        return self.emit("aten._to_copy.default", args, msgspec.structs.replace(plain(x.tensor), dtype=dtype))

    def matmul(self, a: Value, b: Value) -> Value:
        """A product of matrices in the last two dimensions, whose leading dimensions agree."""
        lead, m, k, n = a.tensor.shape[:-2], a.tensor.shape[-2], a.tensor.shape[-1], b.tensor.shape[-1]
        if not lead:
            return self.emit("aten.mm.default", (a, b), plain(a.tensor, (m, n)))
        batch = dims.product(lead)
        flat = self.view(a, (batch, m, k)), self.view(b, (batch, k, n))
        return self.view(self.emit("aten.bmm.default", flat, plain(a.tensor, (batch, m, n))), (*lead, m, n))

    def float32(self, x: Value) -> Value:
        return self.cast(x, DType.f32) if x.tensor.dtype in (DType.f16, DType.bf16) else x


def plain(t: TensorType, shape: tuple[dims.Dim, ...] | None = None) -> TensorType:
    """The type in row-major layout, and of another shape where one is given."""
    return msgspec.structs.replace(t, shape=t.shape if shape is None else shape, strides=None)


def _broadcast(x: Value, y: Value | DimExpr | float) -> tuple[dims.Dim, ...]:
    return _broadcast_shapes(x.tensor.shape, y.tensor.shape if isinstance(y, Value) else ())


def _broadcast_shapes(a: tuple[dims.Dim, ...], b: tuple[dims.Dim, ...]) -> tuple[dims.Dim, ...]:
    """The shape of an element-wise result; dimensions that are not 1 are taken to agree."""
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    return tuple(n if m == 1 else m for m, n in zip(a, b, strict=True))
